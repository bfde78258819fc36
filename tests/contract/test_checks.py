"""What must hold for every check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamaops.checks.registry import Check, all_checks
from llamaops.record.groups import Facts
from llamaops.schema.boundary import LADDER
from tests.contract.test_shapes import shapes

CHECKS = all_checks()
GROUPS = set(shapes())
TESTS = "\n".join(file.read_text() for file in Path(__file__).parents[1].rglob("test_*.py"))


def test_there_are_checks() -> None:
    assert len(CHECKS) > 40


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_is_declared_whole(check: Check) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)+", check.id)
    assert check.boundary in (*LADDER, None)
    assert check.title
    assert check.remedy
    assert check.function.__doc__


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_takes_fact_groups_of_a_record(check: Check) -> None:
    inputs = check.inputs()
    assert inputs
    annotations = " ".join(str(annotation) for annotation in Facts.__annotations__.values())
    for kind in inputs.values():
        assert kind in GROUPS
        assert kind.__name__ in annotations, f"{kind.__name__} is no group of a record"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_is_tested(check: Check) -> None:
    # Tests name a check by its id, by what should hold, or by the function that judges.
    name, holds = check.function.__name__, check.id.split(".", 1)[1]
    named = any(re.search(rf"(?<![\w-]){word}(?![\w-])", TESTS) for word in (name, holds))
    assert named, f"no test names {check.id} or {name}"
