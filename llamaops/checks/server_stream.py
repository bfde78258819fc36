"""Does a streamed answer arrive while it is generated, and is it whole?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.checks.server import evidence_of, fault_of
from llamaops.checks.server_answers import FINISH_REASONS, no_chat
from llamaops.errors import NotKnownError
from llamaops.probes.age import is_of_2024
from llamaops.probes.chat_stream import NEW_ARRIVAL_S, StreamAnswer
from llamaops.probes.server import ServerFacts
from llamaops.schema.fact import Known

FEWEST_PIECES = 4
"""Pieces of a stream that it takes to say anything about how they arrived."""


def _stream_of(server: ServerFacts) -> StreamAnswer | Verdict | NotApplicable:
    """Return the streamed answer, or why there is none to judge."""
    if (other := no_chat(server)) is not None:
        return other
    fault = fault_of(server.outcome("chat-stream").need(), "a stream")
    return server.chat_stream.need() if fault is None else fault


@check(
    "server.stream-arrives-over-time",
    title="Streamed text arrives while it is generated",
    boundary="api_response",
    remedy="something between us and the server buffers: switch off buffering and compression for streams",
)
def stream_arrives_over_time(server: ServerFacts) -> Verdict | NotApplicable:
    """Look at when the pieces arrived, by our clock, beside the server's own time of generation."""
    stream = _stream_of(server)
    if not isinstance(stream, StreamAnswer):
        return stream
    if stream.pieces < FEWEST_PIECES or stream.spread_s is None or stream.first_token_s is None:
        detail = f"{stream.pieces} pieces of text are too few to say how they arrived"
        raise NotKnownError("failed", detail)
    generation_s = stream.timings.generation_s if stream.timings else None
    observed = f"{stream.pieces} pieces in {stream.lumps} arrivals over {stream.spread_s * 1000:.1f} ms"
    if _is_too_fast(stream, generation_s):
        raise NotKnownError("failed", f"{observed}: too fast to tell from one lump")
    spread = generation_s is None or stream.spread_s >= 0.3 * generation_s
    apart = stream.lumps > max(2, stream.pieces // 8) or _is_quick(stream, generation_s)
    return Verdict(
        holds=spread and apart,
        summary=f"{observed}; first after {stream.first_token_s * 1000:.0f} ms"
        + (f"; the server says it generated for {generation_s * 1000:.1f} ms" if generation_s else ""),
        expected="many arrivals, spread over the time of generation",
        observed=observed,
        evidence=evidence_of(server.chat_stream),
    )


def _is_quick(stream: StreamAnswer, generation_s: float | None) -> bool:
    """Whether a token took too little time to see two arrivals apart, by the server's clock and by ours."""
    if generation_s is None or generation_s >= 2 * NEW_ARRIVAL_S * stream.pieces:
        return False
    return (stream.spread_s or 0.0) < 3 * generation_s + 10 * NEW_ARRIVAL_S


def _is_too_fast(stream: StreamAnswer, generation_s: float | None) -> bool:
    """Whether nothing can be said: all of it took no longer than the resolution of our clock allows."""
    spread, first = stream.spread_s or 0.0, stream.first_token_s or 0.0
    if generation_s is not None:
        return _is_quick(stream, generation_s) and spread < 0.3 * generation_s
    return spread + first < 2 * NEW_ARRIVAL_S * stream.pieces


@check(
    "server.stream-is-complete",
    title="The stream is whole: text, finish_reason, usage and its terminal marker",
    boundary="api_response",
    remedy="see the stream in the evidence; a client would take a cut answer for a whole one",
)
def stream_is_complete(server: ServerFacts) -> Verdict | NotApplicable:
    """Look for every part that a client needs to know that it has the whole answer."""
    stream = _stream_of(server)
    if not isinstance(stream, StreamAnswer):
        return stream
    faults, doubts = _stream_faults(stream), _missing_since_2024(stream)
    early = is_of_2024(server)
    if len(stream.ids) > 1:
        (doubts if early else faults).append("the pieces carry different ids")
    if not faults and doubts and not early and not _says_its_build(server):
        raise NotKnownError("unsupported", f"{'; '.join(doubts)}: this build does not say how old it is")
    faults += [] if early else doubts
    whole = f"{stream.pieces} pieces of text, finish_reason {stream.finish_reason}"
    whole += (
        f"; {', '.join(doubts)} (absent in this build, which is older than November 2024)"
        if doubts
        else ", usage, terminal marker"
    )
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or whole,
        expected="text/event-stream with text, finish_reason, usage and [DONE], and no error",
        observed="; ".join(faults) or whole,
        evidence=evidence_of(server.chat_stream),
    )


def _stream_faults(stream: StreamAnswer) -> list[str]:
    faults = []
    if stream.content_type != "text/event-stream":
        faults.append(f"the answer is {stream.content_type or 'of no named type'}, not an event stream")
    if stream.error:
        faults.append(f"an error inside the stream: {stream.error}")
    if stream.ended == "timed_out":
        faults.append("the stream stood still until the deadline")
    elif stream.ended not in {"done", "closed"}:
        faults.append(f"the stream broke off ({stream.ended.replace('_', ' ')})")
    if stream.unreadable:
        faults.append(f"{stream.unreadable} events of no known form")
    if not stream.pieces:
        faults.append("no piece of text came")
    if stream.finish_reason not in FINISH_REASONS:
        faults.append(f"finish_reason is {stream.finish_reason or 'missing'}")
    return faults


def _missing_since_2024(stream: StreamAnswer) -> list[str]:
    """Return what is missing that builds before the end of 2024 did not send."""
    missing = []
    if stream.ended == "closed":
        missing.append("no terminal marker [DONE]")
    if stream.usage is None:
        missing.append("no usage, though it was asked for")
    return missing


def _says_its_build(server: ServerFacts) -> bool:
    return isinstance(server.props, Known) and bool(server.props.value.build_info)


@check(
    "server.stream-agrees-with-answer",
    title="The streamed text is the text of the whole answer",
    boundary="api_response",
    severity="advisory",
    remedy="temperature 0 and the same seed usually give equal text; a back end that is not deterministic "
    "explains a difference too",
)
def stream_agrees_with_answer(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare both texts for the same prompt, seed and temperature 0."""
    if (other := no_chat(server)) is not None:
        return other
    chat, stream = server.chat.need(), server.chat_stream.need()
    if bool(chat.text) != bool(stream.text) and "stop" == chat.finish_reason == stream.finish_reason:
        where = "whole" if chat.text else "streamed"
        return Verdict(
            holds=False,
            summary=f"only the {where} answer has content, though both ended by themselves",
            expected="content in both",
            observed=f"content only {where}",
            evidence=evidence_of(server.chat, server.chat_stream),
        )
    if not chat.text or not stream.text:
        raise NotKnownError("absent", "one of the two answers has no content to compare")
    equal = chat.text == stream.text
    return Verdict(
        holds=equal,
        summary="both texts are equal" if equal else "the two texts differ",
        expected=f"{len(chat.text)} equal characters",
        observed=f"{len(stream.text)} characters, {'equal' if equal else 'different'}",
        evidence=evidence_of(server.chat, server.chat_stream),
    )
