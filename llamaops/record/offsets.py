"""Rewrite a text and still know where each part of it came from.

A redaction rule often has to look at a text in another form: without colour codes, with a wrapped line
joined, with an encoding undone. What it finds must then be removed from the original. A `Rewrite` is one
step from a text to another form, with the way back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from re import Match, Pattern
from typing import AnyStr, Generic


class Rewrite(Generic[AnyStr]):
    """A rewritten text and the way back to the original; made by `rewrite`."""

    __slots__ = ("_copied_to", "_sizes", "_taken_from", "text")

    def __init__(self, text: AnyStr, copied_to: list[int], taken_from: list[int], sizes: list[int]) -> None:
        self.text: AnyStr = text
        self._copied_to = copied_to
        self._taken_from = taken_from
        self._sizes = sizes

    def _before(self, position: int, piece: int) -> int:
        """Return where in the original a position inside a copied piece, or its far edge, lies."""
        return self._taken_from[piece] + min(position - self._copied_to[piece], self._sizes[piece])

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a span of the new text came from, as tight as possible."""
        first = bisect_right(self._copied_to, start) - 1
        if start - self._copied_to[first] < self._sizes[first]:
            source_start = self._before(start, first)
        else:  # inside the replacement after a piece: all of what was replaced belongs to it
            source_start = self._taken_from[first] + self._sizes[first]
        last = bisect_left(self._copied_to, end) - 1
        if end - self._copied_to[last] <= self._sizes[last]:
            return source_start, self._before(end, last)
        following = last + 1
        return source_start, self._taken_from[following]

    def back_wide(self, start: int, end: int) -> tuple[int, int]:
        """Return the same span with everything around it that the rewriting had dropped."""
        before = self.back(start - 1, start)[1] if start > 0 else 0
        tight_start, tight_end = self.back(start, end)
        after = self.back(end, end + 1)[0] if end < len(self.text) else self._total()
        return min(before, tight_start), max(after, tight_end)

    def joints(self) -> list[int]:
        """Return where in the new text something was replaced."""
        return self._copied_to[1:]

    def _total(self) -> int:
        return self._taken_from[-1] + self._sizes[-1]


def rewrite(
    pattern: Pattern[AnyStr], replace: Callable[[Match[AnyStr]], AnyStr], text: AnyStr
) -> Rewrite[AnyStr]:
    """Do what `pattern.sub(replace, text)` does, and remember the way back."""
    pieces: list[AnyStr] = []
    copied_to: list[int] = []
    taken_from: list[int] = []
    sizes: list[int] = []
    at = position = 0
    for match in pattern.finditer(text):
        start, end = match.span()
        copied_to.append(position)
        taken_from.append(at)
        sizes.append(start - at)
        new = replace(match)
        pieces += [text[at:start], new]
        position += start - at + len(new)
        at = end
    copied_to.append(position)
    taken_from.append(at)
    sizes.append(len(text) - at)
    pieces.append(text[at:])
    return Rewrite(text[:0].join(pieces), copied_to, taken_from, sizes)
