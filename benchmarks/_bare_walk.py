"""Step through a GGUF header with nothing but the standard library, check nothing, and print its counts.

    python benchmarks/_bare_walk.py FILE.gguf

The least that any program in Python does to know where the tensor data of a good file begins.
"""

from __future__ import annotations

import mmap
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
u32, u64 = struct.Struct("<I").unpack_from, struct.Struct("<Q").unpack_from


def after_value(data: mmap.mmap, kind: int, at: int) -> int:
    """Return where a value ends."""
    if kind == STRING:
        return at + 8 + int(u64(data, at)[0])
    if kind != ARRAY:
        return at + SIZES[kind]
    element, count = u32(data, at)[0], u64(data, at + 4)[0]
    at += 12
    if element in SIZES:
        return at + SIZES[element] * int(count)
    for _ in range(count):
        at += 8 + u64(data, at)[0]
    return at


def walk(data: mmap.mmap) -> tuple[int, int, int]:
    """Return the counts of keys and tensors, and where the table of tensors ends."""
    tensors, keys = struct.unpack_from("<QQ", data, 8)
    at = 24
    for _ in range(keys):
        at += 8 + u64(data, at)[0]
        at = after_value(data, u32(data, at)[0], at + 4)
    for _ in range(tensors):
        at += 8 + u64(data, at)[0]
        at += 4 + 8 * u32(data, at)[0] + 12
    return keys, tensors, at


with open(sys.argv[1], "rb") as file:  # noqa: PTH123 - an import of pathlib would count
    print(*walk(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
