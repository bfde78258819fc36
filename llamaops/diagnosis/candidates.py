"""Which rules hold of a situation, and on which lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from llamaops.diagnosis import engine, expression
from llamaops.diagnosis.expression import Value
from llamaops.diagnosis.rule import Condition, Rule, RuleSet
from llamaops.diagnosis.scanned import Hit, Scanned
from llamaops.diagnosis.situation import Situation

MAX_SHOWN = 2
"""Lines taken of one thing that only belongs to the proof."""


class Candidate(msgspec.Struct):
    """A rule that holds."""

    rule: Rule
    hits: tuple[Hit, ...]
    """Lines that its `match` rests on, then those of its `needs`."""
    values: dict[str, Value]
    first: tuple[int, int]
    """Part and number of its first line; (-1, 0) when it rests on facts alone."""
    last: tuple[int, int]
    parts: int
    """How many parts it rests on."""


class _Held(msgspec.Struct):
    hits: tuple[Hit, ...] = ()


def candidates(rules: RuleSet, situation: Situation) -> list[Candidate]:
    """Return every rule that holds of a situation."""
    judge = _Judge(rules, situation)
    return [found for rule in rules.rules if (found := judge.candidate(rule)) is not None]


class _Judge:
    def __init__(self, rules: RuleSet, situation: Situation) -> None:
        self._signals = rules.signals
        self._facts = situation.facts
        self._places = situation.places
        self._scans: Sequence[Scanned] = situation.scans

    def candidate(self, rule: Rule) -> Candidate | None:
        if not self._in_builds(rule):
            return None
        primary = self._held(rule.match)
        if primary is None:
            return None
        hits = list(primary.hits)
        for need in rule.needs:
            held = self._held(need)
            if held is None:
                return None
            hits += held.hits
        if any(self._held(condition) is not None for condition in rule.unless):
            return None
        values = self._values(hits) | {"hits": len(primary.hits)}
        if not all(expression.holds(text, values) for text in rule.facts):
            return None
        hits += [hit for text in rule.facts for hit in self._lines_of(text)]
        for condition in rule.shows:
            held = self._held(condition)
            hits += held.hits[:MAX_SHOWN] if held is not None else ()
        return _candidate(rule, hits, values, primary.hits)

    def _lines_of(self, text: str) -> tuple[Hit, ...]:
        """Return the lines that the facts in an expression are from."""
        return tuple(self._places[name] for name in sorted(expression.names(text)) if name in self._places)

    def _in_builds(self, rule: Rule) -> bool:
        build = self._facts.get("build_number")
        if not isinstance(build, int) or build < 100:  # noqa: PLR2004 - 0 and 1 are packagers' words
            return True
        return (rule.since is None or build >= rule.since) and (rule.until is None or build <= rule.until)

    def _held(self, condition: Condition) -> _Held | None:
        match condition.op:
            case "line":
                hits = self._hits(condition)
                return _Held(hits) if hits else None
            case "fact":
                if not expression.holds(condition.fact, self._facts):
                    return None
                return _Held(self._lines_of(condition.fact))
            case "not":
                return None if self._held(condition.of[0]) is not None else _Held()
            case "any":
                held = [h for c in condition.of if (h := self._held(c)) is not None]
                return _Held(tuple(hit for h in held for hit in h.hits)) if held else None
            case "all":
                every = [self._held(c) for c in condition.of]
                if any(h is None for h in every):
                    return None
                return _Held(tuple(hit for h in every if h is not None for hit in h.hits))

    def _hits(self, condition: Condition) -> tuple[Hit, ...]:
        return tuple(
            hit
            for scan in self._scans
            if not condition.kinds or scan.part.kind in condition.kinds
            for hit in scan.hits.get(condition.signal, ())
        )

    def _values(self, hits: Sequence[Hit]) -> dict[str, Value]:
        values = dict(self._facts)
        named = [hit for hit in hits if hit.signal >= 0 and "(?P<" in self._signals[hit.signal].regex]
        for hit in reversed(named):  # the first hit wins
            found = engine.search(self._signals[hit.signal].regex, hit.text)
            if found is not None:
                values |= {name: value for name, value in found.groupdict().items() if value is not None}
        return values


def _candidate(
    rule: Rule, hits: Sequence[Hit], values: Mapping[str, Value], primary: Sequence[Hit]
) -> Candidate:
    places = [(hit.part, hit.number) for hit in primary] or [(-1, 0)]
    seen: dict[tuple[int, int], Hit] = {}
    for hit in hits:
        seen.setdefault((hit.part, hit.number), hit)
    return Candidate(
        rule=rule,
        hits=tuple(seen.values()),
        values=dict(values),
        first=min(places),
        last=max(places),
        parts=len({hit.part for hit in hits}),
    )
