"""Writes src/text/unicode_tables.h: the class of every code point, lower case, and bases of composed
characters, all as bytes that are decoded starting at the nearest index entry.

    python3.13 tools/unicode/generate.py > src/text/unicode_tables.h

Needs a Python whose unicodedata is Unicode 15.1 (3.13 has it), because the reference tokenizers'
tables have that version. Only the standard library is used.
"""
import sys
import unicodedata

UNICODE_VERSION = "15.1.0"
CODE_POINTS = 0x110000
RUNS_PER_STEP = 32   # number of runs per index entry
LONG_RUN = 31        # a length field with this value is followed by a 16-bit length
RUN_MAX = 0xFFFF

# The order of the enum in unicode.c: unassigned, letter, number, punctuation, symbol, mark, space,
# control. White space is a separate class, regardless of its general category.
CLASSES = {"L": 1, "N": 2, "P": 3, "S": 4, "M": 5, "Z": 6, "C": 7}
CONTROL_SPACES = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85}


def class_of(code_point):
    if code_point in CONTROL_SPACES:
        return CLASSES["Z"]
    category = unicodedata.category(chr(code_point))
    return 0 if category == "Cn" else CLASSES[category[0]]


def find_runs():
    """Yields (first code point, length, class), each at most RUN_MAX long."""
    start = 0
    current = class_of(0)
    for code_point in range(1, CODE_POINTS + 1):
        found = class_of(code_point) if code_point < CODE_POINTS else None
        if found != current or code_point - start == RUN_MAX:
            yield start, code_point - start, current
            start, current = code_point, found


def encode_runs(runs):
    """Returns the bytes of the runs, and the index: (first code point, byte offset) of every 32nd run."""
    data = bytearray()
    index = []
    for number, (start, length, kind) in enumerate(runs):
        if number % RUNS_PER_STEP == 0:
            index.append((start, len(data)))
        if length < LONG_RUN:
            data.append(length << 3 | kind)
        else:
            data += bytes([LONG_RUN << 3 | kind, length & 0xFF, length >> 8])
    return data, index


def find_pairs(mapping):
    """Returns (code point, mapped code point) for each code point that the mapping changes."""
    pairs = []
    for code_point in range(CODE_POINTS):
        other = ord(mapping(chr(code_point))[0])
        if other != code_point:
            pairs.append((code_point, other))
    return pairs


def find_spacing_marks():
    """Returns runs (first code point, length) of spacing marks: categories Mc and Me."""
    runs = []
    for code_point in range(CODE_POINTS):
        if unicodedata.category(chr(code_point)) not in ("Mc", "Me"):
            continue
        if runs and sum(runs[-1]) == code_point:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((code_point, 1))
    return runs


def find_tails():
    """(code point, second, third): the rest of a canonical decomposition without its first
    character and without accents (Mn). Hangul is computed."""
    tails = []
    for code_point in range(CODE_POINTS):
        if 0xAC00 <= code_point <= 0xD7A3:
            continue
        rest = unicodedata.normalize("NFD", chr(code_point))[1:]
        rest = [ord(c) for c in rest if unicodedata.category(c) != "Mn"]
        if rest:
            assert len(rest) <= 2
            tails.append((code_point, rest[0], rest[1] if len(rest) > 1 else 0))
    return tails


def group_pairs(pairs):
    """Returns groups (first, count, stride, value, step): first + k * stride becomes value + k * step."""
    groups = []
    at = 0
    while at < len(pairs):
        first, value = pairs[at]
        best = (1, 1, 0)
        for stride, step in ((1, 0), (1, 1), (2, 2)):
            count = 1
            while (at + count < len(pairs)
                   and pairs[at + count] == (first + count * stride, value + count * step)):
                count += 1
            if count > best[0]:
                best = (count, stride, step)
        count, stride, step = best
        groups.append((first, count, stride, value, step))
        at += count
    return groups


def encode_number(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return out


def encode_groups(groups):
    """Distance to the previous group's first << 2 | form, count - 1, zigzag distance of the values."""
    forms = {(1, 0): 0, (1, 1): 1, (2, 2): 2}
    data = bytearray()
    index = []
    last_first = last_value = 0
    for number, (first, count, stride, value, step) in enumerate(groups):
        if number % RUNS_PER_STEP == 0:
            index.append((first, len(data), last_first, last_value))
        data += encode_number((first - last_first) << 2 | forms[stride, step])
        data += encode_number(count - 1)
        change = value - last_value
        data += encode_number(change * 2 if change >= 0 else -change * 2 - 1)
        last_first, last_value = first, value
    return data, index


def print_table(kind, name, values, form):
    print(f"static const {kind} {name}[{len(values)}] = {{")
    line = "   "
    for value in values:
        item = " " + form % value + ","
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


def main():
    if unicodedata.unidata_version != UNICODE_VERSION:
        sys.exit(f"needs Unicode {UNICODE_VERSION}, this Python has {unicodedata.unidata_version}")
    runs = list(find_runs())
    data, index = encode_runs(runs)
    size_bytes = len(data) + 6 * len(index)
    print("// text/unicode_tables.h — generated by tools/unicode/generate.py; do not edit.")
    print(f"// Unicode {UNICODE_VERSION}: {len(runs)} runs of code points with the same class, {size_bytes} bytes.")
    print("// A run is a byte, length << 3 | class; length 31 means that two bytes of length follow.")
    print("// clang-format off")
    print_table("uint8_t", "UNICODE_RUNS", list(data), "%d")
    print(f"enum {{ UNICODE_STEPS = {len(index)} }};")
    print("// First code point and byte offset of every 32nd run.")
    print_table("uint32_t", "UNICODE_STEP_START", [start for start, _ in index], "0x%x")
    print_table("uint16_t", "UNICODE_STEP_OFFSET", [offset for _, offset in index], "%d")
    print("// Maps: groups of code points as numbers with 7 bits per byte, lowest first: distance from")
    print("// the previous group's first << 2 | form, count - 1, zigzag distance of the values. Forms:")
    print("// 0 all map to one, 1 consecutive to consecutive, 2 every second to every second.")
    print("typedef struct unicode_map_step {")
    print("  uint32_t first;       // first code point of the group that begins here")
    print("  uint32_t offset;      // its byte offset")
    print("  uint32_t last_first;  // first code point of the previous group")
    print("  uint32_t last_value;")
    print("} unicode_map_step;")
    for name, mapping in (("LOWER", str.lower), ("BASE", lambda c: unicodedata.normalize("NFD", c))):
        groups = group_pairs(find_pairs(mapping))
        data, index = encode_groups(groups)
        print(f"// {len(groups)} groups, {len(data) + 16 * len(index)} bytes.")
        print_table("uint8_t", f"UNICODE_{name}", list(data), "%d")
        print(f"static const unicode_map_step UNICODE_{name}_STEPS[{len(index)}] = {{")
        for step in index:
            print("    {0x%x, %d, 0x%x, 0x%x}," % step)
        print("};")
        print(f"enum {{ UNICODE_{name}_STEP_COUNT = {len(index)} }};")
    marks = bytearray()
    end = 0
    for first, length in find_spacing_marks():
        marks += encode_number(first - end) + encode_number(length)
        end = first + length
    print("// Spacing marks: distance from the end of the previous run, then length, as such numbers.")
    print_table("uint8_t", "UNICODE_SPACING_MARKS", list(marks), "%d")
    tails = find_tails()
    print("// A code point, and the rest of its decomposition, without the first character and accents.")
    print(f"static const uint32_t UNICODE_TAILS[{len(tails)}][3] = {{")
    for tail in tails:
        print("    {0x%x, 0x%x, 0x%x}," % tail)
    print("};")
    print(f"enum {{ UNICODE_TAIL_COUNT = {len(tails)} }};")
    print("// clang-format on")


main()
