"""Situations of the test data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from llamaops.diagnosis.parts import Part

DATA = Path(__file__).parents[2] / "data"


def load(path: Path) -> list[dict[str, Any]]:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, list)
    return found


def handed() -> list[dict[str, Any]]:
    return load(DATA / "diagnose" / "cases.yaml")


def own() -> list[dict[str, Any]]:
    return [case for path in sorted((DATA / "diagnose_own").glob("*.yaml")) for case in load(path)]


def parts(case: dict[str, Any]) -> list[Part]:
    complaint = str(case.get("symptom", ""))
    return [
        Part(str(item["kind"]), f"part {number}", str(item["text"]), complaint=complaint)
        for number, item in enumerate(case["input"], 1)
    ]
