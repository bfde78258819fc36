"""Levels hold each other, and --only and --skip are read with care."""

from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.probes.registry import all_probes
from llamaops.probes.selection import ALWAYS, NEEDS, everything_at, select


def test_each_level_holds_the_one_before() -> None:
    assert everything_at("basic") < everything_at("standard") <= everything_at("full")
    assert "concurrency" not in everything_at("basic")
    assert select().level == "standard"


def test_what_is_needed_is_asked_too() -> None:
    assert select(only=["concurrency"]).ids == ALWAYS | {"concurrency", "chat"}
    assert set(NEEDS) <= {item.id for item in all_probes()}


def test_promises_follow_from_what_is_asked() -> None:
    assert select("basic").promises() == ("generated_output", "api_response")
    assert select().promises()[-1] == "concurrency"
    assert select(skip=["concurrency", "late-request"]).promises()[-1] == "api_response"
    assert select(only=["props"]).promises() == ("api_response",)


def test_names_are_given_one_by_one_or_with_commas() -> None:
    assert select(skip=["auth,slots", "metrics"]).ids.isdisjoint({"auth", "slots", "metrics"})


@pytest.mark.parametrize(
    ("level", "only", "skip", "said"),
    [
        ("harder", [], [], "basic, standard, full"),
        ("named", [], [], "basic, standard, full"),
        (None, ["chatt"], [], "did you mean chat"),
        (None, [], ["health"], "always asked"),
        (None, [], ["zzz"], "verify --list"),
    ],
)
def test_what_does_not_exist_is_refused(
    level: str | None, only: list[str], skip: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        select(level, only, skip)
