"""Writes src/text/unicode_tables.h: the class of every code point, as runs of bytes.

    python3.13 tools/unicode/generate.py > src/text/unicode_tables.h

Needs a Python whose unicodedata is Unicode 15.1 (3.13 has it), because the reference tokenizers'
tables are of that version. Nothing but the standard library is used.
"""
import sys
import unicodedata

UNICODE_VERSION = "15.1.0"
CODE_POINTS = 0x110000
RUNS_PER_STEP = 32   # the index holds one entry for so many runs
LONG_RUN = 31        # length field that says: 16 bits of length follow
RUN_MAX = 0xFFFF

# The order of the enum in unicode.c: unassigned, letter, number, punctuation, symbol, mark, space,
# control. White space is a class of its own, whatever its general category.
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
    """Bytes of the runs and the index: (first code point, byte offset) of every 32nd run."""
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
    print("// text/unicode_tables.h — made by tools/unicode/generate.py; do not edit.")
    print(f"// Unicode {UNICODE_VERSION}: {len(runs)} runs of code points of one class, {size_bytes} bytes.")
    print("// A run is a byte, length << 3 | class; length 31 says that two bytes of length follow.")
    print("// clang-format off")
    print_table("uint8_t", "UNICODE_RUNS", list(data), "%d")
    print(f"enum {{ UNICODE_STEPS = {len(index)} }};")
    print("// First code point and byte offset of every 32nd run.")
    print_table("uint32_t", "UNICODE_STEP_START", [start for start, _ in index], "0x%x")
    print_table("uint16_t", "UNICODE_STEP_OFFSET", [offset for _, offset in index], "%d")
    print("// clang-format on")


main()
