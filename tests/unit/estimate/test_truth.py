"""The estimate against what real engines allocate: the aims, over every measured case."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.fakes.memory_truth import Case, cases

STEP = int(os.environ.get("LLAMAOPS_MEMORY_STEP", "7"))
"""Every so-many-th case is taken; 1 takes all of them: two minutes on a busy machine."""

EXACT_PARTS = ("weights", "KV cache", "windowed KV cache", "recurrent state", "output")


pytestmark = pytest.mark.timeout(600)  # whichever test comes first also makes the results


@dataclass(frozen=True)
class Result:
    case: Case
    parts: dict[str, int]
    host: int
    device: int

    @property
    def total(self) -> int:
        return sum(self.parts.values())


@pytest.fixture(scope="module")
def results() -> list[Result]:
    found = []
    cards = [case for case in cases() if case.load.has_card]
    for case in [*cases()[::STEP], *cards[:: max(1, STEP // 3)]]:
        made = case.estimate()
        assert not made.unknown, case.id
        parts = {name: made.of(name) for name in case.truth}
        found.append(Result(case, parts, made.high("host"), made.high("device")))
    return found


def share(results: list[Result], holds: Callable[[Result], bool]) -> float:
    return sum(map(holds, results)) / len(results)


def on_cpu(results: list[Result], *builds: str) -> list[Result]:
    return [r for r in results if not r.case.load.has_card and r.case.build in builds]


def off(ours: int, theirs: int) -> float:
    return abs(ours - theirs) / theirs if theirs else float(ours != 0)


def test_all_but_compute_is_equal_to_the_byte(results: list[Result]) -> None:
    for name in EXACT_PARTS:
        wrong = [r.case.id for r in results if r.parts[name] != r.case.truth[name]]
        assert len(wrong) <= 0.001 * len(results), (name, wrong[:5])


def test_compute_is_equal_to_the_byte_on_the_processor(results: list[Result]) -> None:
    rows = on_cpu(results, "b11669", "b11434", "b10434")
    assert len(rows) > 100
    assert share(rows, lambda r: r.parts["compute"] == r.case.truth["compute"]) >= 0.98


def test_every_row_of_the_build_whose_source_was_read_is_equal_to_the_byte(results: list[Result]) -> None:
    for build in ("b11434", "b10434"):
        rows = on_cpu(results, build)
        assert len(rows) > 10
        assert [r.case.id for r in rows if r.parts != r.case.truth] == []


def test_totals_on_the_processor(results: list[Result]) -> None:
    rows = on_cpu(results, "b11669", "b11434", "b10434")
    assert share(rows, lambda r: off(r.total, r.case.total) <= 0.001) >= 0.98
    assert [r.case.id for r in rows if off(r.total, r.case.total) > 0.01] == []


def test_sides_of_a_card(results: list[Result]) -> None:
    rows = [r for r in results if r.case.load.has_card and r.case.front_end == "server"]
    assert len(rows) > 20
    assert share(rows, lambda r: off(r.total, r.case.total) <= 0.01) >= 0.95
    assert share(rows, lambda r: off(r.host, r.case.host) <= 0.01) >= 0.95
    assert share(rows, lambda r: off(r.device, r.case.device) <= 0.01) >= 0.9
    assert share(rows, lambda r: off(r.device, r.case.device) <= 0.05) >= 0.95
    assert [r.case.id for r in rows if off(r.total, r.case.total) > 0.05] == []


def test_it_is_never_too_low_on_the_processor_and_hardly_ever_with_a_card(results: list[Result]) -> None:
    low = [r.case for r in results if r.total < 0.99 * r.case.total]
    assert [case.id for case in low if not case.load.has_card] == []
    assert len(low) <= 0.05 * sum(r.case.load.has_card for r in results), [case.id for case in low]
