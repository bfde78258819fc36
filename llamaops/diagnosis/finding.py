"""What a scan of a large part searches for, and how it stops to search for what is on every line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from llamaops.diagnosis.engine import finder, in_block
from llamaops.diagnosis.rule import Signal

ENOUGH_HITS = 8
"""Hits of a signal after which more of the same tell nothing but the last one."""
OFTEN = 0.02
"""Share of the sampled lines from which something is worth dropping."""
FACT, MARK, ERROR = -1, -2, -3

LEVEL = "(?m:^E )"
"""A level at the start of a line, which no substring tells from the letter in a word."""

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
        self._levels = bool(tuple(errors))
        self.dropped: tuple[bytes, ...] = ()
        self._rebuild()

    def _rebuild(self) -> None:
        patterns = [in_block(self._signals[index].regex) for index in self._patterns]
        patterns += [f"(?i:{re.escape(needle)})" for needle, fold in self._owners if fold]
        patterns += [LEVEL] if self._levels else []
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
        changed, self._levels = self._levels and errors_done, self._levels and not errors_done
        for needle in _often(self._owners, [line for line, _ in sample], least):
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
            enough = counts.get(index, 0) >= ENOUGH_HITS
            if enough and sum(index in seen for _, seen in sample) >= least:
                self._patterns.discard(index)
                changed = True
        if changed:
            self._rebuild()


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


def _often(needles: Iterable[Needle], lines: Sequence[str], least: float) -> list[Needle]:
    """Return the needles that at least so many of the lines have.

    Most lines of a log are alike but for their figures, and most needles are in none of them: lines are
    counted by what they are without figures, and a needle is looked for in all of them at once first.
    """
    alike: dict[str, tuple[str, int]] = {}
    for line in lines:
        key = line.translate(_WITHOUT_DIGITS)
        alike[key] = (line, alike.get(key, ("", 0))[1] + 1)
    counted = [(line, line.lower(), count) for line, count in alike.values()]
    whole, whole_lower = "\n".join(c[0] for c in counted), "\n".join(c[1] for c in counted)
    return [
        (text, fold)
        for text, fold in needles
        if text in (whole_lower if fold else whole)
        and sum(count for line, lower, count in counted if text in (lower if fold else line)) >= least
    ]
