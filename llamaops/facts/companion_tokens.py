"""Whether two vocabularies have the same tokens, as speculative decoding asks.

Source: common/speculative.cpp: at most 128 tokens more or less, and equal texts from token 5 on.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol

from llamaops.facts.gguf_walk import MARK_EVERY, Array, StopReadingError, Walk

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import OpenFile, System

MOST_DIFFERENCE = 128
FIRST_COMPARED = 5
CHUNK_BYTES = 2**20
LONGEST_BYTES = 64 * 2**20
KEY = "tokenizer.ggml.tokens"


class Comparison(Protocol):
    """Where the outcome of a comparison goes."""

    agrees: list[str]
    differs: list[str]
    not_compared: list[str]


def compare(found: Comparison, system: System, model: Probe, other: Probe) -> None:
    """Compare number and texts of two vocabularies."""
    ours, theirs = _tokens(model), _tokens(other)
    if ours is None or theirs is None or model.main is None or other.main is None:
        found.not_compared.append("vocabulary")
        return
    if abs(ours.count - theirs.count) > MOST_DIFFERENCE:
        found.differs.append(f"vocabulary: the model has {ours.count} tokens, this file {theirs.count}")
        return
    try:
        with system.open_regular(model.main.path) as one, system.open_regular(other.main.path) as two:
            index = first_difference(one, ours, two, theirs)
    except (OSError, StopReadingError) as error:
        found.not_compared.append(f"texts of the tokens ({error})")
        return
    if index is None:
        found.agrees.append(f"vocabulary: {min(ours.count, theirs.count)} tokens of equal text")
    else:
        found.differs.append(f"vocabulary: token {index} has another text")


def _tokens(probe: Probe) -> Array | None:
    header = probe.main.header if probe.main is not None else None
    entry = header.entries.get(KEY) if header is not None else None
    return entry.value if entry is not None and isinstance(entry.value, Array) and entry.value.marks else None


def first_difference(one: OpenFile, ours: Array, two: OpenFile, theirs: Array) -> int | None:
    """Return the first token from token 5 on whose text differs, None where all that both have are equal.

    Raises: OSError; StopReadingError for a vocabulary that cannot be walked or is too long.
    """
    count = min(ours.count, theirs.count)
    if count <= FIRST_COMPARED:
        return None
    start, other_start = (
        offset_of(file, array, FIRST_COMPARED) for file, array in ((one, ours), (two, theirs))
    )
    length = offset_of(one, ours, count) - start
    if length > LONGEST_BYTES:
        raise StopReadingError("beyond-our-limits", "the vocabulary is too long to be compared")
    for done in range(0, length, CHUNK_BYTES):
        size = min(CHUNK_BYTES, length - done)
        here, there = one.read_at(start + done, size), two.read_at(other_start + done, size)
        if here != there:
            at = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), len(there))
            return _token_at(one, ours, start + done + at)
    return None


def offset_of(file: OpenFile, array: Array, index: int) -> int:
    """Return where a token begins; the one after the last: where the array ends.

    Raises: OSError, StopReadingError.
    """
    mark = min(index // MARK_EVERY, len(array.marks) - 1)
    walk = Walk(file, array.marks[mark])
    walk.skip_strings(index - mark * MARK_EVERY)
    return walk.at


def _token_at(file: OpenFile, array: Array, offset: int) -> int:
    mark = max(bisect_right(array.marks, offset) - 1, 0)
    walk = Walk(file, array.marks[mark])
    index = mark * MARK_EVERY
    while True:
        walk.skip_strings(1)
        if walk.at > offset or index >= array.count:
            return index
        index += 1
