"""What a runbook would do, step by step; nothing is run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from llamaops.runbook.document import Changes, Runbook, Step, StepBounds
from llamaops.runbook.fill import Values, command, words_of
from llamaops.schema.shape import Shape

DEFAULT_BOUNDS = StepBounds(wall_s=900.0)
"""For a llamaops command that has none of its own; each bounds what it starts as well."""


class PlannedStep(Shape, frozen=True, kw_only=True):
    """One step with its inputs filled in."""

    id: str
    """Its id."""
    title: str
    """What it does."""
    do: str
    """What it calls."""
    command: tuple[str, ...]
    """The command line as it would be typed; none for something done by hand."""
    says: str | None
    """What has to be done by hand."""
    changes: Changes | None
    """What it changes, where it changes anything."""
    expects: tuple[str, ...]
    """What it has to give, in words."""
    wall_s: float
    """Seconds until it is stopped."""


class RunbookPlan(Shape, frozen=True, kw_only=True):
    """A runbook with its inputs filled in."""

    id: str
    """The runbook."""
    title: str
    """What it is for."""
    inputs: dict[str, str | None]
    """The inputs; none for one left out."""
    steps: tuple[PlannedStep, ...]
    """The steps, in order."""
    not_covered: tuple[str, ...]
    """What a run does not show."""


def plan(runbook: Runbook, inputs: Mapping[str, str | None]) -> RunbookPlan:
    """Return what a runbook would do with these inputs."""
    values = Values(inputs, words=words_of(runbook), planned=True)
    return RunbookPlan(
        id=runbook.id,
        title=runbook.title,
        inputs=dict(inputs),
        steps=tuple(planned(step, values) for step in runbook.steps),
        not_covered=runbook.not_covered,
    )


def planned(step: Step, values: Values) -> PlannedStep:
    """Return one step with its texts filled in."""
    words = command(step, values)
    typed = words if step.do == "command" or not words else ("llamaops", *words)
    return PlannedStep(
        id=step.id,
        title=values.text(step.title or step.id),
        do=step.do,
        command=typed,
        says=None if step.says is None else values.text(step.says),
        changes=filled_changes(step, values),
        expects=expectations(step, values),
        wall_s=(step.bounds or DEFAULT_BOUNDS).wall_s,
    )


def filled_changes(step: Step, values: Values) -> Changes | None:
    """Return what a step changes, its texts filled in."""
    if step.changes is None:
        return None
    change = step.changes
    return Changes(
        target=values.text(change.target),
        scope=values.text(change.scope),
        rollback=values.text(change.rollback),
    )


def expectations(step: Step, values: Values) -> tuple[str, ...]:
    """Return what a step has to give, in words."""
    if step.do == "manual":
        return ()
    expect = step.expect
    said = ["exit status " + " or ".join(str(status) for status in expect.status)]
    if expect.boundary is not None:
        said.append(f"its record reaches the boundary {expect.boundary}")
    said += [f"the output holds {values.text(text)!r}" for text in expect.output]
    said += [f"the output does not hold {values.text(text)!r}" for text in expect.absent]
    said += [f"the check {name} is {status.replace('_', ' ')}" for name, status in expect.findings.items()]
    return tuple(said)


def typed(words: tuple[str, ...]) -> str:
    """Return a command line as an operator would type it."""
    return shlex.join(words)
