"""The causes of situations from public reports."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import yaml

from llamaops.diagnosis.judge import diagnose_parts, diagnose_text
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


def test_the_proof_of_handed_cases_is_whole() -> None:
    """Nearly every line that proves a cause is among the lines that the answer names."""
    shown = missing = 0
    for case in situations.handed():
        found = diagnose_parts(situations.parts(case))
        assert found.primary is not None
        proof = " | ".join(" ".join(line.text.split()) for line in found.primary.evidence)
        for words in case["evidence"]:
            wanted = " ".join(words.replace(SECRET, "[secret]").split())[:60]
            shown += wanted in proof
            missing += wanted not in proof
    assert shown >= 0.95 * (shown + missing)


CARELESS: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (situations.DATA / "diagnose" / "careless.yaml").read_text("utf-8")
)
STANDING = {"primary", "contributing", "earlier"}
"""Roles of causes that the answer stands by; a symptom, something harmless or recovered is none."""


@pytest.mark.parametrize("case", identified(situations.handed()))
def test_handed_case_has_no_careless_conclusion(case: dict[str, Any]) -> None:
    """It is neither a cause, nor claimed in the answer's own sentences, and the answer warns of it."""
    careless = CARELESS[case["id"]]
    found = diagnose_parts(situations.parts(case))
    assert found.primary is not None
    causes = [cause.slug for cause in (found.primary, *found.contributing) if cause.role in STANDING]
    assert not {found.slug, *causes} & set(careless["slugs"])
    sentences = " ".join(
        (found.summary, found.primary.says, found.primary.next.do, found.primary.next.run or "")
    )
    warnings = " ".join(found.primary.do_not_conclude)
    for claim in careless["claims"]:
        assert not re.search(claim, sentences, re.IGNORECASE), claim
    assert any(re.search(claim, warnings, re.IGNORECASE) for claim in careless["claims"]), warnings


def test_every_handed_case_has_its_careless_conclusion() -> None:
    assert CARELESS.keys() == {case["id"] for case in situations.handed()}


@pytest.mark.parametrize("case", [case for case in situations.own() if "careless" in case])
def test_own_case_has_no_careless_conclusion(case: dict[str, Any]) -> None:
    found = diagnose_parts(situations.parts(case))
    causes = [c.slug for c in (found.primary, *found.contributing) if c is not None and c.role in STANDING]
    assert not {found.slug, *causes} & set(case["careless"])


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


CAPTURED = {
    "2023.log": "no-fault-found",
    "2024.log": "no-fault-found",
    "2025.log": "no-fault-found",
    "b10434-cpu-claims-offload.log": "offload-count-without-device",
    "b10434-llvmpipe.log": "vulkan-software-renderer",
    "b10434-rpc-offload20.log": "no-fault-found",
    "b11669-bad-magic.log": "not-a-gguf-file",
    "b11669-bad-template.log": "template-invalid",
    "b11669-completion-jsonl.log": "no-fault-found",
    "b11669-completion.log": "no-fault-found",
    "b11669-default.log": "no-fault-found",
    "b11669-dry-pass-first.log": "no-fault-found",
    "b11669-jsonl.log": "no-fault-found",
    "b11669-parallel-300.log": "too-many-slots",
    "b11669-port-in-use.log": "port-in-use",
    "b11669-router.log": "router-without-model",
}
"""What the captured logs of real engines show."""


def test_every_captured_log_has_its_diagnosis() -> None:
    assert CAPTURED.keys() == {path.name for path in (situations.DATA / "load_log").glob("*.log")}


@pytest.mark.parametrize("name", CAPTURED)
def test_captured_log(name: str) -> None:
    found = diagnose_text((situations.DATA / "load_log" / name).read_text("utf-8", "replace"))
    assert found.slug == CAPTURED[name], found.summary
    assert found.verdict != "no_fault" or found.proven is not None
