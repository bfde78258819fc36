"""ELF files of a few hundred bytes: a header, a dynamic section, a loader and a build id, no code."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def make_elf(
    *,
    needed: Sequence[str] = (),
    runpath: str | None = None,
    rpath: str | None = None,
    soname: str | None = None,
    interpreter: str | None = "/lib64/ld-linux-x86-64.so.2",
    machine: int = 62,
    build_id: bytes | None = b"\xab\xcd" * 10,
    wide: bool = True,
    big_endian: bool = False,
) -> bytes:
    order = ">" if big_endian else "<"
    strings = b"\0"
    entries: list[tuple[int, int]] = []
    for tag, names in ((1, needed), (14, [soname]), (15, [rpath]), (29, [runpath])):
        for name in names:
            if name is not None:
                entries.append((tag, len(strings)))
                strings += name.encode() + b"\0"
    header, program = (64, 56) if wide else (52, 32)
    base = 0x1000
    parts = 4
    start = header + program * parts
    loader = (interpreter or "").encode() + b"\0"
    note = b"" if build_id is None else struct.pack(order + "III", 4, len(build_id), 3) + b"GNU\0" + build_id
    strings_at = start + len(loader) + len(note)
    entries += [(5, base + strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack(order + ("qQ" if wide else "iI"), *entry) for entry in entries)
    dynamic_at = strings_at + len(strings)
    total = dynamic_at + len(dynamic)
    segments = [
        (1, 0, base, total),
        (3 if interpreter else 0, start, base + start, len(loader)),
        (4 if build_id is not None else 0, start + len(loader), 0, len(note)),
        (2, dynamic_at, base + dynamic_at, len(dynamic)),
    ]
    table = b"".join(
        struct.pack(order + "IIQQQQQQ", kind, 5, at, address, address, size, size, 8)
        if wide
        else struct.pack(order + "IIIIIIII", kind, at, address, address, size, size, 5, 4)
        for kind, at, address, size in segments
    )
    ident = b"\x7fELF" + bytes([2 if wide else 1, 2 if big_endian else 1, 1]) + bytes(9)
    if wide:
        rest = struct.pack(
            order + "HHIQQQIHHHHHH", 3, machine, 1, 0, header, 0, 0, header, program, parts, 0, 0, 0
        )
    else:
        rest = struct.pack(
            order + "HHIIIIIHHHHHH", 3, machine, 1, 0, header, 0, 0, header, program, parts, 0, 0, 0
        )
    return ident + rest + table + loader + note + strings + dynamic
