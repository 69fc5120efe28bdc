"""embed.py OUTPUT FILE...: writes the C++ source that has these files, for assets.hpp."""

import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
WIDTH = 4096  # bytes of one literal


def literal(data):
    """C string literals, one after the other. Octal escapes end after three digits, whatever follows."""
    for begin in range(0, len(data), WIDTH):
        part = data[begin:begin + WIDTH]
        yield '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in part) + '"'


def main(output, paths):
    lines = ['#include "tools/rdmaquotad/web/assets.hpp"', "",
             '#pragma GCC diagnostic ignored "-Woverlength-strings"', "", "namespace rdmaquota {", "namespace {", ""]
    rows = []
    for number, path in enumerate(paths):
        with open(path, "rb") as file:
            data = file.read()
        name = os.path.basename(path)
        lines += [f"constexpr char text_{number}[] =", *literal(data), ";", ""]
        kind = TYPES[os.path.splitext(name)[1]]
        rows.append(f'    {{"/{name}", "{kind}", {{text_{number}, sizeof text_{number} - 1}}}},')
    lines += ["constexpr Asset assets[] = {", *rows, "};", "", "}  // namespace", "",
              "const Asset* find_asset(std::string_view path) noexcept {", "    for (const auto& asset : assets)",
              "        if (asset.path == path) return &asset;", "    return nullptr;", "}", "",
              "}  // namespace rdmaquota", ""]
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
