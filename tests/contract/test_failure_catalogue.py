"""Every message of the catalogue of failures is matched by the rule of the right cause."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamaops.diagnosis import engine
from llamaops.diagnosis.judge import diagnose_text
from llamaops.diagnosis.rule import Condition, by_slug, rule_set

COPY = Path(__file__).parents[1] / "data" / "diagnose" / "catalogue.yaml"
ORIGINAL = Path(__file__).parents[3] / "shared" / "fixtures" / "engines" / "failure-patterns.json"
CATALOGUE: list[dict[str, Any]] = yaml.safe_load(COPY.read_text("utf-8"))
LINES = [
    pytest.param(entry["pattern"], item["line"], item["slug"], id=f"{entry['id']}-{number}")
    for entry in CATALOGUE
    for number, item in enumerate(entry["lines"])
]


def patterns_of(condition: Condition) -> Iterator[str]:
    if condition.op == "line":
        yield rule_set().signals[condition.signal].regex
    for inner in condition.of:
        yield from patterns_of(inner)


def test_the_catalogue_is_whole() -> None:
    assert len(CATALOGUE) == 163
    assert all(entry["lines"] for entry in CATALOGUE)
    if ORIGINAL.exists():
        original = {entry["id"]: entry["pattern"] for entry in json.loads(ORIGINAL.read_text("utf-8"))}
        assert {entry["id"]: entry["pattern"] for entry in CATALOGUE} == original


@pytest.mark.parametrize(("pattern", "line", "slug"), LINES)
def test_the_rule_of_the_right_cause_matches(pattern: str, line: str, slug: str) -> None:
    assert re.search(pattern, line), "the copied line is no example of the pattern"
    patterns = [p for rule in by_slug()[slug] for p in patterns_of(rule.match)]
    assert any(engine.search(p, line) for p in patterns)


@pytest.mark.parametrize(("pattern", "line", "slug"), LINES)
def test_a_line_alone_has_no_other_certain_cause(pattern: str, line: str, slug: str) -> None:
    """The shortest line may be too little for a verdict; it must not be taken for something else."""
    assert pattern
    found = diagnose_text(f"{line}\n", "http-response" if line.startswith('"') else "log")
    told = {found.slug, *(cause.slug for cause in found.contributing)}
    assert found.primary is None or slug in told or found.primary.sure != "certain", found.summary
