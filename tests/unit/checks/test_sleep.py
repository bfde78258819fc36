"""A server that sleeps: passed, failed and unknown for each check."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks import sleep as checks
from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.errors import NotKnownError
from llamaops.probes.sleep import SleepFacts, SleepLook
from tests.fakes.server_facts import answer

LOOKS = tuple(
    SleepLook(answer=answer(name, request=f"GET /{name}"), still_asleep=True)
    for name in ("health", "models", "props")
)
GOOD = SleepFacts(
    idle_s=2, found_asleep=False, asleep_after_s=2.5, waited_s=2.5, log_says_asleep=True, looks=LOOKS,
    woken=answer("sleep"), asleep_afterwards=False,
)  # fmt: skip


def like(**changes: Any) -> SleepFacts:
    return msgspec.structs.replace(GOOD, **changes)


def holds(verdict: Verdict | NotApplicable) -> bool:
    assert isinstance(verdict, Verdict)
    return verdict.holds


def test_falls_asleep() -> None:
    assert holds(checks.falls_asleep(GOOD))
    assert holds(checks.falls_asleep(like(log_says_asleep=None)))
    assert isinstance(checks.falls_asleep(like(idle_s=None, found_asleep=True)), NotApplicable)
    verdict = checks.falls_asleep(like(asleep_after_s=None, waited_s=10.0))
    assert not holds(verdict)
    assert "its log says that it sleeps" in verdict.summary


def test_wakes_and_answers() -> None:
    assert holds(checks.wakes_and_answers(GOOD))
    assert isinstance(checks.wakes_and_answers(like(woken=None)), NotApplicable)
    for changes in (
        {"woken": answer("sleep", "broken", 500)},
        {"woken": answer("sleep", "unreachable", None)},
        {"problem": "replacement"},
        {"asleep_afterwards": True},
    ):
        assert not holds(checks.wakes_and_answers(like(**changes)))
    for state in ("no_answer", "loading"):
        with pytest.raises(NotKnownError):
            checks.wakes_and_answers(like(woken=answer("sleep", state, None)))


def test_looking_does_not_wake() -> None:
    assert holds(checks.looking_does_not_wake(GOOD))
    assert isinstance(checks.looking_does_not_wake(like(looks=())), NotApplicable)
    awake = msgspec.structs.replace(LOOKS[1], still_asleep=False)
    verdict = checks.looking_does_not_wake(like(looks=(LOOKS[0], awake, awake)))
    assert not holds(verdict)
    assert "GET /models woke it" in verdict.summary
    silent = msgspec.structs.replace(LOOKS[0], answer=answer("health", "loading", 503))
    assert not holds(checks.looking_does_not_wake(like(looks=(silent, *LOOKS[1:]))))
    scraped = SleepLook(answer=answer("metrics"), still_asleep=False)
    verdict = checks.looking_does_not_wake(like(scrape=scraped))
    assert holds(verdict)
    assert "GET /metrics woke it" in verdict.summary
    unsaid = msgspec.structs.replace(LOOKS[0], still_asleep=None)
    with pytest.raises(NotKnownError):
        checks.looking_does_not_wake(like(looks=(unsaid,)))
