"""Run a runbook: each step with its consent, its bounds and its evidence; whatever was started is stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import msgspec

from llamaops.facts.runbook_run import Consent, RunbookStep, StepEnd
from llamaops.runbook.document import Runbook, Step
from llamaops.runbook.fill import Values, words_of
from llamaops.runbook.plan import PlannedStep, planned
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.finding import Status


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one command."""

    status: int | None
    """Exit status; None where it did not end by itself."""
    ended: str
    """How it ended, in a few words."""
    stopped_at_bound: bool = False
    output: str = ""
    """Standard output and error, for expectations about fixed texts."""
    record: str | None = None
    """The id of its own record."""
    record_path: str | None = None
    reached: tuple[BoundaryName, ...] = ()
    not_reached: tuple[BoundaryName, ...] = ()
    findings: Mapping[str, Status] = {}
    url: str | None = None
    """Where a server that keeps serving answers."""
    evidence: tuple[str, ...] = ()
    elapsed_s: float = 0.0


class Performer(Protocol):
    """What really runs a step."""

    def command(self, step: Step, words: tuple[str, ...]) -> Came:
        """Run a program, or a command of llamaops, to its end."""
        ...

    def background(self, step: Step, words: tuple[str, ...]) -> Came:
        """Start a server that keeps serving, and return once it is verified or has failed."""
        ...

    def stop_all(self) -> list[tuple[str, Came]]:
        """Stop what still serves, the last one first; return (step id, what came of it)."""
        ...

    def step(self, step: PlannedStep) -> contextlib.AbstractContextManager[Callable[[RunbookStep], None]]:
        """Journal a step; what it came to is given to the function."""
        ...


Ask = Callable[[PlannedStep], bool]
"""Shows what a step changes and returns whether the operator agrees."""


class _Run:
    def __init__(self, runbook: Runbook, inputs: Mapping[str, str | None], performer: Performer) -> None:
        self.runbook = runbook
        self.inputs = inputs
        self.words = words_of(runbook)
        self.performer = performer
        self.outputs: dict[str, str] = {}
        self.results: list[RunbookStep] = []

    def values(self) -> Values:
        return Values(self.inputs, self.outputs, words=self.words)


def run(
    runbook: Runbook,
    inputs: Mapping[str, str | None],
    performer: Performer,
    *,
    ask: Ask | None,
    yes: bool,
    done: frozenset[str] = frozenset(),
    by_hand_done: frozenset[str] = frozenset(),
    outputs: Mapping[str, str] | None = None,
) -> Generator[tuple[RunbookStep, ...], None, None]:
    """Run the steps; yield the results so far after each.

    Args:
        runbook: The runbook.
        inputs: The value of each input.
        performer: Runs a step.
        ask: Asks the operator; None where nobody can answer.
        yes: Whether consent was given for everything beforehand.
        done: Ids of steps done in the run that this one resumes; a server in the background is started anew.
        by_hand_done: Ids of manual steps that the operator says were done.
        outputs: What the steps that are done gave, by `id.output`.

    Stops at the first step that fails, is declined, or is left to be done by hand; what follows is `not_run`.
    """
    state = _Run(runbook, inputs, performer)
    state.outputs.update(outputs or {})
    try:
        for index, step in enumerate(runbook.steps):
            if step.id in done and not step.background:
                state.results.append(_earlier(step, state))
                yield tuple(state.results)
                continue
            result = _one(state, step, ask=ask, yes=yes, by_hand=step.id in by_hand_done)
            state.results.append(result)
            yield tuple(state.results)
            if _stops(step, result):
                _fall_back(state, step, result)
                state.results += [
                    _result(_shown(later, state), "not_run", "not_asked")
                    for later in runbook.steps[index + 1 :]
                ]
                break
    finally:
        for name, came in performer.stop_all():
            state.results = [
                _stopped(item, came) if item.id == name and item.end != "not_run" else item
                for item in state.results
            ]
    yield tuple(state.results)


def _stops(step: Step, result: RunbookStep) -> bool:
    if result.end in {"declined", "skipped"}:
        return True
    return result.end in {"failed", "stopped_at_bound"} and step.on_failure == "stop"


def _shown(step: Step, state: _Run) -> PlannedStep:
    return planned(step, Values(state.inputs, words=state.words, planned=True))


def _earlier(step: Step, state: _Run) -> RunbookStep:
    """Return the result of a step that was done in the run that this one resumes."""
    record = state.outputs.get(f"{step.id}.record")
    result = _result(_shown(step, state), "earlier", "not_needed")
    return result if record is None else msgspec.structs.replace(result, record=record.rsplit("/", 1)[-1])


def _one(state: _Run, step: Step, *, ask: Ask | None, yes: bool, by_hand: bool) -> RunbookStep:
    """Run one step, consent first."""
    shown = planned(step, state.values())
    with state.performer.step(shown) as note:
        consent = _consent(shown, ask=ask, yes=yes)
        if step.do == "manual":
            agreed = by_hand or (ask is not None and ask(shown))
            result = _result(shown, "done" if agreed else "skipped", "given" if agreed else "not_asked")
        elif consent == "declined":
            result = _result(shown, "declined", consent)
        else:
            result = _performed(state, step, shown, consent)
        note(result)
    return result


def _consent(shown: PlannedStep, *, ask: Ask | None, yes: bool) -> Consent:
    if shown.changes is None:
        return "not_needed"
    if yes:
        return "by_option"
    return "given" if shown.do != "manual" and ask is not None and ask(shown) else "declined"


def _performed(state: _Run, step: Step, shown: PlannedStep, consent: Consent) -> RunbookStep:
    words = shown.command if step.do == "command" else shown.command[1:]
    call = state.performer.background if step.background else state.performer.command
    came = call(step, words)
    for output, value in (("url", came.url), ("record", came.record_path)):
        if value is not None:
            state.outputs[f"{step.id}.{output}"] = value
    unmet = unmet_expectations(step, came, state.values())
    end: StepEnd = "stopped_at_bound" if came.stopped_at_bound else "failed" if unmet else "done"
    return _with(_result(shown, end, consent), came, unmet=unmet)


def _fall_back(state: _Run, step: Step, result: RunbookStep) -> None:
    """Run an earlier step once more, to return to what last worked."""
    earlier = next((one for one in state.runbook.steps if one.id == step.fall_back_to), None)
    if earlier is None or result.end not in {"failed", "stopped_at_bound"}:
        return
    if earlier.changes is not None:  # nobody agreed to a second time
        return
    shown = planned(earlier, state.values())
    with state.performer.step(shown) as note:
        again = _performed(state, earlier, shown, "not_needed")
        again = msgspec.structs.replace(again, fell_back_from=step.id)
        note(again)
    state.results.append(again)


def unmet_expectations(step: Step, came: Came, values: Values) -> tuple[str, ...]:
    """Return what a step had to give and did not."""
    expect = step.expect
    unmet = []
    if came.status not in expect.status and not (step.background and came.url):
        unmet.append("exit status " + " or ".join(map(str, expect.status)))
    if expect.boundary is not None and expect.boundary not in came.reached:
        unmet.append(f"the boundary {expect.boundary}")
    unmet += [f"the text {text!r}" for raw in expect.output if (text := values.text(raw)) not in came.output]
    unmet += [f"no text {text!r}" for raw in expect.absent if (text := values.text(raw)) in came.output]
    unmet += [
        f"{name} {status}, which is {came.findings.get(name, 'not in the record')}"
        for name, status in expect.findings.items()
        if came.findings.get(name) != status
    ]
    return tuple(unmet)


def _result(shown: PlannedStep, end: StepEnd, consent: Consent) -> RunbookStep:
    change = shown.changes
    return RunbookStep(
        id=shown.id,
        title=shown.title,
        do=shown.do,
        command=shown.command,
        end=end,
        consent=consent,
        changes=None
        if change is None
        else f"target: {change.target}; scope: {change.scope}; rollback: {change.rollback}",
        expected=shown.expects,
    )


def _stopped(result: RunbookStep, came: Came) -> RunbookStep:
    """Take in how a server in the background ended; why a step failed is said already."""
    if result.end == "done":
        return _with(result, came)
    return msgspec.structs.replace(result, evidence=(*result.evidence, *came.evidence))


def _with(result: RunbookStep, came: Came, *, unmet: tuple[str, ...] | None = None) -> RunbookStep:
    return msgspec.structs.replace(
        result,
        ended=came.ended,
        unmet=result.unmet if unmet is None else unmet,
        reached=came.reached or result.reached,
        not_reached=came.not_reached or result.not_reached,
        record=came.record or result.record,
        evidence=(*result.evidence, *came.evidence),
        elapsed_s=round(result.elapsed_s + came.elapsed_s, 3),
    )
