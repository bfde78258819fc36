"""A diagnosis for people: cause, proof, what it rules out, what to do next, what not to conclude."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from llamaops.render.inert import one_line
from llamaops.render.line import Line
from llamaops.schema.diagnosis import Cause, Diagnosis

STYLES = {"fault": "bold red", "no_fault": "green", "unknown": "yellow"}


def diagnosis_lines(facts: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines of the diagnosis in a record's facts; nothing where there is none."""
    found = facts.get("diagnosis")
    if found:
        yield from render_diagnosis(msgspec.convert(found, Diagnosis))


def verdict_line(diagnosis: Diagnosis, clean: Callable[[str], str]) -> Line:
    """Return one line: verdict, slug and summary."""
    word = diagnosis.verdict.replace("_", " ")
    begin = word if diagnosis.slug == word else f"{word}: {diagnosis.slug}"
    return Line(f"{begin}: {one_line(clean(diagnosis.summary), 400)}", STYLES[diagnosis.verdict])


def render_diagnosis(diagnosis: Diagnosis) -> Iterator[Line]:
    """Yield the lines of a diagnosis whose texts were redacted."""
    yield verdict_line(diagnosis, str)
    if diagnosis.primary is not None:
        yield from _cause(diagnosis.primary)
    if diagnosis.proven is not None:
        yield Line(f"  proven by the parts: {diagnosis.proven}")
    for item in diagnosis.unexplained if diagnosis.verdict == "unknown" else ():
        yield Line(f"  unexplained, {item.line.part} line {item.line.number}:", "yellow")
        for text in item.before:
            yield Line(f"      {one_line(text, 200)}", "dim")
        yield Line(f"    > {one_line(item.line.text, 300)}")
        for text in item.after:
            yield Line(f"      {one_line(text, 200)}", "dim")
    for part in diagnosis.parts:
        if part.note:
            yield Line(f"  of {one_line(part.name, 120)}: {one_line(part.note, 240)}", "yellow")
    for cause in diagnosis.contributing:
        yield Line(f"  {cause.role}: {cause.slug}: {one_line(cause.says, 240)}", "dim")


def _cause(cause: Cause) -> Iterator[Line]:
    yield Line(f"  boundary: {cause.boundary}; {cause.sure}: {one_line(cause.why_sure, 200)}")
    for line in cause.evidence:
        yield Line(f"  proof: {line.part} line {line.number}: {one_line(line.text, 240)}")
    for text in cause.rules_out:
        yield Line(f"  rules out: {one_line(text, 240)}")
    change = " (changes state)" if cause.next.changes_state else ""
    yield Line(f"  next{change}: {one_line(cause.next.do, 400)}", "bold")
    if cause.next.run:
        yield Line(f"    run: {one_line(cause.next.run, 300)}")
    for text in cause.do_not_conclude:
        yield Line(f"  do not conclude: {one_line(text, 240)}")
    yield Line(f"  more: llamaops explain {cause.slug}", "dim")
