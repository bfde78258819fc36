"""Step through the bytes of a GGUF header without turning what is stepped over into objects."""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from llamaops.facts.ggml_types import SCALARS, STRING

if TYPE_CHECKING:  # the ports bring subprocess and more, which a header walk does without
    from collections.abc import Callable, Iterable

    from llamaops.system.ports import OpenFile

CHUNK_BYTES = 256 * 1024
MARK_EVERY = 2048
"""Strings between two remembered places of a long array: `read_strings` starts at the nearest."""
KEPT_TEXT_BYTES = 1024
MANY = 8192
"""Strings from which on it pays to compile a pattern that steps over them."""
GROUP = 256
SHORT = 64

LONGEST = 2**30
"""The engine's own limit of a string and of the elements of an array."""

# Ours: far above any real model; they bound time and memory on a hostile file.
MOST_STRINGS = 2**24
MOST_KEPT = 8 * 2**20
LONGEST_KEY = 65_535
MOST_NUMBERS = 4096

_U32 = struct.Struct("<I").unpack_from
_U64 = struct.Struct("<Q").unpack_from
SCALAR_FORMS = {number: struct.Struct("<" + code) for number, (_, code, _) in SCALARS.items()}


class Text(msgspec.Struct, frozen=True):
    """A string value: where it lies, and its first `KEPT_TEXT_BYTES` decoded."""

    offset: int
    length: int
    text: str


class Array(msgspec.Struct, frozen=True):
    """An array value: where its elements lie; `marks` are offsets of every `MARK_EVERY`th string."""

    element_type: int
    count: int
    offset: int
    marks: tuple[int, ...] = ()


class StopReadingError(Exception):
    """Reading cannot go on."""

    def __init__(self, slug: str, sentence: str) -> None:
        super().__init__(sentence)
        self.slug = slug


@cache
def _short_strings() -> re.Pattern[bytes]:
    """Return a pattern that steps over `GROUP` strings of fewer than `SHORT` bytes, lengths included.

    The regular expression engine takes two thirds of the time of a loop in Python and checks all eight
    bytes of each length; where it does not match, the loop decides. A string has one length only, so the
    repetition is possessive: nothing has to be kept to go back to.
    """
    usual = sorted(range(SHORT), key=lambda length: abs(length - 7))
    one = b"|".join(b"\\x%02x%b.{%d}" % (length, rb"\0" * 7, length) for length in usual)
    return re.compile(b"(?s:%b){%d}+" % (one, GROUP))


class Walk:
    """A place in the file and the bytes around it."""

    __slots__ = ("at", "base", "buffer", "file", "kept_left", "size", "strings_left", "where")

    def __init__(self, file: OpenFile, at: int = 0) -> None:
        self.file = file
        self.size = file.size_bytes
        self.at = at
        self.base = at
        self.buffer = b""
        self.where = "its first bytes"
        self.strings_left = MOST_STRINGS
        self.kept_left = MOST_KEPT

    def need(self, length: int) -> int:
        """Return the index in the buffer of the next `length` bytes, reading on where necessary."""
        index = self.at - self.base
        if index + length <= len(self.buffer):
            return index
        if self.at + length > self.size:
            raise StopReadingError(
                "header-truncated", f"the file ends after {self.size} bytes, inside {self.where}"
            )
        wanted = min(max(length, CHUNK_BYTES), self.size - self.at)
        self.base = self.at
        self.buffer = self.file.read_at(self.at, wanted)
        if len(self.buffer) < wanted:
            raise StopReadingError("file-changed", "the file became shorter while it was read")
        return 0

    def u32(self) -> int:
        """Take a 32-bit number."""
        index = self.need(4)
        self.at += 4
        return int(_U32(self.buffer, index)[0])

    def u64(self) -> int:
        """Take a 64-bit number."""
        index = self.need(8)
        self.at += 8
        return int(_U64(self.buffer, index)[0])

    def length(self, limit: int = LONGEST) -> int:
        """Take the length of a string that has to lie in the file."""
        length = self.u64()
        if length > limit:
            raise StopReadingError(
                "string-too-long", f"{self.where}: a string of {length} bytes, at most {limit} are allowed"
            )
        if length > self.size - self.at:
            raise StopReadingError(
                "header-truncated",
                f"the file ends after {self.size} bytes, inside {self.where}: a string of {length} bytes"
                f" where {self.size - self.at} are left",
            )
        return length

    def keep(self, length: int) -> bytes:
        """Return the next bytes, which somebody keeps, without stepping over them."""
        self.kept_left -= length
        if self.kept_left < 0:
            raise StopReadingError(
                "beyond-our-limits", f"{self.where}: more text than the {MOST_KEPT} bytes we keep"
            )
        index = self.need(length)
        return self.buffer[index : index + length]

    def name(self) -> bytes:
        """Take the name of a key or tensor."""
        name = self.keep(self.length(LONGEST_KEY))
        self.at += len(name)
        return name

    def skip(self, length: int) -> None:
        """Step over bytes that have to lie in the file."""
        if length > self.size - self.at:
            raise StopReadingError(
                "header-truncated",
                f"the file ends after {self.size} bytes, inside {self.where}: {length} bytes"
                f" where {self.size - self.at} are left",
            )
        self.at += length

    def skip_strings(self, count: int) -> tuple[int, ...]:
        """Step over strings by their lengths and return the offset of every `MARK_EVERY`th."""
        if count > self.strings_left:
            raise StopReadingError(
                "beyond-our-limits", f"{self.where}: {count} strings are more than we step over"
            )
        self.strings_left -= count
        marks = []
        match = _short_strings().match if count >= MANY else None
        for done in range(0, count, MARK_EVERY):
            marks.append(self.at)
            self._skip_block(min(MARK_EVERY, count - done), match)
        if self.at > self.size:
            raise self._beyond()
        return tuple(marks)

    def _skip_block(self, left: int, match: Callable[[bytes, int], re.Match[bytes] | None] | None) -> None:
        while match is not None and left >= GROUP:
            found = match(self.buffer, self.at - self.base)
            if found is None:
                self._step(GROUP)
            else:
                self.at = self.base + found.end()
            left -= GROUP
        self._step(left)

    def _step(self, left: int) -> None:
        # The hot loop of the program: a vocabulary and its merges are half a million strings.
        unpack = _U64
        while left:
            buffer = self.buffer
            index = self.at - self.base
            rest = left
            try:
                for rest in range(left - 1, -1, -1):  # noqa: B007 - tells what is left when it breaks off
                    index += unpack(buffer, index)[0] + 8
            except (struct.error, OverflowError):
                left = rest + 1
                self.at = self.base + index
                if self.at > self.size:
                    raise self._beyond() from None
                self.need(8)
            else:
                left = 0
                self.at = self.base + index

    def _beyond(self) -> StopReadingError:
        over = self.at - self.size
        if over > LONGEST:
            return StopReadingError("string-too-long", f"{self.where}: a string of more than {LONGEST} bytes")
        return StopReadingError(
            "header-truncated",
            f"the file ends after {self.size} bytes, inside {self.where}: its last string needs {over} more",
        )


def take_text(walk: Walk) -> Text:
    """Take a string value; only its start is kept."""
    length = walk.length()
    offset = walk.at
    text = walk.keep(min(length, KEPT_TEXT_BYTES)).decode("utf-8", "replace")
    walk.skip(length)
    return Text(offset, length, text)


def read_bytes(file: OpenFile, text: Text, *, limit_bytes: int = 2**20) -> bytes:
    """Return a string value, at most `limit_bytes` of it.

    Raises: OSError.
    """
    return file.read_at(text.offset, min(text.length, limit_bytes))


def read_numbers(file: OpenFile, array: Array) -> tuple[int | float | bool, ...]:
    """Return the elements of an array of numbers, at most `MOST_NUMBERS`.

    Raises: OSError.
    """
    scalar = SCALAR_FORMS.get(array.element_type)
    if scalar is None:
        return ()
    count = min(array.count, MOST_NUMBERS)
    data = file.read_at(array.offset, count * scalar.size)
    whole = len(data) // scalar.size * scalar.size
    return tuple(value for (value,) in scalar.iter_unpack(data[:whole]))


def read_strings(file: OpenFile, array: Array, wanted: Iterable[int]) -> dict[int, str]:
    """Return some elements of an array of strings, each cut to `KEPT_TEXT_BYTES`.

    Raises: OSError.
    """
    found: dict[int, str] = {}
    for index in sorted(set(wanted)):
        if not 0 <= index < array.count or array.element_type != STRING:
            continue
        walk = Walk(file, array.marks[index // MARK_EVERY])
        try:
            walk.skip_strings(index % MARK_EVERY)
            found[index] = take_text(walk).text
        except StopReadingError:
            continue
    return found
