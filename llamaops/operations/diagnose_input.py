"""Turn what an operator names into the parts of one situation: files, folders, standard input, records."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import lzma
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Protocol

from llamaops.diagnosis.parts import MAX_CASE_BYTES, Part, parts_of
from llamaops.errors import InputFileError

CHUNK_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 4 << 30
"""Bytes taken out of one compressed file; the answer says when there was more."""
MAX_FILES = 64
XZ_MEMORY_BYTES = 96 << 20

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


class Reader(Protocol):
    """What is read from: a file, standard input, or a decompressor before one."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        ...

    def close(self) -> None:
        """Close it."""


def parts_from(names: Sequence[str], stdin: BinaryIO, kind: str | None = None) -> list[Part]:
    """Return the parts in files, folders (all files of one are one situation) and `-` for standard input.

    Raises: InputFileError.
    """
    parts: list[Part] = []
    for name in names:
        if name == "-":
            parts += _of_stream(stdin, "standard input", kind)
        elif os.path.isdir(name):  # noqa: PTH112 - strings throughout
            parts += _of_folder(name, kind)
        else:
            parts += _of_file(name, kind)
    return parts


def _of_folder(folder: str, kind: str | None) -> list[Part]:
    record = os.path.join(folder, "record.json")  # noqa: PTH118
    if os.path.isfile(record):  # noqa: PTH113
        return _of_file(record, kind)
    files = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
    if not files:
        raise InputFileError(f"{folder} has no files", hint="name a log, or a folder with logs")
    return [part for path in files[:MAX_FILES] for part in _of_file(path, kind)]


def _of_file(path: str, kind: str | None) -> list[Part]:
    try:
        source = open(path, "rb")  # noqa: PTH123, SIM115 - a large part is read later, and closes it
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}", hint="name a readable file") from error
    return _of_stream(source, os.path.basename(path), kind)  # noqa: PTH119


def _of_stream(source: BinaryIO, name: str, kind: str | None) -> list[Part]:
    chunks = _decoded(_unpacked(source, name), name)
    head = bytearray()
    for chunk in chunks:
        head += chunk
        if len(head) > MAX_CASE_BYTES:
            return [Part(kind or "log", name, chunks=_after(bytes(head), chunks))]
    return parts_of(head.decode("utf-8", "replace"), name, kind)


def _after(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _raw(source: Reader) -> Iterator[bytes]:
    with contextlib.closing(source):
        while chunk := source.read(CHUNK_BYTES):
            yield chunk


def _unpacked(source: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the bytes, decompressed piece by piece where the first bytes say that they are compressed."""
    first = source.read(6)
    form = next((form for magic, form in _MAGIC.items() if first.startswith(magic)), None)
    joined = _Prefixed(first, source)
    if form is None:
        yield from _raw(joined)
        return
    taken = 0
    try:
        with contextlib.closing(joined), contextlib.closing(_opened(form, joined, name)) as reader:
            while chunk := reader.read(CHUNK_BYTES):
                taken += len(chunk)
                yield chunk
                if taken >= MAX_UNPACKED_BYTES:
                    yield f"\n[llamaops: {name}: cut after {MAX_UNPACKED_BYTES} bytes]\n".encode()
                    return
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        # A rotated file may be cut; what came before the damage still counts.
        yield f"\n[llamaops: the compressed file {name} ends early: {error}]\n".encode()


def _opened(form: str, source: Reader, name: str) -> Reader:
    if form != "zstd":
        return _Unpacked(source, form)
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14 and newer
    except ImportError:
        raise InputFileError(
            f"{name} is compressed with zstd, which this Python cannot read",
            hint=f"run: zstd -dc {name} | llamaops diagnose -",
        ) from None
    return zstd.ZstdFile(source)  # type: ignore[no-any-return,unused-ignore]


class _Unpacked:
    """A compressed stream: bounded memory, several members, and whatever comes before a cut."""

    def __init__(self, source: Reader, form: str) -> None:
        self._source = source
        self._form = form
        self._decompressor = self._fresh()
        self._pending = b""

    def _fresh(self) -> Any:  # noqa: ANN401 - three libraries, one protocol but for a name
        if self._form == "gzip":
            return zlib.decompressobj(31)
        if self._form == "bzip2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, decompressed."""
        while True:
            if self._decompressor.eof:
                self._pending = self._decompressor.unused_data or self._source.read(65536)
                if not self._pending.strip(b"\0"):
                    return b""
                self._decompressor = self._fresh()
            data = self._pending or (self._source.read(65536) if self._wants_input() else b"")
            if not data and self._wants_input():
                raise EOFError("the end is missing")
            out: bytes = self._decompressor.decompress(data, size)
            self._pending = getattr(self._decompressor, "unconsumed_tail", b"")
            if out:
                return out

    def _wants_input(self) -> bool:
        return bool(getattr(self._decompressor, "needs_input", True))

    def close(self) -> None:
        """Close what is below."""
        self._source.close()


class _Prefixed:
    """A stream with the bytes that were read to look at it put back."""

    def __init__(self, first: bytes, source: Reader) -> None:
        self._first = first
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        if not self._first:
            return self._source.read(size)
        if size < 0:
            first, self._first = self._first, b""
            return first + self._source.read()
        first, self._first = self._first[:size], self._first[size:]
        return first

    def close(self) -> None:
        """Close what is below."""
        self._source.close()


def _decoded(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield UTF-8 where the text is UTF-16, as PowerShell redirects it."""
    del name
    first = next(chunks, b"")
    if first[:2] not in {b"\xff\xfe", b"\xfe\xff"}:
        if first:
            yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(first).encode()
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
