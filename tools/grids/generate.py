"""Writes src/kernels/grids_tables.h: the grids of GGML's IQ1, IQ2 and IQ3 types, a bit for each possible point.

    python3 tools/grids/generate.py .../gguf/quants.py > src/kernels/grids_tables.h

Reads the source of the Python package gguf (0.19.0), whose classes hold each grid of ggml-common.h
as a hexadecimal string, a point's values packed from the lowest bit: 2 bits each where there are
eight, 4 bits where there are four. The points of a grid are in the order of these numbers, so bits say
which of all points it has: 8 values of 3 levels, or 4 of 8. Nothing but the standard library is used.
"""
import re
import sys

# (class, name, points, meaning of a field of a point)
GRIDS = [
    ("IQ1_S", "grid_iq1", 2048, "8 x 2 bits: value + 1"),
    ("IQ2_XXS", "grid_iq2_xxs", 256, "8 x 2 bits: 0, 1, 2 stand for 8, 25, 43"),
    ("IQ2_XS", "grid_iq2_xs", 512, "The same"),
    ("IQ2_S", "grid_iq2_s", 1024, "The same"),
    ("IQ3_XXS", "grid_iq3_xxs", 256, "4 x 4 bits: 0 to 7 stand for 4, 12, 20, 28, 36, 44, 52, 62"),
    ("IQ3_S", "grid_iq3_s", 512, "4 x 4 bits: (value - 1) / 2"),
]
PER_LINE = 16


def read_grid(source, name):
    body = source[source.index(f"class {name}("):]
    text = re.search(r"grid_hex = \((.*?)\n    \)", body, re.S).group(1)
    data = bytes.fromhex("".join(re.findall(r'b"([0-9a-f]+)"', text)))
    return [low | high << 8 for low, high in zip(data[::2], data[1::2])]


def bits_of(grid, fields, levels):
    """A bit for each possible point, from the lowest bit of the first byte on."""
    assert grid == sorted(set(grid))
    width = 16 // fields
    data = bytearray((levels ** fields + 7) // 8)
    for point in grid:
        index = 0
        for field in reversed(range(fields)):
            value = point >> field * width & (1 << width) - 1
            assert value < levels
            index = index * levels + value
        data[index // 8] |= 1 << index % 8
    return data


def write(grids):
    print("// kernels/grids_tables.h — made by tools/grids/generate.py from gguf 0.19.0: the grids of")
    print("// ggml-common.h. A bit for each possible point, in the order of points whose values are packed")
    print("// from the lowest bit: set where the grid has the point.")
    print("#ifndef WICK_KERNELS_GRIDS_TABLES_H\n#define WICK_KERNELS_GRIDS_TABLES_H\n")
    print("#include <stdint.h>\n\n// clang-format off")
    for (name, table, points, meaning), grid in zip(GRIDS, grids):
        assert len(grid) == points, (table, len(grid))
        data = bits_of(grid, *(4, 8) if name.startswith("IQ3") else (8, 3))
        print(f"\n// {points} points. {meaning}.\nstatic const uint8_t {table}_bits[{len(data)}] = {{")
        for i in range(0, len(data), PER_LINE):
            print("  " + ", ".join(f"0x{byte:02x}" for byte in data[i:i + PER_LINE]) + ",")
        print("};")
    print("\n// clang-format on\n\n#endif")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        source = file.read()
    write([read_grid(source, name) for name, _, _, _ in GRIDS])


if __name__ == "__main__":
    main()
