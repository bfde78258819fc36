"""Whether a runbook did what it says, and which rungs the records of its steps reached."""

from __future__ import annotations

from collections.abc import Callable

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.facts.runbook_run import RunbookFacts, RunbookStep
from llamaops.schema.boundary import LADDER, MEANING, BoundaryName

RIGHT = {"done", "earlier"}
WORDS = {
    "failed": "failed",
    "stopped_at_bound": "was stopped at its bound",
    "declined": "was declined",
    "skipped": "is left to be done by hand",
    "not_run": "was not run",
}


@check(
    "runbook.steps-gave-what-was-expected",
    title="Every step that ran gave what the runbook expects of it",
    boundary=None,
    remedy="read the record of the step; go on from here with --resume once the cause is gone",
)
def steps_gave_what_was_expected(runbook: RunbookFacts) -> Verdict | NotApplicable:
    """Judge the steps that were run."""
    ran = [step for step in runbook.steps if step.end in {*RIGHT, "failed", "stopped_at_bound"}]
    bad = [step for step in ran if step.end not in RIGHT]
    if not ran:
        return NotApplicable("no step was run")
    return Verdict(
        holds=not bad,
        summary="; ".join(_why(step) for step in bad) or f"{len(ran)} steps gave what was expected",
        expected="; ".join(f"{step.id}: {', '.join(step.expected)}" for step in bad) or None,
        observed="; ".join(f"{step.id}: {step.ended}" for step in bad) or None,
        evidence=tuple(item for step in bad for item in step.evidence),
    )


@check(
    "runbook.whole-runbook-was-run",
    title="No step was declined, left to be done by hand, or not run",
    boundary=None,
    remedy="go on with --resume and this record",
)
def whole_runbook_was_run(runbook: RunbookFacts) -> Verdict:
    """Judge what was left out."""
    left = [step for step in runbook.steps if step.end in {"declined", "skipped", "not_run"}]
    if left:
        said = "; ".join(f"{step.id} {WORDS[step.end]}" for step in left)
        raise NotKnownError("not_attempted", said)  # nothing failed: it is incomplete
    return Verdict(holds=True, summary=f"all {len(runbook.steps)} steps were run")


def _why(step: RunbookStep) -> str:
    unmet = f": {', '.join(step.unmet)} did not hold" if step.unmet else ""
    return f"{step.id} {WORDS[step.end]} ({step.ended}){unmet}"


def _rung(name: BoundaryName) -> Callable[[RunbookFacts], Verdict | NotApplicable]:
    def reached(runbook: RunbookFacts) -> Verdict | NotApplicable:
        """Take the last word that the records of the steps say about one rung."""
        seen = [
            step
            for step in runbook.steps
            if name in step.reached or (name in step.not_reached and step.end not in RIGHT)
        ]
        if not seen:
            return NotApplicable(f"no record of a step says anything about {name}")
        last = seen[-1]
        return Verdict(
            holds=name in last.reached,
            summary=f"by the record {last.record} of the step {last.id}: "
            + (MEANING[name] if name in last.reached else f"{name} failed"),
        )

    reached.__name__ = f"{name}_reached"
    return reached


for _name in LADDER:
    check(
        f"runbook.{_name.replace('_', '-')}-shown-by-a-step",
        title=f"The record of a step reached the rung {_name}",
        boundary=_name,
        remedy="read the record of the step",
    )(_rung(_name))
