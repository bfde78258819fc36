"""A cause in words: its sentence with the values of the situation, its lines, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from llamaops.diagnosis.candidates import Candidate
from llamaops.diagnosis.expression import Value
from llamaops.diagnosis.scanned import ErrorSeen
from llamaops.schema.diagnosis import Cause, EvidenceLine, NextAction, Place, Sure, UnexplainedError

MAX_EVIDENCE = 8
_WHY: dict[Sure, str] = {
    "certain": "the message says so itself",
    "likely": "the lines fit this cause best, and could have another",
    "possible": "the lines are a sign of it, and no proof",
}
_FIELD = re.compile(r"\{(\w+)(?:\|([^{}]*))?\}")
_PLACES = {
    "model_load": "that the model was loaded",
    "api_response": "that the server answers",
    "generated_output": "that it generates",
    "binary": "that the program runs",
}


class Wording:
    """Writes the texts of one answer."""

    def __init__(self, names: Sequence[str], secrets: Sequence[str]) -> None:
        self._names = names
        self._secrets = secrets

    def clean(self, text: str) -> str:
        """Return a text without the situation's secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text

    def line(self, part: int, number: int, text: str) -> EvidenceLine:
        """Return a line with the name of its part."""
        return EvidenceLine(part=self._names[part], number=number, text=self.clean(text))

    def error(self, seen: ErrorSeen) -> UnexplainedError:
        """Return an error that no rule explains, with its neighbourhood."""
        return UnexplainedError(
            line=self.line(seen.part, seen.number, seen.text),
            before=tuple(self.clean(text) for text in seen.before),
            after=tuple(self.clean(text) for text in seen.after),
        )

    def cause(self, candidate: Candidate, role: str) -> Cause:
        """Return a cause in words."""
        rule, values = candidate.rule, candidate.values
        return Cause(
            slug=rule.slug,
            says=self.clean(filled(rule.says, values)),
            boundary=rule.boundary,
            severity=rule.severity,
            sure=rule.sure,
            why_sure=self.clean(filled(rule.why, values)) or _why(candidate),
            evidence=tuple(self.line(h.part, h.number, h.shown) for h in candidate.hits[:MAX_EVIDENCE]),
            rules_out=rule.rules_out,
            next=NextAction(
                do=self.clean(filled(rule.next.do, values)),
                run=self.clean(filled(rule.next.run, values)) if rule.next.run else None,
                changes_state=rule.next.changes_state,
            ),
            do_not_conclude=rule.do_not_conclude,
            role=role,  # type: ignore[arg-type]  # one of the words of Cause.role
        )


def _why(candidate: Candidate) -> str:
    if candidate.parts > 1 and candidate.rule.sure != "possible":
        return f"{candidate.parts} parts agree"
    return _WHY[candidate.rule.sure]


def filled(text: str, values: Mapping[str, Value]) -> str:
    """Fill `{name|otherwise}` from values."""

    def value(found: re.Match[str]) -> str:
        known = values.get(found[1], found[2] if found[2] is not None else "?")
        return f"{known:,.10g}" if isinstance(known, float) else str(known)[:200]

    return _FIELD.sub(value, text)


def words_of(place: Place) -> str:
    """Return what a proven boundary means, after "prove"."""
    return _PLACES.get(place, place)
