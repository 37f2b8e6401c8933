"""Writes src/kernels/grids_tables.h: the grids of GGML's IQ1, IQ2 and IQ3 types, 16 bits a point.

    python3 tools/grids/generate.py .../gguf/quants.py > src/kernels/grids_tables.h

Reads the source of the Python package gguf (0.19.0), whose classes hold each grid of ggml-common.h
as a hexadecimal string, a point's values packed from the lowest bit: 2 bits each where there are
eight, 4 bits where there are four. Nothing but the standard library is used.
"""
import re
import sys

# (class, name, points, meaning of a field of a point)
GRIDS = [
    ("IQ1_S", "grid_iq1", 2048, "8 x 2 bits: value + 1"),
    ("IQ2_XXS", "grid_iq2_xxs", 256, "8 x 2 bits: 0, 1, 2 stand for 8, 25, 43"),
    ("IQ2_XS", "grid_iq2_xs", 512, "the same"),
    ("IQ2_S", "grid_iq2_s", 1024, "the same"),
    ("IQ3_XXS", "grid_iq3_xxs", 256, "4 x 4 bits: 0 to 7 stand for 4, 12, 20, 28, 36, 44, 52, 62"),
    ("IQ3_S", "grid_iq3_s", 512, "4 x 4 bits: (value - 1) / 2"),
]
PER_LINE = 12


def read_grid(source, name):
    body = source[source.index(f"class {name}("):]
    text = re.search(r"grid_hex = \((.*?)\n    \)", body, re.S).group(1)
    data = bytes.fromhex("".join(re.findall(r'b"([0-9a-f]+)"', text)))
    return [low | high << 8 for low, high in zip(data[::2], data[1::2])]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        source = file.read()
    print("// kernels/grids_tables.h — made by tools/grids/generate.py from gguf 0.19.0: the grids of")
    print("// ggml-common.h. Values are packed from the lowest bit of a point.")
    print("#ifndef WICK_KERNELS_GRIDS_TABLES_H\n#define WICK_KERNELS_GRIDS_TABLES_H\n")
    print("#include <stdint.h>\n\n// clang-format off")
    for name, table, points, meaning in GRIDS:
        grid = read_grid(source, name)
        assert len(grid) == points, (name, len(grid))
        print(f"\n// {meaning}.\nstatic const uint16_t {table}[{points}] = {{")
        for i in range(0, points, PER_LINE):
            print("  " + ", ".join(f"0x{point:04x}" for point in grid[i:i + PER_LINE]) + ",")
        print("};")
    print("\n// clang-format on\n\n#endif")


main()
