"""What every renderer reads: the redacted record with typed frame and plain facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from llamaops.record.record import Record
from llamaops.record.redact import Redacted
from llamaops.schema.finding import Finding

View = Record[dict[str, Any]]

COMMAS_FROM = 100_000
"""Smaller numbers are often ports, process ids and builds, which nobody writes with commas."""

STATE_WORDS = {
    "reached": "reached",
    "failed": "FAILED",
    "unknown": "unknown",
    "not_tested": "not tested",
    "passed": "passed",
    "not_run": "not run",
    "error": "ERROR",
}


def view(redacted: Redacted) -> View:
    """Return the record behind a redaction, its frame typed and its facts as plain data."""
    return msgspec.convert(redacted.record, View)


def open_findings(record: View) -> tuple[list[Finding], dict[str, list[Finding]]]:
    """Return the findings that did not pass, and those that could not be judged for a shared reason.

    A file that is not there leaves a dozen checks unknown, all for what one failed check already says:
    those are returned apart, by their common summary, so that they do not bury the failure. What the operator
    left out is in neither: the gaps name it.
    """
    bad = [f for f in record.findings if f.status != "passed" and f.why != "not_selected"]
    summaries = Counter(f.summary for f in bad)
    shared: dict[str, list[Finding]] = {}
    alone = []
    for finding in bad:
        if finding.status in {"unknown", "not_run"} and summaries[finding.summary] > 1:
            shared.setdefault(finding.summary, []).append(finding)
        else:
            alone.append(finding)
    return sorted(alone, key=lambda f: (f.status != "failed", f.severity != "required")), shared


def fact_rows(group: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (name, value, source) for each fact of a group, nested groups included.

    An unknown fact is shown as unknown with its reason; one that was not attempted says so.
    """
    for name, value in group.items():
        label = f"{prefix}{name}"
        if isinstance(value, dict) and value.get("state") == "known":
            yield from _known(label, value)
        elif isinstance(value, dict) and value.get("state") == "unknown":
            yield (
                label,
                f"unknown ({str(value['why']).replace('_', ' ')}): {value['detail']}",
                value["source"]["name"],
            )
        elif isinstance(value, dict):
            yield from fact_rows(value, f"{label}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, item in enumerate(value):
                if "origin" in item:  # a setting: its own name says more than its place in a list
                    yield item["name"], item["value"], item["origin"]
                else:
                    yield from fact_rows(item, f"{label}[{number}].")
        elif value not in (None, [], {}):
            yield label, shown(value), ""


def _known(label: str, fact: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    value = fact["value"]
    source = fact["source"]["name"]
    if isinstance(value, dict):
        for name, inner, inner_source in fact_rows(value, f"{label}."):
            yield name, inner, inner_source or source
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, item in enumerate(value):
            for name, inner, inner_source in fact_rows(item, f"{label}[{number}]."):
                yield name, inner, inner_source or source
    else:
        yield label, shown(value), source


def shown(value: object) -> str:
    """Return a plain value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= COMMAS_FROM else str(value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, list):
        return ", ".join(shown(item) for item in value) or "none"
    return "none" if value is None or value == "" else str(value)
