"""The substrings that every match of a pattern must have: what a scan looks for first."""

from __future__ import annotations

from re import _constants as ops  # type: ignore[attr-defined]  # the parser of re, used when rules are built
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MIN_CHARS = 4
# A JSON log escapes these, so that a needle must not span them.
_ESCAPED = frozenset('"\\\t')


def needles_of(regex: str) -> tuple[str, ...]:
    """Return substrings one of which every match contains.

    Raises: ValueError where a match need not contain a substring of four characters.
    """
    found = _required(list(parser.parse(regex)))
    if not found or min(map(len, found)) < MIN_CHARS:
        raise ValueError(f"no literal text of {MIN_CHARS} characters that every match must contain")
    return tuple(sorted(found))


def _required(items: list[Any]) -> set[str] | None:
    best: set[str] | None = None
    run = ""

    def better(candidate: set[str] | None) -> None:
        nonlocal best
        if candidate and (best is None or _score(candidate) > _score(best)):
            best = candidate

    for op, value in items:
        if op is ops.LITERAL and chr(value) not in _ESCAPED and value < 127:  # noqa: PLR2004 - ASCII
            run += chr(value)
            continue
        if op is ops.SUBPATTERN:
            inner = list(value[3])
            if all(o is ops.LITERAL and chr(v) not in _ESCAPED for o, v in inner):
                run += "".join(chr(v) for _o, v in inner)
                continue
        better({run} if run else None)
        better(_joined(run, op, value))
        run = ""
        better(_inside(op, value))
    better({run} if run else None)
    return best


def _joined(run: str, op: Any, value: Any) -> set[str] | None:  # noqa: ANN401 - nodes of re's own parser
    """Return a literal run together with how each branch after it begins."""
    if op is ops.SUBPATTERN and len(value[3]) == 1:
        op, value = value[3][0]
    if op is not ops.BRANCH or not run:
        return None
    beginnings = {run + _beginning(list(branch)) for branch in value[1]}
    return beginnings if run not in beginnings else None


def _beginning(items: list[Any]) -> str:
    text = ""
    for op, value in items:
        if op is not ops.LITERAL or chr(value) in _ESCAPED:
            break
        text += chr(value)
    return text


def _inside(op: Any, value: Any) -> set[str] | None:  # noqa: ANN401 - nodes of re's own parser
    if op is ops.SUBPATTERN:
        return _required(list(value[3]))
    if op is ops.BRANCH:
        branches = [_required(list(branch)) for branch in value[1]]
        if any(branch is None for branch in branches):
            return None
        return set().union(*(branch for branch in branches if branch))
    if op in {ops.MAX_REPEAT, ops.MIN_REPEAT} and value[0] >= 1:
        return _required(list(value[2]))
    return None


def _score(candidate: set[str]) -> tuple[int, int]:
    shortest = min(map(len, candidate))
    return (min(shortest, 16), -len(candidate))
