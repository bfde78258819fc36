"""The short summary that a command prints at its end: lines with a style, for a terminal or plain."""

from __future__ import annotations

from collections.abc import Iterator

from llamaops.record.redact import Redacted
from llamaops.render.highlights import highlights
from llamaops.render.inert import one_line
from llamaops.render.line import STYLES, Line
from llamaops.render.view import STATE_WORDS, View, open_findings, view
from llamaops.schema.finding import Finding


def render_summary(redacted: Redacted, *, folder: str | None = None) -> list[Line]:
    """Return the summary of a record: boundaries first, then what is not passed, then where to read on."""
    return list(_lines(view(redacted), folder))


def _lines(record: View, folder: str | None) -> Iterator[Line]:
    yield Line(
        f"llamaops {record.command}: {record.outcome.upper()}  "
        f"(strongest boundary reached: {record.strongest or 'none'})",
        f"bold {STYLES[record.outcome]}",
    )
    for label, text in highlights(record.command, record.facts):
        yield Line(f"  {label:<19} {text}")
    if record.facts.get("diagnosis"):
        from llamaops.render.diagnosis import diagnosis_lines

        yield from diagnosis_lines(record.facts)
    for boundary in record.boundaries if record.command != "diagnose" else ():
        word = STATE_WORDS[boundary.state]
        yield Line(
            f"  {word:<11} {boundary.name:<17} {one_line(boundary.claim, 200)}", STYLES[boundary.state]
        )
    alone, shared = open_findings(record)
    for finding in alone if record.command != "diagnose" else ():  # the lines above say it
        yield from _finding(finding)
    for summary, group in shared.items():
        yield Line(
            f"unknown: {len(group)} checks could not be judged: {one_line(summary, 200)}", STYLES["unknown"]
        )
    passed = sum(f.status == "passed" for f in record.findings)
    gaps = len(record.gaps) + sum(b.state == "not_tested" for b in record.boundaries)
    yield Line(f"{gaps} things this record does not show (see `record show`)", "dim")
    left_out = sum(f.why == "not_selected" for f in record.findings)
    asked = f", {left_out} left out as asked" if left_out else ""
    total = len(record.findings) - left_out
    yield Line(f"{passed} of {total} checks passed{asked}; {one_line(record.ended, 200)}")
    if folder is not None:
        yield Line(f"record: {folder}")
        yield Line(f"read it: llamaops record show {record.id}")


def _finding(finding: Finding) -> Iterator[Line]:
    word = STATE_WORDS[finding.status] + ("" if finding.severity == "required" else " (advisory)")
    if finding.accepted:
        word += f" (accepted: {one_line(finding.accepted, 80)})"
    advisory = finding.severity == "advisory" and finding.status != "passed"
    style = "yellow" if advisory else STYLES[finding.status]
    yield Line(f"{word}: {finding.check}: {one_line(finding.summary, 300)}", style)
    if finding.expected is not None and finding.observed is not None:
        yield Line(f"    expected: {one_line(finding.expected, 200)}")
        yield Line(f"    observed: {one_line(finding.observed, 200)}")
    if finding.remedy:
        yield Line(f"    next: {one_line(finding.remedy, 300)}")


def render_record(redacted: Redacted) -> list[Line]:
    """Return a whole record for a reader at a terminal: the summary, then gaps, facts and steps."""
    from llamaops.render.view import fact_rows

    record = view(redacted)
    lines = list(_lines(record, None))
    lines += [Line(""), Line("what this record does not show", "bold")]
    lines += [
        Line(f"  {b.name} is not tested; {b.claim}") for b in record.boundaries if b.state == "not_tested"
    ]
    lines += [Line(f"  {one_line(g.subject)}: {one_line(g.detail, 300)}") for g in record.gaps]
    for name, group in record.facts.items():
        if group is None:
            continue
        rows = list(fact_rows(group))
        lines += [Line(""), Line(f"{name} ({len(rows)} facts)", "bold")]
        lines += [Line(f"  {label:<34} {one_line(value, 160)}") for label, value, _source in rows[:80]]
        if len(rows) > 80:  # noqa: PLR2004 - a screenful or two
            lines.append(Line(f"  … {len(rows) - 80} more with --format json"))
    lines += [Line(""), Line("steps", "bold")]
    lines += [
        Line(f"  {s.id:<18} {s.end:<16} {s.elapsed_s:8.3f} s  {one_line(s.detail, 160)}")
        for s in record.steps
    ]
    lines += [Line(""), Line(f"{len(record.evidence)} pieces of evidence; see --format markdown or json")]
    return lines
