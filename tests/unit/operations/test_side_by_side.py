"""Tasks run at the same time; what each found is handed on while others are at work."""

from __future__ import annotations

import threading

import pytest

from llamaops.operations.side_by_side import side_by_side
from llamaops.system import guard


def test_what_is_done_is_handed_on_before_the_first_task_ends() -> None:
    go_on = threading.Event()
    told: list[tuple[str, object]] = []

    def done(name: str, result: object) -> None:
        told.append((name, result))
        go_on.set()

    def slow() -> int:
        return 1 if go_on.wait(10) else 0

    assert side_by_side({"slow": slow, "quick": lambda: 2}, done=done) == {"slow": 1, "quick": 2}
    assert told == [("quick", 2), ("slow", 1)]


def test_a_task_that_breaks_stops_every_child(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(guard, "stop_run", lambda: stopped.append(True))

    def breaks() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        side_by_side({"breaks": breaks, "works": int})
    assert stopped == [True]
