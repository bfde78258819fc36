"""Pattern matching in linear time: google-re2 where it is installed, else `re` behind substrings.

Two stages, as in every fast log search: one automaton of plain substrings runs over whole blocks, and
only lines that it stops at are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Protocol

from llamaops.diagnosis.rule import Signal

MAX_TEXT = 8192
"""Characters of a line that patterns see."""


class Found(Protocol):
    """A match, of either library."""

    def groupdict(self) -> dict[str, str | None]:
        """Return the named groups."""
        ...


@cache
def re2() -> Any:  # noqa: ANN401 - a module without types
    """Return google-re2, or None where it is not installed."""
    try:
        import re2 as module
    except ImportError:
        return None
    return module


@lru_cache(maxsize=2048)
def _compiled(regex: str) -> Any:  # noqa: ANN401 - a pattern of either library
    module = re2()
    if module is None:
        return re.compile(regex, re.ASCII)
    options = module.Options()
    options.max_mem = 16 << 20
    options.log_errors = False
    return module.compile(regex, options)


def search(regex: str, text: str) -> Found | None:
    """Search one line for one pattern."""
    found: Found | None = _compiled(regex).search(text[:MAX_TEXT])
    return found


class Matcher:
    """Says which signals a line has."""

    def __init__(self, signals: Sequence[Signal], *, many_lines: bool) -> None:
        self._signals = signals
        self._set = _set_of(tuple(s.regex for s in signals)) if many_lines and re2() is not None else None
        self._needles: list[tuple[str, int]] = []
        self._folded: list[tuple[str, int]] = []
        self._always: list[int] = []
        if self._set is None:
            self._always = [index for index, signal in enumerate(signals) if not signal.needles]
            for index, signal in enumerate(signals):
                target = self._folded if signal.fold else self._needles
                target += [(needle, index) for needle in signal.needles]

    def matches(self, text: str) -> list[int]:
        """Return the signals in a line, in order of their index."""
        text = text[:MAX_TEXT]
        if self._set is not None:
            return sorted(self._set.Match(text.encode("utf-8", "replace")) or ())
        lower = text.lower()
        likely = {index for needle, index in self._needles if needle in text}
        likely |= {index for needle, index in self._folded if needle in lower}
        likely.update(self._always)
        return sorted(i for i in likely if search(self._signals[i].regex, text) is not None)


@lru_cache(maxsize=1)
def _set_of(regexes: tuple[str, ...]) -> Any:  # noqa: ANN401 - a set of google-re2
    module = re2()
    options = module.Options()
    options.max_mem = 16 << 20
    options.log_errors = False
    made = module.Set.SearchSet(options)
    for regex in regexes:
        made.Add(regex)
    made.Compile()
    return made


Finder = Callable[[bytes, int, int], int]
"""Returns where the next interesting place between two places of a block is, or -1."""


def in_block(regex: str) -> str:
    """Return a pattern for one line as a pattern for a block of raw lines.

    An anchor at its start goes, because raw lines may begin with a time stamp; names of groups too.
    """
    flags, body = ("mi", regex[4:]) if regex.startswith("(?i)") else ("m", regex)
    body = re.sub(r"\(\?P<\w+>", "(?:", body.removeprefix("^"))
    return f"(?{flags}:{body})"


def finder(needles: Iterable[str], patterns: Iterable[str]) -> Finder:
    """Return a search for any of many substrings and patterns in a block of bytes."""
    return _finder(tuple(sorted(set(needles))), tuple(sorted(set(patterns))))


@lru_cache(maxsize=2)
def _finder(plain: tuple[str, ...], patterns: tuple[str, ...]) -> Finder:
    regex = "|".join([*(re.escape(needle) for needle in plain), *patterns]).encode()
    module = re2()
    if module is None:
        pattern = re.compile(regex)
    else:
        options = module.Options()
        options.max_mem = 16 << 20
        options.never_capture = True
        options.log_errors = False
        pattern = module.compile(regex, options)

    def find(block: bytes, start: int, end: int) -> int:
        found = pattern.search(block, start, end)
        return -1 if found is None else int(found.start())

    return find
