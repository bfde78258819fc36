from __future__ import annotations

import pytest

from llamaops.schema.fact import Known, Unknown
from llamaops.system.nvml import NvmlSnapshot, collect_nvml, parse_answers
from llamaops.system.process import Exited, NotStarted, Signalled, StoppedAtBound
from tests.fakes import nvml
from tests.fakes.system import FakeSystem


def snapshot(*answers: dict[str, object], **more: object) -> NvmlSnapshot:
    found = collect_nvml(FakeSystem(commands=nvml.said(*answers, **more)))  # type: ignore[arg-type]  # end and more
    assert isinstance(found, NvmlSnapshot)
    return found


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (1, "failed"), (3, "unsupported"), (4, "refused"), (6, "absent"), (9, "failed"), (10, "timed_out"),
        (12, "absent"), (13, "unsupported"), (15, "failed"), (17, "refused"), (18, "failed"), (999, "failed"),
        (-1, "failed"),
    ],
)  # fmt: skip
def test_each_error_has_its_reason(code: int, why: str) -> None:
    fact = snapshot({"device": 0, "query": "name", "code": code, "text": "words"}).fact(str, "name", 0)
    assert isinstance(fact, Unknown)
    assert fact.why == why
    assert "words" in fact.detail


def test_an_answer_has_the_evidence_it_was_read_from() -> None:
    system = FakeSystem(commands=nvml.said({"query": "count", "value": 2}))
    found = collect_nvml(system)
    assert isinstance(found, NvmlSnapshot)
    fact = found.fact(int, "count")
    assert isinstance(fact, Known)
    assert fact.source.evidence in system.kept


def test_a_call_that_does_not_return_costs_itself_and_what_comes_after_it() -> None:
    found = snapshot(
        {"device": 0, "query": "name", "value": "A"},
        {"device": 0, "query": "memory"},
        end=StoppedAtBound("wall_s", killed=True),
    )
    assert found.fact(str, "name", 0).need() == "A"
    stuck, later = found.fact(int, "memory", 0), found.fact(int, "power_draw", 0)
    assert isinstance(stuck, Unknown)
    assert stuck.why == "timed_out"
    assert isinstance(later, Unknown)
    assert later.why == "not_attempted"
    assert "memory" in later.detail


def test_a_library_that_crashes_is_a_failure_of_the_call_it_crashed_in() -> None:
    found = snapshot({"query": "init"}, end=Signalled(11))
    fact = found.fact(bool, "init")
    assert isinstance(fact, Unknown)
    assert (fact.why, "SIGSEGV" in fact.detail) == ("failed", True)


def test_an_answer_of_another_type_is_unparsed() -> None:
    fact = snapshot({"query": "count", "value": "two"}).fact(int, "count")
    assert isinstance(fact, Unknown)
    assert fact.why == "unparsed"


def test_null_is_an_answer() -> None:
    assert snapshot({"query": "x", "value": None}).fact(type(None), "x").need() is None


def test_what_a_library_prints_between_the_lines_is_left_out() -> None:
    data = b'NVRM: warning\n{"query":"count","value":1}\n{"query":"cut\n\xff\xfe\n[1]\n'
    assert list(parse_answers(data)) == [(None, None, "count")]


def test_a_child_that_says_nothing_has_failed() -> None:
    found = collect_nvml(FakeSystem(commands=nvml.said(end=Exited(1))))
    assert isinstance(found, Unknown)
    assert found.why == "failed"


def test_a_child_that_does_not_start_has_failed() -> None:
    found = collect_nvml(FakeSystem(commands=nvml.said(end=NotStarted("no memory", 12))))
    assert isinstance(found, Unknown)
    assert "no memory" in found.detail


def test_only_mig_devices_that_exist_are_listed() -> None:
    found = snapshot(
        {"device": 0, "mig": 0, "query": "handle", "value": True},
        {"device": 0, "mig": 1, "query": "handle", "code": 6, "text": "Not Found"},
        {"device": 1, "mig": 3, "query": "handle", "value": True},
    )
    assert found.migs(0) == [0]
