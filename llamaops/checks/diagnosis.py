"""Checks of a diagnosis: one for each boundary, which applies to the boundary that the answer is about."""

from __future__ import annotations

from collections.abc import Callable

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.schema.boundary import LADDER, BoundaryName
from llamaops.schema.diagnosis import Diagnosis

Judge = Callable[[Diagnosis], Verdict | NotApplicable]


def boundary_of(diagnosis: Diagnosis) -> BoundaryName:
    """Return the rung that a diagnosis is about; exposure is a matter of the host."""
    place = diagnosis.primary.boundary if diagnosis.primary is not None else diagnosis.proven
    if place is None and diagnosis.contributing:
        place = diagnosis.contributing[0].boundary
    return "host" if place == "exposure" else (place or "model_load")


def _judge_for(name: BoundaryName) -> Judge:
    def judge(diagnosis: Diagnosis) -> Verdict | NotApplicable:
        """Nothing in the parts is a known fault, and the parts prove the boundary."""
        if boundary_of(diagnosis) != name:
            return NotApplicable("the diagnosis is about another boundary")
        if diagnosis.verdict == "unknown":
            raise NotKnownError("unparsed", diagnosis.summary)
        remedy = None
        if diagnosis.primary is not None:
            action = diagnosis.primary.next
            remedy = action.do + (f" Run: {action.run}" if action.run else "")
            remedy += " (changes state)" if action.changes_state else ""
        return Verdict(
            holds=diagnosis.verdict == "no_fault",
            summary=diagnosis.summary,
            expected="no fault",
            observed=diagnosis.slug,
            remedy=remedy,
        )

    return judge


for _name in LADDER:
    check(
        f"diagnosis.{_name.replace('_', '-')}-without-fault",
        title="what was given shows no fault",
        boundary=_name,
        remedy="read the first error and its neighbourhood; give more of the log, or the command line",
    )(_judge_for(_name))
