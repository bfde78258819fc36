from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.canary import (
    CanaryFacts,
    CanarySide,
    DefaultChange,
    FlagChange,
    FlagComparison,
    FlagState,
    Memory,
)
from llamaops.schema.fact import Fact, Known, Source, Unknown, known, not_attempted

HERE = Source(kind="http", name="test")
MIB = 1024 * 1024


def fact(value: Any) -> Known[Any]:
    return known(value, HERE)


def memory(total: int) -> Memory:
    return Memory(weights_bytes=fact(total), kv_bytes=fact(0), compute_bytes=fact(0))


def side(**fields: Any) -> CanarySide:
    whole: dict[str, Any] = {
        "program": "/opt/llama-server",
        "build": "b1",
        "argv": ("llama-server",),
        "ready": True,
        "judged": 40,
        "templates": (fact("<user>"),),
        "tokens": (fact((1, 2)),),
        "greedy": (fact("one two"),),
        "endpoints": {"GET /health": "works", "POST /infill": "refuses_as_documented"},
        "errors": {"no messages": "400 (documented)"},
        "memory": memory(100 * MIB),
    }
    return CanarySide(**{**whole, **fields})


def flags(state: FlagState = "same", **fields: Any) -> Fact[FlagComparison]:
    change = FlagChange(flag="--mlock", state=state, **fields)
    return fact(FlagComparison(in_use=(change,), defaults=()))


def statuses(
    candidate: CanarySide, current: CanarySide | None = None, used: Fact[FlagComparison] | None = None
) -> dict[str, str]:
    facts = CanaryFacts(current=current or side(), candidate=candidate, flags=used or flags())
    found = [run_check(check, {CanaryFacts: facts}) for check in all_checks(["upgrade"])]
    return {finding.check: finding.status for finding in found if finding is not None}


def not_passed(candidate: CanarySide, **more: Any) -> dict[str, str]:
    return {name: status for name, status in statuses(candidate, **more).items() if status != "passed"}


def test_the_same_build_passes_everything() -> None:
    assert set(statuses(side()).values()) == {"passed"}
    assert len(statuses(side())) == 9


@pytest.mark.parametrize(
    ("fields", "check"),
    [
        ({"failed": ("server.chat-answers",)}, "upgrade.candidate-verifies-as-well"),
        ({"templates": (fact("<assistant>"),)}, "upgrade.templates-agree"),
        ({"tokens": (fact((1, 3)),)}, "upgrade.tokens-agree"),
        ({"greedy": (fact("one three"),)}, "upgrade.greedy-output-agrees"),
        ({"endpoints": {"GET /health": "absent"}}, "upgrade.endpoints-still-work"),
        ({"endpoints": {}}, "upgrade.endpoints-still-work"),
        ({"errors": {"no messages": "500 (not documented)"}}, "upgrade.errors-agree"),
        ({"memory": memory(200 * MIB)}, "upgrade.memory-is-not-more"),
    ],
)
def test_a_difference_is_one_finding(fields: dict[str, Any], check: str) -> None:
    assert not_passed(side(**fields)) == {check: "failed"}


def test_a_little_more_memory_is_none() -> None:
    assert not_passed(side(memory=memory(110 * MIB))) == {}


@pytest.mark.parametrize("state", ["vanished", "renamed", "takes_other_value"])
def test_a_flag_that_does_not_work_any_more(state: FlagState) -> None:
    assert not_passed(side(), used=flags(state, then="--load-mode mlock")) == {
        "upgrade.flags-still-there": "failed"
    }


def test_a_flag_that_still_works() -> None:
    assert not_passed(side(), used=flags("deprecated")) == {}
    assert not_passed(side(), used=flags("default_changed")) == {"upgrade.defaults-are-the-same": "failed"}
    silent = FlagComparison(in_use=(), defaults=(DefaultChange(flag="--port", now="8080", then="9931"),))
    assert not_passed(side(), used=fact(silent)) == {"upgrade.defaults-are-the-same": "failed"}


def test_flags_that_could_not_be_compared_are_unknown() -> None:
    found = not_passed(side(), used=not_attempted("no help"))
    assert found == {"upgrade.flags-still-there": "unknown", "upgrade.defaults-are-the-same": "unknown"}


def test_a_candidate_that_does_not_come_up_is_one_failure_and_the_rest_is_unknown() -> None:
    found = not_passed(CanarySide(program="/x", build="b2", argv=(), ready=False, why_not="no such model"))
    assert found.pop("upgrade.candidate-verifies-as-well") == "failed"
    assert set(found.values()) == {"unknown"}


def test_a_build_in_use_that_does_not_come_up_proves_nothing() -> None:
    down = msgspec.structs.replace(side(), ready=False)
    assert set(not_passed(side(), current=down).values()) == {"unknown"}


def test_what_already_fails_now_is_not_worse() -> None:
    bad = side(failed=("server.chat-answers",))
    assert not_passed(bad, current=bad) == {}


def test_what_could_not_be_judged_is_named_and_is_not_worse() -> None:
    unsure = side(not_shown=("server.stream-arrives-over-time",))
    assert not_passed(unsure) == {}
    facts = CanaryFacts(current=side(), candidate=unsure, flags=flags())
    check = next(c for c in all_checks(["upgrade"]) if c.id == "upgrade.candidate-verifies-as-well")
    finding = run_check(check, {CanaryFacts: facts})
    assert finding is not None
    assert "39 of 40 required checks pass; not shown: server.stream-arrives-over-time" in finding.summary


def test_an_answer_of_one_build_only_is_unknown_and_of_none_nothing() -> None:
    gone = (Unknown(why="absent", detail="no /apply-template", source=HERE),)
    assert not_passed(side(templates=gone)) == {"upgrade.templates-agree": "unknown"}
    assert "upgrade.templates-agree" not in statuses(side(templates=gone), side(templates=gone))
