"""A client that goes, reasoning, schemas, tools and the context are judged, and never by too little."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks.features import (
    content_can_be_had,
    context_is_real,
    disconnect_frees_the_slot,
    requests_fit_together,
    schema_is_followed,
    tool_is_called,
)
from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.errors import NotKnownError
from llamaops.probes.disconnect import DisconnectAnswer
from llamaops.probes.endpoint import EndpointAnswer, EndpointState
from llamaops.probes.features import ContextAnswer, StructuredAnswer, ToolAnswer, ToolStream
from llamaops.probes.more import MoreFacts
from llamaops.probes.pool import PoolAnswer
from llamaops.probes.reasoning import ReasoningFacts
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted

SOURCE = Source(kind="http", name="made for a test")
GAP: Unknown = not_attempted("not here")
NOT_THIS = Unknown(why="unsupported", detail="not this server", source=SOURCE)


def facts(
    disconnect: Fact[DisconnectAnswer] = GAP,
    reasoning: Fact[ReasoningFacts] = GAP,
    structured: Fact[StructuredAnswer] = GAP,
    tools: Fact[ToolAnswer] = GAP,
    context: Fact[ContextAnswer] = GAP,
    pool: Fact[PoolAnswer] = GAP,
) -> MoreFacts:
    return MoreFacts(
        disconnect=disconnect, reasoning=reasoning, structured=structured, tools=tools, context=context,
        pool=pool,
    )  # fmt: skip


def answer(state: EndpointState, status: int | None) -> EndpointAnswer:
    return EndpointAnswer(
        probe="p",
        request="POST",
        key="none",
        state=state,
        status=status,
        detail=f"HTTP {status}",
        elapsed_s=1.0,
    )


def verdict(found: Verdict | NotApplicable) -> Verdict:
    assert isinstance(found, Verdict)
    return found


def left(free_s: float | None, left_s: float, before: int = 0) -> MoreFacts:
    seen = DisconnectAnswer(
        answer=answer("works", 200), max_tokens=99, pieces=3, left_s=left_s,
        busy_before=before, free_s=free_s,
        seen_by="GET /slots",
    )  # fmt: skip
    return facts(disconnect=Known(value=seen, source=SOURCE))


def test_a_slot_is_free_soon_or_the_request_ran_on() -> None:
    assert verdict(disconnect_frees_the_slot(left(0.1, 4.0))).holds
    assert "too short to tell" in verdict(disconnect_frees_the_slot(left(0.1, 0.1))).summary
    assert "ran on" in verdict(disconnect_frees_the_slot(left(3.9, 4.0))).summary
    assert not verdict(disconnect_frees_the_slot(left(3.9, 4.0))).holds
    assert not verdict(disconnect_frees_the_slot(left(None, 9.0))).holds
    with pytest.raises(NotKnownError, match="others"):
        disconnect_frees_the_slot(left(None, 9.0, before=1))


def test_what_does_not_concern_a_server_is_not_judged() -> None:
    nothing = facts(NOT_THIS, NOT_THIS, NOT_THIS, NOT_THIS, NOT_THIS)
    for check in (
        disconnect_frees_the_slot, content_can_be_had, schema_is_followed, tool_is_called, context_is_real
    ):  # fmt: skip
        assert isinstance(check(nothing), NotApplicable)


def test_content_that_no_change_gives() -> None:
    seen = ReasoningFacts(tries=(), gave_content=(), not_tried=("thinking_off: no switch",))
    found = verdict(content_can_be_had(facts(reasoning=Known(value=seen, source=SOURCE))))
    assert not found.holds
    assert "no switch" in found.summary


@pytest.mark.parametrize(("fault", "finish"), [("", "stop"), ("not JSON", "stop"), ("not JSON", "length")])
def test_structured_answers_and_tool_calls(fault: str, finish: str) -> None:
    structured = StructuredAnswer(fault=fault, finish_reason=finish, completion_tokens=9)
    tool = ToolAnswer(fault=fault, calls=1, finish_reason=finish)
    made = facts(structured=Known(value=structured, source=SOURCE), tools=Known(value=tool, source=SOURCE))
    for check in (schema_is_followed, tool_is_called):
        if fault and finish == "length":
            with pytest.raises(NotKnownError, match="cut at its limit"):
                check(made)
        else:
            assert verdict(check(made)).holds is (not fault)


def test_a_call_that_is_lost_in_a_stream_fails_and_one_that_was_cut_is_unknown() -> None:
    def streamed(**changes: Any) -> MoreFacts:
        stream = ToolStream(
            **{"fault": "", "calls": 1, "pieces": 9, "finish_reason": "tool_calls", **changes}
        )
        answer = ToolAnswer(fault="", calls=1, finish_reason="tool_calls", streamed=stream)
        return facts(tools=Known(value=answer, source=SOURCE))

    found = verdict(tool_is_called(streamed()))
    assert found.holds
    assert "streamed in 9 pieces" in found.summary
    lost = verdict(tool_is_called(streamed(fault="no call of the tool came", calls=0, pieces=0)))
    assert not lost.holds
    assert "streamed: no call" in lost.summary
    for late in ({"in_time": False}, {"finish_reason": "length"}):
        with pytest.raises(NotKnownError):
            tool_is_called(streamed(fault="no call of the tool came", **late))


@pytest.mark.parametrize(
    ("under", "over", "evaluated", "holds"),
    [
        (answer("works", 200), answer("refuses", 400), 508, True),
        (answer("refuses", 400), answer("refuses", 400), None, False),
        (answer("works", 200), answer("works", 200), 508, False),
        (answer("works", 200), answer("refuses", 400), 100, False),
        (answer("works", 200), answer("broken", 500), 508, False),
    ],
)
def test_the_edge_of_the_context(
    under: EndpointAnswer, over: EndpointAnswer, evaluated: int | None, holds: bool
) -> None:
    seen = ContextAnswer(
        context_tokens=512, under_tokens=508, under=under, under_evaluated=evaluated,
        over_tokens=512, over=over,
        over_state=over.state,
    )  # fmt: skip
    assert verdict(context_is_real(facts(context=Known(value=seen, source=SOURCE)))).holds is holds


def test_each_of_several_large_prompts_is_reported() -> None:
    good, bad = answer("works", 200), answer("broken", 500)
    seen = PoolAnswer(context_tokens=512, prompt_tokens=307, alone=good, together=(bad, bad))
    found = verdict(requests_fit_together(facts(pool=Known(value=seen, source=SOURCE))))
    assert not found.holds
    assert "2 of 2 failed together" in found.summary
    assert "request 2: HTTP 500" in found.summary
    seen = msgspec.structs.replace(seen, together=(good, good))
    assert verdict(requests_fit_together(facts(pool=Known(value=seen, source=SOURCE)))).holds
    assert isinstance(requests_fit_together(facts()), NotApplicable)


def test_a_context_that_was_not_filled_is_not_judged() -> None:
    assert isinstance(context_is_real(facts()), NotApplicable)
