"""A request that runs when the server is stopped has to end, whatever way, and nothing may be left."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.checks.drain import running_request_ends
from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.probes.drain import DrainFacts

ENDED = DrainFacts(pieces_before=2, ended="cut", pieces=9, ended_s=5.2, stop="second_sigterm", stop_s=5.2)


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"ended": "done", "ended_s": 0.4}, True),
        ({"ended": "error_event"}, True),
        ({"ended": "timed_out"}, False),
        ({"left": (4711,)}, False),
        ({"ended_s": 16.0}, False),
    ],
)
def test_it_ends_in_the_grace_time(change: dict[str, object], holds: bool) -> None:
    found = running_request_ends(msgspec.structs.replace(ENDED, **change))
    assert isinstance(found, Verdict)
    assert found.holds is holds
    assert "second sigterm" in found.summary


def test_where_nothing_ran_there_is_nothing_to_judge() -> None:
    assert isinstance(
        running_request_ends(msgspec.structs.replace(ENDED, ended="not_running")), NotApplicable
    )
