"""What a scan of a large part searches for, and how it stops to search for what is on every line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from llamaops.diagnosis.engine import finder, in_block
from llamaops.diagnosis.rule import Signal

ENOUGH_HITS = 32
"""Hits of a signal after which more of the same tell nothing but the last one."""
OFTEN = 0.02
"""Share of the sampled lines from which something is worth dropping."""
FACT, MARK, ERROR = -1, -2, -3

Sampled = tuple[str, Sequence[int]]
"""A line that was looked at, and the signals in it."""
Needle = tuple[str, bool]
"""A substring, and whether case does not matter."""


class Needles:
    """Substrings and patterns to stop at, and who asked for each.

    It begins with substrings, which are the fastest. One that many lines have is dropped when its owners
    have seen enough, and replaced by the owners' own patterns when it only seems to match.
    """

    def __init__(
        self,
        signals: Sequence[Signal],
        kind: str,
        *,
        facts: Iterable[str],
        marks: Iterable[str],
        errors: Iterable[str],
    ) -> None:
        self._signals = signals
        self._owners: dict[Needle, set[int]] = {}
        self._patterns: set[int] = set()
        for index, signal in enumerate(signals):
            if signal.concerns(kind):
                for needle in signal.needles:
                    self._owners.setdefault((needle, signal.fold), set()).add(index)
        for owner, needles in ((FACT, facts), (MARK, marks), (ERROR, errors)):
            for needle in needles:
                self._owners.setdefault((needle, False), set()).add(owner)
        self.dropped: tuple[bytes, ...] = ()
        self._rebuild()

    def _rebuild(self) -> None:
        patterns = [in_block(self._signals[index].regex) for index in self._patterns]
        patterns += [f"(?i:{re.escape(needle)})" for needle, fold in self._owners if fold]
        self.find = finder((needle for needle, fold in self._owners if not fold), patterns)

    def thin_out(
        self,
        sample: Sequence[Sampled],
        counts: Mapping[int, int],
        *,
        facts_done: bool,
        errors_done: bool,
    ) -> None:
        """Drop what many lines have and whose owners have seen enough; sharpen what only seems to match."""
        least = max(2.0, OFTEN * len(sample))
        done = {FACT: facts_done, MARK: True, ERROR: errors_done}
        changed = False
        for needle in [n for n in self._owners if sum(_has(line, n) for line, _ in sample) >= least]:
            owners = self._owners[needle]
            waiting = {
                owner
                for owner in owners
                if not (done[owner] if owner < 0 else counts.get(owner, 0) >= ENOUGH_HITS)
            }
            if any(owner < 0 for owner in waiting):
                continue
            del self._owners[needle]
            self._patterns |= waiting
            if not needle[1] and not owners - waiting <= {FACT, ERROR}:
                self.dropped += (needle[0].encode(),)
            changed = True
        for index in list(self._patterns):
            often = sum(index in seen for _, seen in sample) >= least
            if often and counts.get(index, 0) >= ENOUGH_HITS:
                self._patterns.discard(index)
                changed = True
        if changed:
            self._rebuild()


def _has(line: str, needle: Needle) -> bool:
    return needle[0] in (line.lower() if needle[1] else line)
