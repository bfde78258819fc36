"""A server is ready, stays alive and leaves nothing behind; each unknown stays unknown."""

from __future__ import annotations

from typing import Any

import pytest

from llamaops.checks.lifecycle import becomes_ready, leaves_nothing_behind, port_was_free, stays_alive
from llamaops.checks.registry import NotApplicable, Verdict, all_checks, run_check
from llamaops.facts.lifecycle import HealthPoll, LifecycleFacts
from llamaops.schema.fact import Source, Unknown, known, not_attempted

SOURCE = Source(kind="library", name="a test")
ABSENT = Unknown(why="absent", detail="nothing to see", source=SOURCE)


def lifecycle(**changes: Any) -> LifecycleFacts:
    values: dict[str, Any] = {
        "address": "127.0.0.1:8080",
        "port_holder": known("", SOURCE),
        "pid": known(42, SOURCE),
        "health": (HealthPoll(answer="503", count=3, first_s=0.1, last_s=0.4),),
        "ready_s": known(0.5, SOURCE),
        "ready_lag_s": known(0.002, SOURCE),
        "first_error": ABSENT,
        "end": not_attempted("it is still serving"),
        "stop_s": not_attempted("not stopped yet"),
    }
    return LifecycleFacts(**{**values, **changes})


STOPPED = {"stop": "first_sigterm", "stop_s": known(0.05, SOURCE), "end": known("exit status 0", SOURCE)}
FAILED_START = {
    "ready_s": Unknown(why="failed", detail="not ready", source=SOURCE),
    "end": known("exit status 1", SOURCE),
    "first_error": known("failed to load model", SOURCE),
}


def verdict(found: Verdict | NotApplicable) -> Verdict:
    assert isinstance(found, Verdict)
    return found


def test_a_free_port_passes_and_a_held_one_names_its_holder() -> None:
    assert port_was_free(lifecycle()).holds
    held = port_was_free(lifecycle(port_holder=known("the process 7", SOURCE)))
    assert not held.holds
    assert held.summary == "127.0.0.1:8080 is held by the process 7"


def test_ready_says_how_long_it_took() -> None:
    assert verdict(becomes_ready(lifecycle())).summary == "ready after 0.50 s"


def test_a_failed_start_names_end_health_and_first_error() -> None:
    found = verdict(becomes_ready(lifecycle(**FAILED_START)))
    assert not found.holds
    assert found.summary == (
        "not ready: process exit status 1; last health answer: 503; first error: failed to load model"
    )


def test_another_address_than_asked_is_named() -> None:
    found = verdict(becomes_ready(lifecycle(**FAILED_START, elsewhere=("0.0.0.0:9090",))))
    assert found.summary == "its log says ready, but it listens on 0.0.0.0:9090 and not on 127.0.0.1:8080"


def test_an_illegal_instruction_gets_its_own_remedy() -> None:
    found = verdict(becomes_ready(lifecycle(**{**FAILED_START, "end": known("ended by SIGILL", SOURCE)})))
    assert found.remedy is not None
    assert "CPU" in found.remedy


def test_a_taken_port_is_judged_once() -> None:
    taken = lifecycle(port_holder=known("the process 7", SOURCE), ready_s=not_attempted("not started"))
    assert isinstance(becomes_ready(taken), NotApplicable)


def test_a_server_that_dies_while_serving_fails() -> None:
    assert verdict(stays_alive(lifecycle())).holds
    died = lifecycle(died_while_serving=True, end=known("ended by SIGKILL", SOURCE))
    assert not verdict(stays_alive(died)).holds
    assert isinstance(stays_alive(lifecycle(**FAILED_START)), NotApplicable)


def test_a_clean_stop_passes_and_leftovers_are_told() -> None:
    assert verdict(leaves_nothing_behind(lifecycle(**STOPPED))).holds
    left = verdict(leaves_nothing_behind(lifecycle(**STOPPED, left=(9, 10))))
    assert not left.holds
    assert "2 descendants left" in left.summary
    assert not verdict(leaves_nothing_behind(lifecycle(**{**STOPPED, "stop": "sigkill"}))).holds
    assert isinstance(leaves_nothing_behind(lifecycle()), NotApplicable)


@pytest.mark.parametrize(
    ("check_id", "changes"),
    [
        ("lifecycle.port-was-free", {"port_holder": not_attempted("not looked")}),
        ("lifecycle.leaves-nothing-behind", {**STOPPED, "stop_s": not_attempted("lost")}),
    ],
)
def test_what_is_unknown_stays_unknown(check_id: str, changes: dict[str, Any]) -> None:
    check = next(one for one in all_checks(["lifecycle"]) if one.id == check_id)
    finding = run_check(check, {LifecycleFacts: lifecycle(**changes)})
    assert finding is not None
    assert finding.status == "unknown"
