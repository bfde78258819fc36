"""A runbook, or its plan, as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from llamaops.runbook.document import Runbook
from llamaops.runbook.fill import Values
from llamaops.runbook.plan import PlannedStep, RunbookPlan, planned, typed


def runbook_page(runbook: Runbook, *, generated: bool = False) -> str:
    """Return a runbook as a page that people read; placeholders stay as they are."""
    inputs = {name: "${" + name + "}" for name in runbook.inputs}
    return "\n".join(_page(runbook, inputs, generated)) + "\n"


def plan_page(found: RunbookPlan) -> str:
    """Return what a runbook would do, as text."""
    return "\n".join(_plan(found)) + "\n"


def _page(runbook: Runbook, inputs: dict[str, str], generated: bool) -> Iterator[str]:
    if generated:
        yield f"<!-- Made from the runbook {runbook.id}.yaml by `make generate`; edit that. -->"
        yield ""
    yield f"# {runbook.title}"
    yield ""
    if runbook.about:
        yield " ".join(runbook.about.split())
        yield ""
    yield f"Run it: `llamaops runbook run {runbook.id}{_inputs_typed(runbook)}`"
    yield ""
    yield f"See what it would do first: `llamaops runbook plan {runbook.id}{_inputs_typed(runbook)}`"
    yield ""
    if runbook.inputs:
        yield "## Inputs"
        yield ""
        yield "| input | kind | what | default |"
        yield "| --- | --- | --- | --- |"
        for name, declared in runbook.inputs.items():
            kind = f"{declared.kind}: {', '.join(declared.choices)}" if declared.choices else declared.kind
            default = "may be left out" if declared.optional else declared.default
            last = "needed" if default is None else default
            yield f"| `{name}` | {kind} | {_cell(declared.about)} | {last} |"
        yield ""
    yield "## Steps"
    yield ""
    values = Values(dict(inputs), planned=True)
    for number, step in enumerate(runbook.steps, 1):
        yield from _step(number, planned(step, values), step.background, step.fall_back_to)
    yield "## What it does not show"
    yield ""
    yield from (f"- {line}" for line in runbook.not_covered)


def _inputs_typed(runbook: Runbook) -> str:
    needed = [n for n, i in runbook.inputs.items() if i.default is None and not i.optional]
    return "".join(f" --input {name}=…" for name in needed)


def _step(number: int, step: PlannedStep, background: bool, fall_back: str | None) -> Iterator[str]:
    yield f"### {number}. {step.title}"
    yield ""
    if step.says:
        yield f"By hand: {step.says}"
        yield ""
    if step.command:
        yield "```"
        yield " ".join(word if "${" in word else shlex.quote(word) for word in step.command)
        yield "```"
        yield ""
    if background:
        yield "It keeps serving for the steps that follow and is stopped at the end."
        yield ""
    if step.changes:
        yield f"- **changes**: {step.changes.target}"
        yield f"- scope: {step.changes.scope}"
        yield f"- rollback: {step.changes.rollback}"
    yield from (f"- expects: {text}" for text in step.expects)
    if fall_back:
        yield f"- when it fails: the step `{fall_back}` is run once more"
    if step.command:
        yield f"- stopped after {step.wall_s:g} s"
    yield ""


def _plan(found: RunbookPlan) -> Iterator[str]:
    yield f"{found.id}: {found.title}"
    for name, value in found.inputs.items():
        yield f"  input {name} = {value if value is not None else '(left out)'}"
    for number, step in enumerate(found.steps, 1):
        yield f"{number}. {step.title}  [{step.id}]"
        if step.command:
            yield f"   $ {typed(step.command)}"
        if step.says:
            yield f"   by hand: {step.says}"
        if step.changes:
            yield f"   CHANGES {step.changes.target}"
            yield f"     scope: {step.changes.scope}"
            yield f"     rollback: {step.changes.rollback}"
        yield from (f"   expects: {text}" for text in step.expects)
        if step.command:
            yield f"   stopped after {step.wall_s:g} s"
    yield from (f"does not show: {line}" for line in found.not_covered)
    yield "nothing was run"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
