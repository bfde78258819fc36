"""A record as Markdown that pastes well into a ticket: boundaries first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llamaops.record.redact import Redacted
from llamaops.render.inert import cell, fence, one_line
from llamaops.render.view import STATE_WORDS, View, fact_rows, open_findings, view
from llamaops.schema.finding import Finding

MAX_ROWS_A_GROUP = 60
MAX_EVIDENCE_CHARACTERS = 4000


def render_markdown(redacted: Redacted) -> str:
    """Return the record as one Markdown document."""
    record = view(redacted)
    return "\n".join(_lines(record)) + "\n"


def _lines(record: View) -> Iterator[str]:
    yield f"# llamaops {record.command}: {record.outcome}"
    yield ""
    yield f"- strongest boundary reached: **{record.strongest or 'none'}**"
    yield f"- promised by this command: {', '.join(record.promised) or 'nothing'}"
    yield f"- ended: {cell(record.ended)} (exit status {record.exit_status})"
    yield f"- record `{record.id}`, {record.started_at} to {record.finished_at or 'killed'}"
    words = one_line(" ".join(("llamaops", *record.argv))).replace("`", "")
    yield f"- llamaops {record.tool.version}, command `{words}`"
    yield ""
    yield from _boundaries(record)
    yield from _findings(record)
    yield from _gaps(record)
    yield from _timelines(record)
    yield from _facts(record.facts)
    yield from _steps(record)
    yield from _evidence(record)


def _timelines(record: View) -> Iterator[str]:
    from llamaops.render.timeline import timelines

    for number, (title, lines) in enumerate(timelines(record.facts)):
        if number == 0:
            yield "## Requests at once"
            yield ""
            yield "`.` waits, `#` text comes, `-` runs and no text comes; nothing here measures speed."
            yield ""
        yield f"{cell(title)}:"
        yield ""
        yield from ("```text", *lines, "```")
        yield ""


def _boundaries(record: View) -> Iterator[str]:
    yield "## Boundaries"
    yield ""
    yield "| boundary | state | what this record shows |"
    yield "| --- | --- | --- |"
    for boundary in record.boundaries:
        state = STATE_WORDS[boundary.state]
        mark = f"**{state}**" if boundary.state in {"reached", "failed"} else state
        yield f"| `{boundary.name}` | {mark} | {cell(boundary.claim)} |"
    yield ""


def _findings(record: View) -> Iterator[str]:
    yield "## Findings"
    yield ""
    alone, shared = open_findings(record)
    for finding in alone:
        yield from _finding(finding)
    for summary, group in shared.items():
        yield f"### unknown: {len(group)} checks could not be judged: {cell(summary)}"
        yield ""
        yield ", ".join(f"`{finding.check}`" for finding in group)
        yield ""
    if not alone and not shared:
        yield "Nothing failed and nothing that was judged is unknown."
        yield ""
    passed = [f for f in record.findings if f.status == "passed"]
    if passed:
        yield "| passed | what was seen |"
        yield "| --- | --- |"
        for finding in passed:
            yield f"| {cell(finding.check)} | {cell(finding.summary)} |"
        yield ""


def _finding(finding: Finding) -> Iterator[str]:
    accepted = f" (accepted: {cell(finding.accepted)})" if finding.accepted else ""
    severity = "" if finding.severity == "required" else ", advisory"
    yield f"### {STATE_WORDS[finding.status]}{severity}: {cell(finding.title)}{accepted}"
    yield ""
    yield f"- check: `{finding.check}`, boundary {finding.boundary or 'none'}"
    if finding.expected is not None:
        yield f"- expected: {cell(finding.expected)}"
    if finding.observed is not None:
        yield f"- observed: {cell(finding.observed)}"
    else:
        why = f" ({finding.why.replace('_', ' ')})" if finding.why else ""
        yield f"- {cell(finding.summary)}{why}"
    if finding.remedy:
        yield f"- next: {cell(finding.remedy)}"
    if finding.evidence:
        yield f"- evidence: {', '.join(f'`{item}`' for item in finding.evidence)}"
    yield ""


def _gaps(record: View) -> Iterator[str]:
    yield "## What this record does not show"
    yield ""
    for boundary in record.boundaries:
        if boundary.state == "not_tested":
            yield f"- boundary `{boundary.name}` is not tested; {cell(boundary.claim)}"
    for gap in record.gaps:
        yield f"- {cell(gap.subject)}: {cell(gap.detail)} (lifted by: {cell(gap.lifted_by)})"
    removed = sum(removal.count for removal in record.removed)
    if removed:
        rules = ", ".join(sorted({removal.rule for removal in record.removed}))
        yield f"- redaction replaced {removed} values ({cell(rules)})"
    yield ""


def _facts(facts: dict[str, Any]) -> Iterator[str]:
    yield "## Facts"
    yield ""
    for name, group in facts.items():
        if group is None:
            continue
        rows = list(fact_rows(group))
        yield f"<details><summary>{cell(name)}: {len(rows)} facts</summary>"
        yield ""
        yield "| fact | value | source |"
        yield "| --- | --- | --- |"
        for label, value, source in rows[:MAX_ROWS_A_GROUP]:
            yield f"| {cell(label)} | {cell(one_line(value, 300))} | {cell(one_line(source, 120))} |"
        if len(rows) > MAX_ROWS_A_GROUP:
            yield f"| … | {len(rows) - MAX_ROWS_A_GROUP} more in record.json | |"
        yield ""
        yield "</details>"
        yield ""


def _steps(record: View) -> Iterator[str]:
    yield "## Steps"
    yield ""
    yield "| step | end | seconds | detail |"
    yield "| --- | --- | --- | --- |"
    for step in record.steps:
        end = step.end.replace("_", " ")
        yield f"| {cell(step.id)} | {end} | {step.elapsed_s:.3f} | {cell(one_line(step.detail, 300))} |"
    yield ""


def _evidence(record: View) -> Iterator[str]:
    yield "## Evidence"
    yield ""
    for item in record.evidence:
        digest = f"sha256 {item.sha256[:16]}…" if item.sha256 else "digest withheld"
        yield (
            f"<details><summary>{item.id} {item.kind}: {cell(one_line(item.label, 160))}, "
            f"{item.total_bytes:,} bytes, {digest}</summary>"
        )
        yield ""
        text = item.text
        if len(text) > MAX_EVIDENCE_CHARACTERS:
            half = MAX_EVIDENCE_CHARACTERS // 2
            text = f"{text[:half]}\n[... more in record.json ...]\n{text[-half:]}"
        yield fence(text)
        yield ""
        yield "</details>"
        yield ""
