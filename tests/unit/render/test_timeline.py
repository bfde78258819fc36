"""A timeline shows who waited and whose text came when."""

from __future__ import annotations

from typing import Any

from llamaops.render.timeline import COLUMNS, timelines


def request(number: int, begin: float) -> dict[str, Any]:
    times = [begin + 0.1 * n for n in range(10)]
    return {"number": number, "sent_s": 0.0, "ended_s": times[-1], "times_s": times}


def test_those_side_by_side_and_those_that_wait_are_told_apart() -> None:
    done = {
        "max_tokens": 24,
        "requests": [request(1, 0.1), request(2, 0.1), request(3, 1.2)],
        "samples": [{"at_s": 0.2, "busy": [0, 1]}, {"at_s": 1.7, "busy": None}],
    }
    facts = {"concurrency": {"rounds": {"state": "known", "value": [done]}, "late": None}}
    [(title, lines)] = timelines(facts)
    assert title == "Round 1: 3 requests of at most 24 tokens at once"
    bars = [line.split("|")[1] for line in lines[:3]]
    assert {len(bar) for bar in bars} == {COLUMNS}
    assert bars[0] == bars[1]
    assert bars[2].startswith("." * 20)
    assert "#" in bars[2]
    assert not bars[0].rstrip().endswith(".")
    assert lines[-2:] == ["/slots at 0.20 s: busy 0, 1", "/slots at 1.70 s: busy no answer"]


def test_a_record_without_several_requests_has_none() -> None:
    assert list(timelines({})) == []
    assert list(timelines({"concurrency": None})) == []
