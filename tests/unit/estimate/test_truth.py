"""The estimate against what real engines allocate, over every measured case."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from tests.fakes.memory_truth import Case, cases

STEP = int(os.environ.get("LLAMAOPS_MEMORY_STEP", "7"))
"""Every so-many-th case is taken; 1 takes all of them: two minutes on a busy machine."""

pytestmark = pytest.mark.timeout(600)  # whichever test comes first also makes the results


@dataclass(frozen=True)
class Result:
    case: Case
    parts: dict[str, int]
    host: int
    device: int
    low: int


@pytest.fixture(scope="module")
def results() -> list[Result]:
    found = []
    for case in cases()[::STEP]:
        made = case.estimate()
        assert not made.unknown, case.id
        parts = {name: made.of(name) for name in case.truth}
        found.append(Result(case, parts, made.high("host"), made.high("device"), made.low()))
    return found


def of_build(results: list[Result], build: str, *, has_card: bool) -> list[Result]:
    return [r for r in results if r.case.build == build and r.case.load.has_card == has_card]


@pytest.mark.parametrize(
    ("build", "has_card", "least"),
    [
        ("b10068", False, 5),
        ("b10434", False, 10),
        ("b11434", False, 10),
        ("b11669", False, 80),
        ("b11669", True, 100),
    ],
)
def test_every_part_of_every_row_is_equal_to_the_byte(
    results: list[Result], build: str, least: int, *, has_card: bool
) -> None:
    rows = of_build(results, build, has_card=has_card)
    assert len(rows) > least
    assert [r.case.id for r in rows if r.parts != r.case.truth] == []


def test_both_sides_of_a_card_are_equal_to_the_byte(results: list[Result]) -> None:
    rows = of_build(results, "b11669", has_card=True)
    sides = {r.case.id: (r.host, r.device, r.case.host, r.case.device) for r in rows}
    assert {name: found for name, found in sides.items() if found[:2] != found[2:]} == {}


def test_an_estimate_of_a_described_architecture_is_no_band(results: list[Result]) -> None:
    assert [r.case.id for r in results if r.low != r.host + r.device] == []
