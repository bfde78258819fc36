"""The causes of situations from public reports."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.diagnosis.judge import diagnose_parts
from tests.unit.diagnosis import situations

SECRET = "EXAMPLE-NOT-A-REAL-KEY"


def identified(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=str(case["id"])) for case in cases]


@pytest.mark.parametrize("case", identified(situations.handed()))
def test_handed_case(case: dict[str, Any]) -> None:
    found = diagnose_parts(situations.parts(case))
    assert found.slug == case["slug"], found.summary
    assert found.primary is not None
    assert found.primary.do_not_conclude
    assert found.primary.next.do
    assert SECRET not in msgspec.json.encode(found).decode()
    proof = " ".join(line.text for line in found.primary.evidence)
    assert found.primary.evidence, "a cause needs proof"
    shown = [words for words in case["evidence"] if " ".join(words.split())[:40] in " ".join(proof.split())]
    assert shown or SECRET in str(case["evidence"]), f"none of {case['evidence']} in {proof}"


@pytest.mark.parametrize("case", identified(situations.own()))
def test_own_case(case: dict[str, Any]) -> None:
    found = diagnose_parts(situations.parts(case))
    assert found.slug in case["slug"] or found.verdict == "unknown", found.summary
    assert SECRET not in msgspec.json.encode(found).decode()


def test_own_cases_are_found() -> None:
    found = [diagnose_parts(situations.parts(case)).slug in case["slug"] for case in situations.own()]
    assert sum(found) >= 0.95 * len(found)


@pytest.mark.parametrize("case", identified(situations.handed()))
def test_a_part_alone_gives_no_other_certain_cause(case: dict[str, Any]) -> None:
    """Less evidence may leave the cause open or less special; it must not crash or leak."""
    for part in situations.parts(case):
        found = diagnose_parts([part])
        assert SECRET not in msgspec.json.encode(found).decode()
        assert found.verdict in {"fault", "no_fault", "unknown"}
