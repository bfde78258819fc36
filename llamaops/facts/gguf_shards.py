"""Names of the files of a split model, and whether their headers agree.

Source: llama_split_path and llama_model_loader of llama.cpp; `NAME-00001-of-0000N.gguf`, numbers from 1 in
the name and from 0 in `split.no`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from llamaops.facts.gguf_header import Header
from llamaops.facts.gguf_shapes import Problem
from llamaops.schema.shape import Shape

MOST_SHARDS = 1024
DIGITS = 5
_ENDING = len("-00001-of-00001.gguf")


class ShardName(Shape, frozen=True, kw_only=True):
    """A file name of the form `NAME-0000k-of-0000N.gguf`, in its parts."""

    prefix: str
    """The path up to the number."""
    number: int
    """k, from 1."""
    count: int
    """N."""

    def path(self, number: int) -> str:
        """Return the path of another shard of the same model."""
        return f"{self.prefix}-{number:05d}-of-{self.count:05d}.gguf"


def parse_shard_name(path: str) -> ShardName | None:
    """Return the parts of a shard's name, None for a name of another form."""
    ending = path[-_ENDING:]
    number, count = ending[1:6], ending[10:15]
    if not (number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        return None
    name = ShardName(prefix=path[:-_ENDING], number=int(number), count=int(count))
    whole = name.path(name.number) == path and os.path.basename(name.prefix)
    return name if whole and 1 <= name.number <= name.count else None


def whole_number(header: Header, key: str) -> int | None:
    """Return the value of a key of integer type, None when it is absent or of another type."""
    entry = header.entries.get(key)
    if entry is None or isinstance(entry.value, bool) or not isinstance(entry.value, int):
        return None
    return entry.value


def judge_split(name: ShardName | None, header: Header) -> list[Problem]:
    """Hold a file's own split keys against its name."""
    count = whole_number(header, "split.count")
    number = whole_number(header, "split.no")
    found: list[tuple[str, str]] = []
    if name is None:
        if count is not None and count > 1:
            ending = f"-{(number or 0) + 1:05d}-of-{count:05d}.gguf"
            sentence = (
                f"the header says part {(number or 0) + 1} of {count}, but the name does not end in {ending}"
            )
            found.append(("shard-renamed", sentence))
    elif count is None:
        if name.count > 1:
            found.append(
                ("shard-keys-absent", f"the name says part {name.number} of {name.count}, the header nothing")
            )
    elif count != name.count:
        found.append(("shards-disagree", f"the name says {name.count} parts, split.count says {count}"))
    elif number is not None and number + 1 != name.number:
        found.append(("shards-disagree", f"the name says part {name.number}, split.no says {number + 1}"))
    elif number is None and count > 1:
        found.append(("shards-disagree", "split.no is absent"))
    return [Problem(slug=slug, sentence=sentence, place=header.place) for slug, sentence in found]


def judge_agreement(headers: Sequence[Header]) -> list[Problem]:
    """Hold the headers of all shards against each other: keys, tensor names, the total of tensors."""
    first = headers[0]
    problems = [problem for other in headers[1:] for problem in _compare(first, other)]
    total = whole_number(first, "split.tensors.count")
    if any(header.reached != "end" for header in headers):
        return problems
    there = sum(len(header.tensors) for header in headers)
    if total is None:
        problems.append(_disagree(first, "split.tensors.count is absent"))
    elif total != there:
        problems.append(_disagree(first, f"split.tensors.count says {total} tensors, the parts have {there}"))
    return problems + _duplicates(headers)


def _compare(first: Header, other: Header) -> list[Problem]:
    problems = []
    for key, entry in other.entries.items():
        here = first.entries.get(key)
        # Arrays and long texts are compared by length: their elements are not read.
        if here is None or key == "split.no" or _comparable(here.value) == _comparable(entry.value):
            continue
        problems.append(
            _disagree(
                other,
                f"{key[:64]!r} differs from {os.path.basename(first.place)}:"
                f" {_comparable(entry.value)!r:.80} against {_comparable(here.value)!r:.80}",
            )
        )
        if len(problems) == 3:  # noqa: PLR2004 - enough to see what is wrong
            break
    return problems


def _comparable(value: object) -> object:
    text = getattr(value, "text", None)
    if text is not None:
        return text
    return getattr(value, "count", value)


def _duplicates(headers: Sequence[Header]) -> list[Problem]:
    seen: dict[str, str] = {}
    for header in headers:
        for tensor in header.tensors:
            where = seen.setdefault(tensor.name, header.place)
            if where != header.place:
                return [
                    _disagree(header, f"the tensor {tensor.name[:64]!r} is also in {os.path.basename(where)}")
                ]
    return []


def _disagree(header: Header, sentence: str) -> Problem:
    return Problem(slug="shards-disagree", sentence=sentence, place=header.place)
