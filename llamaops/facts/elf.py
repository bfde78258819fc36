"""Read the parts of an ELF file that say what it needs, without running it."""

from __future__ import annotations

import struct
from collections.abc import Callable

import msgspec

from llamaops.errors import ParseError
from llamaops.schema.shape import Shape

MAGIC = b"\x7fELF"
_MACHINES = {
    3: "i386", 8: "mips", 20: "powerpc", 21: "powerpc64", 22: "s390x", 40: "arm", 62: "x86_64",
    183: "aarch64", 243: "riscv64", 258: "loongarch64",
}  # fmt: skip
_LIMIT_BYTES = 8 << 20
_MAX_ENTRIES = 4096

ReadAt = Callable[[int, int], bytes]
"""Offset and length to bytes."""


class ElfFacts(Shape, frozen=True, kw_only=True):
    """What an ELF file says about itself."""

    bits: int
    """32 or 64."""
    machine: str
    """Architecture, as uname names it; a number when it is not one we know."""
    interpreter: str | None = None
    """The dynamic loader it asks for; none when it is linked statically."""
    needed: tuple[str, ...] = ()
    """Libraries it asks for by name."""
    soname: str | None = None
    """Its own name as a library."""
    rpath: tuple[str, ...] = ()
    """Folders searched first, for its libraries' libraries too."""
    runpath: tuple[str, ...] = ()
    """Folders searched after LD_LIBRARY_PATH, for its own libraries only."""
    build_id: str | None = None
    """The linker's identity of the build, in hex."""


class _Segment(msgspec.Struct):
    kind: int
    offset: int
    address: int
    size: int


class _Layout(msgspec.Struct):
    order: str
    wide: bool
    machine: int
    segments: list[_Segment]


def parse_elf(read: ReadAt) -> ElfFacts:
    """Read the header, the dynamic section and the build id of an ELF file.

    Raises: ParseError when it is none or is damaged; OSError from `read`.
    """
    try:
        layout = _parse_layout(read)
        dynamic = _parse_dynamic(read, layout)
        return ElfFacts(
            bits=64 if layout.wide else 32,
            machine=_MACHINES.get(layout.machine, str(layout.machine)),
            interpreter=_interpreter(read, layout),
            needed=tuple(dynamic.get(1, [])),
            soname=next(iter(dynamic.get(14, [])), None),
            rpath=_folders(dynamic.get(15, [])),
            runpath=_folders(dynamic.get(29, [])),
            build_id=_build_id(read, layout),
        )
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ParseError(f"a damaged ELF file: {error}") from None


def _folders(entries: list[str]) -> tuple[str, ...]:
    return tuple(folder for entry in entries for folder in entry.split(":") if folder)


def _parse_layout(read: ReadAt) -> _Layout:
    start = read(0, 64)
    if start[:4] != MAGIC:
        raise ParseError("not an ELF file")
    wide, order = start[4] == 2, "<" if start[5] == 1 else ">"  # noqa: PLR2004 - ELFCLASS64, ELFDATA2LSB
    machine = struct.unpack_from(order + "H", start, 18)[0]
    if wide:
        (table,) = struct.unpack_from(order + "Q", start, 32)
        size, count = struct.unpack_from(order + "HH", start, 54)
    else:
        (table,) = struct.unpack_from(order + "I", start, 28)
        size, count = struct.unpack_from(order + "HH", start, 42)
    raw = read(table, min(size * count, _LIMIT_BYTES))
    segments = []
    for place in range(count):
        if wide:
            kind, _flags, offset, address, _physical, length = struct.unpack_from(
                order + "IIQQQQ", raw, place * size
            )
        else:
            kind, offset, address, _physical, length = struct.unpack_from(order + "IIIII", raw, place * size)
        segments.append(_Segment(kind, offset, address, length))
    return _Layout(order, wide, machine, segments)


def _parse_dynamic(read: ReadAt, layout: _Layout) -> dict[int, list[str]]:
    """Return the strings of the dynamic section by tag."""
    segment = next((item for item in layout.segments if item.kind == 2), None)  # noqa: PLR2004 - PT_DYNAMIC
    if segment is None:
        return {}
    raw = read(segment.offset, min(segment.size, _LIMIT_BYTES))
    form = layout.order + ("qQ" if layout.wide else "iI")
    step = struct.calcsize(form)
    entries: list[tuple[int, int]] = []
    for place in range(min(len(raw) // step, _MAX_ENTRIES)):
        tag, value = struct.unpack_from(form, raw, place * step)
        if tag == 0:
            break
        entries.append((tag, value))
    numbers = dict(entries)
    strings = _strings(read, layout, numbers)
    found: dict[int, list[str]] = {}
    for tag, value in entries:
        if tag in {1, 14, 15, 29}:
            found.setdefault(tag, []).append(_string(strings, value))
    return found


def _strings(read: ReadAt, layout: _Layout, numbers: dict[int, int]) -> bytes:
    address, size = numbers.get(5, 0), numbers.get(10, 0)
    for item in layout.segments:
        if item.kind == 1 and item.address <= address < item.address + item.size:
            return read(item.offset + address - item.address, min(size, _LIMIT_BYTES))
    raise ParseError("a damaged ELF file: its string table lies outside every segment")


def _string(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if start >= len(table) or end < 0:
        raise ParseError("a damaged ELF file: a name lies outside the string table")
    return table[start:end].decode("utf-8", "replace")


def _interpreter(read: ReadAt, layout: _Layout) -> str | None:
    segment = next((item for item in layout.segments if item.kind == 3), None)  # noqa: PLR2004 - PT_INTERP
    if segment is None:
        return None
    return read(segment.offset, min(segment.size, 4096)).rstrip(b"\0").decode("utf-8", "replace")


def _build_id(read: ReadAt, layout: _Layout) -> str | None:
    for item in layout.segments:
        if item.kind != 4:  # noqa: PLR2004 - PT_NOTE
            continue
        raw = read(item.offset, min(item.size, 65536))
        place = 0
        while place + 12 <= len(raw):
            name_size, size, kind = struct.unpack_from(layout.order + "III", raw, place)
            name = raw[place + 12 : place + 12 + name_size]
            start = place + 12 + (name_size + 3) // 4 * 4
            if kind == 3 and name == b"GNU\0":  # noqa: PLR2004 - NT_GNU_BUILD_ID
                return raw[start : start + size].hex()
            place = start + (size + 3) // 4 * 4
    return None
