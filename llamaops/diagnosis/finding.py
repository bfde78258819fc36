"""What a scan of a large part searches for, and how it stops to search for what is on every line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llamaops.diagnosis.engine import finder, in_block
from llamaops.diagnosis.rule import Signal

ENOUGH_HITS = 32
"""Hits of a signal after which more of the same tell nothing but the last one."""
OFTEN = 0.02
"""Share of the sampled lines from which something is worth dropping."""
MIN_NEEDLE = 9
"""A shorter substring is on too many lines: the pattern itself is searched for."""
FACT, MARK, ERROR = -1, -2, -3

Sampled = tuple[str, Sequence[int]]
"""A line that was looked at, and the signals in it."""


class Needles:
    """Substrings and patterns to stop at, and who asked for each."""

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
        self._owners: dict[str, set[int]] = {}
        self._patterns: set[int] = set()
        for index, signal in enumerate(signals):
            if not signal.needles or not signal.concerns(kind):
                continue
            if signal.fold or min(map(len, signal.needles)) < MIN_NEEDLE:
                self._patterns.add(index)
                continue
            for needle in signal.needles:
                self._owners.setdefault(needle, set()).add(index)
        for owner, needles in ((FACT, facts), (MARK, marks), (ERROR, errors)):
            for needle in needles:
                self._owners.setdefault(needle, set()).add(owner)
        self.dropped: tuple[bytes, ...] = ()
        self._rebuild()

    def _rebuild(self) -> None:
        self.find = finder(self._owners, (in_block(self._signals[i].regex) for i in self._patterns))

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
        for needle in [n for n in self._owners if sum(n in line for line, _ in sample) >= least]:
            open_ones = {
                owner
                for owner in self._owners[needle]
                if not (done[owner] if owner < 0 else counts.get(owner, 0) >= ENOUGH_HITS)
            }
            if any(owner < 0 for owner in open_ones):
                continue
            owners = self._owners.pop(needle)
            self._patterns |= open_ones
            if not owners - open_ones <= {FACT, ERROR}:
                self.dropped += (needle.encode(),)
            changed = True
        for index in list(self._patterns):
            often = sum(index in seen for _, seen in sample) >= least
            if often and counts.get(index, 0) >= ENOUGH_HITS:
                self._patterns.discard(index)
                changed = True
        if changed:
            self._rebuild()
