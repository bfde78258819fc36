"""One of several streamed requests: its own status, text, usage and times, by one clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llamaops.probes.chat import PATH, request_body
from llamaops.probes.chat_stream import DONE, StreamReader, read_events
from llamaops.probes.completion_body import ServerTimings, Usage
from llamaops.probes.endpoint import EndpointAnswer, answer_of, key_sent, with_state
from llamaops.probes.usable_text import TextProblem, judge_text
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import HttpFailure, StreamExchange
from llamaops.system.sse import SseEvent

TEXT_CHARACTERS = 400
MOST_TIMES = 512
FINISHED = frozenset({"stop", "length"})


class StreamedRequest(Shape, frozen=True, kw_only=True):
    """One streamed request of ours; times are seconds after the first of its round was begun."""

    number: int
    """Which of the round, from 1."""
    answer: EndpointAnswer
    """What it came to."""
    max_tokens: int
    """Bound on generated tokens that was sent."""
    sent_s: float
    """When it had been sent."""
    started_s: float | None = None
    """When the first event came: a server sends none before a slot has taken the request."""
    waited_s: float | None = None
    """Seconds from sending to the first event."""
    ended_s: float | None = None
    """When the last event came."""
    times_s: tuple[float, ...] = ()
    """When each piece of text arrived; at most 512."""
    pieces: int = 0
    """Pieces of text; not a number of tokens."""
    finish_reason: str | None = None
    """Why it ended."""
    usage: Usage | None = None
    """Tokens, as the server counts them."""
    timings: ServerTimings | None = None
    """What the server measured."""
    id: str | None = None
    """The answer's id."""
    ids: int = 0
    """Different ids that its pieces carry; one is right, but for builds before September 2024."""
    text: str = ""
    """The beginning of the text; kept because the prompt is our own."""
    problem: TextProblem | None = None
    """What is wrong with the text; none if usable."""
    fault: str | None = None
    """Why this request counts as failed; none where it was answered whole."""


def long_body(prompt: str, *, max_tokens: int, model: str | None) -> dict[str, object]:
    """Return the body of a streamed request that goes on to its limit, whatever the model would say."""
    body = request_body(prompt, max_tokens=max_tokens, model=model, stream=True)
    return {**body, "ignore_eos": True}


class Sending(NamedTuple):
    """What the requests of one round have in common."""

    client: HttpClient
    probe: str
    model: str | None
    max_tokens: int
    bounds: Bounds
    origin_s: float
    """The clock's reading from which times are counted."""


def ask_streamed(
    sending: Sending, number: int, prompt: str, on_event: Callable[[SseEvent, int], None] | None = None
) -> StreamedRequest:
    """Send one streamed request and read it to its end.

    Args:
        sending: What it has in common with others.
        number: Which of its round.
        prompt: Our own prompt.
        on_event: Called with each event and the number of pieces of text so far.

    Raises: nothing for what a server does.
    """
    client, probe, model, max_tokens, bounds, origin_s = sending
    body = long_body(prompt, max_tokens=max_tokens, model=model)
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=32 * KIB, total_bytes=4 * MIB)
    began = client.now() - origin_s
    seen = StreamReader()

    def take(event: SseEvent) -> bool:
        if on_event is not None:
            seen.take(event)
            on_event(event, len(seen.times))
        return event.data.strip() == DONE

    result = client.stream("POST", PATH, bounds=limits, body=body, stop=take)
    answer = answer_of(probe, f"POST {PATH} (streamed, request {number})", key_sent(client), result)
    if isinstance(result, HttpFailure) or answer.state != "works":
        return StreamedRequest(
            number=number, answer=answer, max_tokens=max_tokens, sent_s=round(began, 6), fault=answer.detail
        )
    return _read(number, answer, result, prompt, max_tokens, result.sent_at_s - origin_s)


def _read(
    number: int, answer: EndpointAnswer, result: StreamExchange, prompt: str, max_tokens: int, sent_s: float
) -> StreamedRequest:
    reader = read_events(result.events)
    if not result.events and result.end == "timed_out":
        answer = with_state(answer, "no_answer", f"HTTP {result.status}, and then no event in time")
    content = "".join(reader.content) or "".join(reader.reasoning)
    last = result.events[-1].at_s if result.events else None
    return StreamedRequest(
        number=number,
        answer=answer,
        max_tokens=max_tokens,
        sent_s=round(sent_s, 6),
        started_s=_after(sent_s, reader.began),
        waited_s=None if reader.began is None else round(reader.began, 6),
        ended_s=_after(sent_s, last),
        times_s=tuple(round(sent_s + at, 5) for at in reader.times[:MOST_TIMES]),
        pieces=len(reader.times),
        finish_reason=reader.finish,
        usage=reader.usage,
        timings=reader.timings,
        id=reader.ids[0] if reader.ids else None,
        ids=len(set(reader.ids)),
        text=content[:TEXT_CHARACTERS],
        problem=judge_text(content, prompt),
        fault=_fault(reader, result, answer, content),
    )


def _after(sent_s: float, at_s: float | None) -> float | None:
    return None if at_s is None else round(sent_s + at_s, 6)


def _fault(reader: StreamReader, result: StreamExchange, answer: EndpointAnswer, content: str) -> str | None:
    """Return what is missing for a whole answer; not a judgement of its text."""
    if answer.state != "works":
        return answer.detail
    if reader.error:
        return f"an error inside the stream: {reader.error}"
    if not (reader.done or result.end in {"closed", "stopped"}):
        return f"the stream broke off ({result.end.replace('_', ' ')}) after {len(reader.times)} pieces"
    if not content:
        return "no text came"
    if reader.finish not in FINISHED:
        return f"finish_reason is {reader.finish or 'missing'}"
    if reader.unreadable:
        return f"{reader.unreadable} of its events have no known form"
    return None
