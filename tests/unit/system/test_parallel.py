from __future__ import annotations

import threading

import pytest

from llamaops.system.parallel import start


def test_calls_run_side_by_side() -> None:
    meet = threading.Barrier(2, timeout=5)
    first, second = start(meet.wait), start(meet.wait)
    assert sorted((first.result(), second.result())) == [0, 1]


def test_what_a_call_raises_is_raised_where_its_result_is_asked_for() -> None:
    def fails() -> int:
        raise ValueError("words")

    pending = start(fails)
    with pytest.raises(ValueError, match="words"):
        pending.result()
