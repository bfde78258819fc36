"""Does a streamed answer arrive while it is generated, and is it whole? Holds, does not, not known."""

from __future__ import annotations

from typing import Any

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.probes.completion_body import ServerTimings
from llamaops.probes.server import ServerFacts
from llamaops.schema.finding import Finding
from tests.fakes.server_facts import CHAT, PROPS, STREAM, answer, changed, server, unknown

CHECKS = {check.id: check for check in all_checks(("server",))}


def run(name: str, facts: ServerFacts) -> Finding | None:
    return run_check(CHECKS[f"server.{name}"], {ServerFacts: facts, AskedFacts: AskedFacts()})


def status(name: str, facts: ServerFacts) -> str:
    finding = run(name, facts)
    assert finding is not None
    return finding.status


def stream(**changes: Any) -> ServerFacts:
    return server(chat_stream=changed(STREAM, **changes))


def timings(seconds: float) -> ServerTimings:
    return ServerTimings(prompt_tokens=1, generated_tokens=20, generation_s=seconds)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "passed"),
        ({"timings": None}, "passed"),
        ({"lumps": 4, "pieces": 20}, "passed"),  # several tokens at a time, as with a draft model
        ({"lumps": 1, "spread_s": 0.0001}, "failed"),
        ({"lumps": 1, "spread_s": 0.0001, "timings": None}, "failed"),
        ({"lumps": 2, "spread_s": 0.19}, "failed"),
        ({"lumps": 19, "spread_s": 0.01}, "failed"),  # the server generated for 0.2 s
        ({"pieces": 1, "lumps": 1, "spread_s": None}, "unknown"),
        ({"pieces": 3, "lumps": 3}, "unknown"),
        # A tiny model: 0.1 ms for a token is below what our clock can tell apart.
        ({"lumps": 1, "spread_s": 0.0018, "timings": timings(0.002)}, "passed"),
        ({"lumps": 1, "spread_s": 0.0001, "timings": timings(0.002)}, "unknown"),
        # Two lumps, and timings that claim to be fast.
        ({"lumps": 2, "spread_s": 0.1, "timings": timings(0.002)}, "failed"),
        ({"lumps": 1, "spread_s": 0.001, "first_token_s": 0.001, "timings": None}, "unknown"),
    ],
)
def test_stream_arrives_over_time(changes: dict[str, Any], expected: str) -> None:
    assert status("stream-arrives-over-time", stream(**changes)) == expected


def test_a_stream_that_was_refused_or_not_asked() -> None:
    for name in ("stream-arrives-over-time", "stream-is-complete"):
        assert status(name, server(answers=(answer("chat-stream", "broken", 500),))) == "failed"
        hangs = server(answers=(answer("chat-stream", "no_answer", None),), chat_stream=unknown())
        assert status(name, hangs) == "unknown"
        assert status(name, server(without=("chat-stream",))) == "unknown"


@pytest.mark.parametrize(
    "changes",
    [
        {"content_type": "application/json"},
        {"error": "out of memory"},
        {"ended": "cut"},
        {"ended": "timed_out"},
        {"ended": "too_large"},
        {"ended": "bad_response"},
        {"ended": "closed"},
        {"unreadable": 1},
        {"pieces": 0},
        {"finish_reason": None},
        {"finish_reason": "x"},
        {"ids": ("a", "b")},
        {"usage": None},
    ],
)
def test_a_stream_that_lacks_a_part(changes: dict[str, Any]) -> None:
    assert status("stream-is-complete", stream(**changes)) == "failed"


def test_stream_is_complete() -> None:
    assert status("stream-is-complete", server()) == "passed"
    assert status("stream-is-complete", server(chat_stream=unknown())) == "unknown"


def test_a_build_that_does_not_say_how_old_it_is_may_lack_what_2024_lacked() -> None:
    old = server(
        props=changed(PROPS, build_info=None), chat_stream=changed(STREAM, ended="closed", usage=None)
    )
    assert status("stream-is-complete", old) == "unknown"
    cut = server(props=changed(PROPS, build_info=None), chat_stream=changed(STREAM, finish_reason=None))
    assert status("stream-is-complete", cut) == "failed"


def test_stream_agrees_with_answer() -> None:
    finding = run("stream-agrees-with-answer", server())
    assert finding is not None
    assert (finding.status, finding.severity) == ("passed", "advisory")
    assert status("stream-agrees-with-answer", stream(text="Something else.")) == "failed"
    assert status("stream-agrees-with-answer", server(chat=changed(CHAT, text=""))) == "failed"
    cut = changed(CHAT, text="", finish_reason="length")
    assert status("stream-agrees-with-answer", server(chat=cut)) == "unknown"
