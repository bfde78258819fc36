"""Read the header of a GGUF file: keys, values and the table of tensors, never tensor data.

Strings of a vocabulary are stepped over by their length; `gguf_walk.read_strings` and `read_numbers`
fetch the few elements that somebody asks for. Whatever the file holds, memory is bounded by the limits
here and there, and a `Header` comes back, with what is wrong in `problems`.

Source: the rules are those of llama.cpp's own reader (ggml/src/gguf.cpp): what it refuses is a problem here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

import msgspec

from llamaops.facts.ggml_types import ARRAY, BLOCKS, REMOVED, SCALARS, STRING, tensor_bytes, type_name
from llamaops.facts.gguf_shapes import Problem
from llamaops.facts.gguf_walk import LONGEST, SCALAR_FORMS, Array, StopReadingError, Text, Walk, take_text

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import OpenFile

# The engine's own limits.
LONGEST_NAME = 64
MOST_DIMENSIONS = 4
INT64_MAX = 2**63 - 1
VERSIONS = (2, 3)

# Ours: far above any real model; they bound time and memory on a hostile file.
MOST_KEYS = 16_384
MOST_TENSORS = 65_536
MOST_PROBLEMS_OF_A_KIND = 3

_TENSOR_TAIL = tuple(struct.Struct(f"<{n}QIQ") for n in range(MOST_DIMENSIONS + 1))


class Entry(msgspec.Struct, frozen=True):
    """A value of the header and its type number."""

    type_id: int
    value: int | float | bool | Text | Array

    @property
    def type_name(self) -> str:
        """Return the name of the type, such as `u32` or `array of string`."""
        if isinstance(self.value, Array):
            return f"array of {_value_type_name(self.value.element_type)}"
        return _value_type_name(self.type_id)


class Tensor(msgspec.Struct, frozen=True):
    """A line of the tensor table; `size_bytes` is None for a type or shape without a known size."""

    name: str
    dimensions: tuple[int, ...]
    type_id: int
    offset: int
    elements: int | None
    size_bytes: int | None


class Header(msgspec.Struct):
    """What was read of one file."""

    place: str
    file_bytes: int
    magic: bytes = b""
    version: int | None = None
    tensor_count: int | None = None
    key_count: int | None = None
    entries: dict[str, Entry] = msgspec.field(default_factory=dict)
    tensors: list[Tensor] = msgspec.field(default_factory=list)
    alignment: int | None = None
    data_start: int | None = None
    """Where tensor data begins, known once the whole header was read."""
    reached: Literal["magic", "counts", "keys", "tensors", "end"] = "magic"
    """The part that reading stopped in; `end` when all of it was read."""
    problems: list[Problem] = msgspec.field(default_factory=list)

    def add(self, slug: str, sentence: str) -> None:
        """Add a problem; of each kind only the first few are kept."""
        same = sum(problem.slug == slug for problem in self.problems)
        if same < MOST_PROBLEMS_OF_A_KIND:
            self.problems.append(Problem(slug=slug, sentence=sentence, place=self.place))
        elif same == MOST_PROBLEMS_OF_A_KIND:
            more = Problem(slug=slug, sentence="and more of this kind", place=self.place)
            self.problems.append(more)

    @property
    def expected_bytes(self) -> int | None:
        """Return where the last tensor ends; None when the header does not tell."""
        if self.data_start is None:
            return None
        if not self.tensors:
            return self.data_start
        last = max(self.tensors, key=lambda tensor: tensor.offset + (tensor.size_bytes or 0))
        if last.size_bytes is None or any(
            tensor.size_bytes is None and tensor.offset > last.offset for tensor in self.tensors
        ):
            return None
        end = self.data_start + last.offset + last.size_bytes
        return end if end <= INT64_MAX else None


def read_header(file: OpenFile, place: str) -> Header:
    """Read the header of an open file; what is wrong with it is in `problems`.

    Raises: OSError when the file cannot be read; nothing for what it holds.
    """
    header = Header(place=place, file_bytes=file.size_bytes)
    walk = Walk(file)
    try:
        _read_start(walk, header)
        _read_keys(walk, header)
        _read_alignment(header)
        _read_tensors(walk, header)
    except StopReadingError as stop:
        header.add(stop.slug, str(stop))
        return header
    header.reached = "end"
    if header.alignment is not None:
        header.data_start = _pad(walk.at, header.alignment) if header.tensors else walk.at
        _check_offsets(header, header.alignment)
    return header


def _read_start(walk: Walk, header: Header) -> None:
    index = walk.need(4)
    header.magic = walk.buffer[index : index + 4]
    walk.at = 4
    if header.magic != b"GGUF":
        raise StopReadingError("not-gguf", f"it starts with {header.magic!r} instead of b'GGUF'")
    header.reached = "counts"
    walk.where = "its version and counts"
    version = walk.u32()
    if not version & 0xFFFF and version:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise StopReadingError(
            "big-endian",
            f"a big-endian GGUF file of version {swapped}, while this machine reads little-endian ones",
        )
    header.version = version
    if version not in VERSIONS:
        raise StopReadingError("version-unsupported", _version_sentence(version))
    header.tensor_count = _count(walk, "tensors", 24, MOST_TENSORS)
    header.key_count = _count(walk, "keys", 13, MOST_KEYS)


def _version_sentence(version: int) -> str:
    if version == 1:
        return "GGUF version 1 of August 2023, which llama.cpp no longer loads (versions 2 and 3)"
    return f"GGUF version {version}, while versions 2 and 3 are known"


def _count(walk: Walk, what: str, smallest_bytes: int, most: int) -> int:
    count = walk.u64()
    room = (walk.size - walk.at) // smallest_bytes
    # A small count that does not fit belongs to a file that was cut; reading on tells where.
    if count > max(room, most):
        raise StopReadingError(
            "count-impossible",
            f"the header announces {count} {what}, the {walk.size} bytes of the file can hold {room} at most",
        )
    if count > most:
        raise StopReadingError("beyond-our-limits", f"{count} {what} are more than the {most} that we read")
    return count


def _read_keys(walk: Walk, header: Header) -> None:
    header.reached = "keys"
    count = header.key_count or 0
    for number in range(count):
        walk.where = f"key {number + 1} of {count}"
        key = walk.name().decode("utf-8", "replace")
        walk.where = f"key {number + 1} of {count}, {_quote(key)}"
        entry = _read_value(walk)
        if not key:
            header.add("key-empty", f"key {number + 1} of {count} has no name")
        elif key in header.entries:
            header.add("key-duplicate", f"the key {_quote(key)} occurs twice")
        else:
            header.entries[key] = entry


def _read_value(walk: Walk) -> Entry:
    type_id = walk.u32()
    scalar = SCALAR_FORMS.get(type_id)
    if scalar is not None:
        index = walk.need(scalar.size)
        walk.at += scalar.size
        return Entry(type_id, scalar.unpack_from(walk.buffer, index)[0])
    if type_id == STRING:
        return Entry(type_id, take_text(walk))
    if type_id == ARRAY:
        return Entry(type_id, _read_array(walk))
    raise StopReadingError("value-type-unknown", f"{walk.where}, has the unknown value type {type_id}")


def _read_array(walk: Walk) -> Array:
    element_type = walk.u32()
    count = walk.u64()
    if element_type == ARRAY:
        raise StopReadingError(
            "array-nested", f"{walk.where}, is an array of arrays, which llama.cpp does not load"
        )
    scalar = SCALAR_FORMS.get(element_type)
    if scalar is None and element_type != STRING:
        raise StopReadingError(
            "value-type-unknown", f"{walk.where}, has the unknown element type {element_type}"
        )
    smallest = 8 if scalar is None else scalar.size
    if count > LONGEST or count * smallest > walk.size - walk.at:
        raise StopReadingError(
            "count-impossible" if count > LONGEST else "header-truncated",
            f"{walk.where}, announces {count} elements of at least {smallest} bytes,"
            f" and {walk.size - walk.at} bytes of the file are left",
        )
    offset = walk.at
    if scalar is None:
        return Array(element_type, count, offset, walk.skip_strings(count))
    walk.skip(count * scalar.size)
    return Array(element_type, count, offset)


def _read_alignment(header: Header) -> None:
    entry = header.entries.get("general.alignment")
    if entry is None:
        header.alignment = 32
    elif entry.type_name != "u32" or not isinstance(entry.value, int):
        header.add("alignment-invalid", f"general.alignment is of type {entry.type_name} instead of u32")
    elif entry.value == 0 or entry.value & (entry.value - 1):
        header.add("alignment-invalid", f"general.alignment is {entry.value}, which is not a power of two")
    else:
        header.alignment = entry.value


def _read_tensors(walk: Walk, header: Header) -> None:
    header.reached = "tensors"
    count = header.tensor_count or 0
    seen: set[str] = set()
    for number in range(count):
        walk.where = f"tensor {number + 1} of {count}"
        raw = walk.name()
        name = raw.decode("utf-8", "replace")
        if len(raw) >= LONGEST_NAME:
            header.add(
                "tensor-name-too-long",
                f"the tensor name {_quote(name)} has {len(raw)} bytes, fewer than {LONGEST_NAME} are allowed",
            )
        if name in seen:
            header.add("tensor-duplicate", f"the tensor {_quote(name)} occurs twice")
        seen.add(name)
        header.tensors.append(_read_tensor(walk, header, name))


def _read_tensor(walk: Walk, header: Header, name: str) -> Tensor:
    dimension_count = walk.u32()
    if dimension_count > MOST_DIMENSIONS:
        raise StopReadingError(
            "dimensions-impossible",
            f"the tensor {_quote(name)} has {dimension_count} dimensions,"
            f" at most {MOST_DIMENSIONS} are allowed",
        )
    tail = _TENSOR_TAIL[dimension_count]
    index = walk.need(tail.size)
    walk.at += tail.size
    *dimensions, type_id, offset = tail.unpack_from(walk.buffer, index)
    elements = 1
    for length in dimensions:
        elements *= length
    shape = tuple(dimensions)
    size = tensor_bytes(type_id, shape)
    if elements > INT64_MAX or (size or 0) > INT64_MAX or not elements:
        header.add(
            "dimensions-impossible", f"the tensor {_quote(name)} has the impossible shape {list(shape)}"
        )
        return Tensor(name, shape, type_id, offset, None, None)
    if size is None:
        _explain_no_size(header, name, shape, type_id)
    return Tensor(name, shape, type_id, offset, elements, size)


def _explain_no_size(header: Header, name: str, shape: tuple[int, ...], type_id: int) -> None:
    if type_id in BLOCKS:
        header.add(
            "row-not-whole-blocks",
            f"the tensor {_quote(name)} of type {type_name(type_id)} has rows of {shape[0]} elements,"
            f" not a multiple of its block of {BLOCKS[type_id][1]}",
        )
    elif type_id in REMOVED:
        header.add(
            "type-removed",
            f"the tensor {_quote(name)} is of type {REMOVED[type_id]}, which llama.cpp no longer loads",
        )
    else:
        header.add("type-unknown", f"the tensor {_quote(name)} is of unknown type {type_id}")


def _check_offsets(header: Header, alignment: int) -> None:
    """Hold each tensor's offset against the end of the one before it, padded."""
    expected: int | None = 0
    for tensor in header.tensors:
        offset = tensor.offset
        if offset % alignment:
            header.add(
                "tensor-misaligned",
                f"the tensor {_quote(tensor.name)} starts at {offset}, not a multiple of {alignment}",
            )
        elif expected is not None and offset != expected:
            how, said = ("overlap", "overlaps") if offset < expected else ("gap", "leaves a gap to")
            header.add(
                f"tensor-{how}",
                f"the tensor {_quote(tensor.name)} {said} the one before it: it starts at {offset},"
                f" and that one ends at {expected} of the data",
            )
        expected = None if tensor.size_bytes is None else _pad(offset + tensor.size_bytes, alignment)


def _pad(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


def _quote(name: str) -> str:
    """Return a name from a file, safe to print and not too long."""
    return repr(name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "...")


def _value_type_name(type_id: int) -> str:
    if type_id == STRING:
        return "string"
    return SCALARS[type_id][0] if type_id in SCALARS else f"type {type_id}"
