"""The same chat request streamed: do tokens arrive over time, and is the stream whole?"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.probes.chat import PATH, PROMPT, TEXT_CHARACTERS, request_body
from llamaops.probes.completion_body import (
    FieldState,
    ServerTimings,
    Usage,
    error_message,
    state_of,
    timings_of,
    usage_of,
)
from llamaops.probes.endpoint import WHY, EndpointAnswer, answer_of, key_sent, sentence, source_of, with_state
from llamaops.probes.reading import Json, as_list, as_object, text, whole
from llamaops.probes.registry import probe
from llamaops.probes.usable_text import TextProblem, judge_text
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import HttpFailure, StreamExchange, decode_json
from llamaops.system.sse import SseEvent

DONE = "[DONE]"
DELTA_FIELDS = ("role", "content", "reasoning_content", "tool_calls")
NEW_ARRIVAL_S = 0.0004
"""Two pieces further apart than this did not come in one lump."""
STATE_ORDER: tuple[FieldState, ...] = ("absent", "null", "empty", "valued")


class StreamAnswer(Shape, frozen=True, kw_only=True):
    """A streamed answer to our own prompt, with the times by our clock."""

    prompt: str
    """What was asked."""
    max_tokens: int
    """Bound on generated tokens that was sent."""
    content_type: str
    """Media type of the answer."""
    ended: Literal["done", "closed", "timed_out", "cut", "too_large", "bad_response"]
    """`done`: with the terminal marker; `closed`: without it, in an orderly way; otherwise broken off."""
    error: str | None
    """Message of an error that came inside the stream."""
    text: str
    """All content together; kept because the prompt is our own."""
    reasoning_characters: int
    """Length of all reasoning together."""
    problem: TextProblem | None
    """What is wrong with the text, or with the reasoning where there is no text; none if usable."""
    role: str | None
    """Role given in the stream."""
    first_content: FieldState
    """State of `content` in the first piece."""
    last_content: FieldState
    """State of `content` in the last piece of a choice."""
    first_chunk: dict[str, FieldState] = msgspec.field(default_factory=dict)
    """State of each field in the first piece with a choice."""
    last_chunk: dict[str, FieldState] = msgspec.field(default_factory=dict)
    """The same in the last piece with a choice; `usage` as in the last piece of all."""
    pieces: int
    """Pieces that held content or reasoning; not a number of tokens."""
    finish_reason: str | None
    """Why it ended."""
    usage: Usage | None
    """Tokens, as the server counts them; asked for."""
    usage_choices_empty: bool | None
    """Whether usage came in a piece whose `choices` is empty; none where it did not come."""
    timings: ServerTimings | None
    """What the server measured."""
    model: str | None
    """The model's name in the pieces."""
    ids: tuple[str, ...]
    """Different ids that the pieces carried; one is right."""
    comments: int
    """Keep-alive comments."""
    unreadable: int
    """Events that were not JSON of a known form."""
    first_token_s: float | None
    """Seconds from the request to the first piece of text, by our clock."""
    inter_piece_median_s: float | None
    """Median seconds between two pieces of text."""
    inter_piece_p95_s: float | None
    """95th percentile of the seconds between two pieces of text."""
    spread_s: float | None
    """Seconds from the first to the last piece of text."""
    lumps: int
    """Arrivals of text that were apart from the one before."""
    counted_tokens: int | None = None
    """Tokens of the content by /tokenize; only asked where it is not the text of the whole answer."""


class StreamReader:
    """Collects what the events of a stream say."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.times: list[float] = []
        self.began: float | None = None
        self.states: list[FieldState] = []
        self.chunks: list[dict[str, FieldState]] = []
        self.usage_state: FieldState = "absent"
        self.ids: list[str] = []
        self.role: str | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.usage_choices_empty: bool | None = None
        self.timings: ServerTimings | None = None
        self.model: str | None = None
        self.error: str | None = None
        self.done = False
        self.unreadable = 0

    def take(self, event: SseEvent) -> None:
        """Read one event; one that has no known form is counted."""
        self.began = event.at_s if self.began is None else self.began
        if event.data.strip() == DONE:
            self.done = True
            return
        try:
            item = as_object(decode_json(event.data.encode()), "an event")
            self._item(item, event)
        except ParseError:
            self.unreadable += 1

    def _item(self, item: Json, event: SseEvent) -> None:
        error = error_message(item) or (event.data[:200] if event.name == "error" else None)
        if error is not None:
            self.error = self.error or error
            return
        model = text(item, "model")
        if model and self.model and model != self.model:
            self.error = self.error or "the model's name changes inside the stream"
        self.model = model or self.model
        self.ids += [name for name in (text(item, "id"),) if name]
        self.timings = timings_of(item) or self.timings
        choices = as_list(item.get("choices"), "choices")
        usage, self.usage_state = usage_of(item), state_of(item, "usage")
        if usage is not None:
            self.usage, self.usage_choices_empty = usage, not choices
        if choices:
            self._choice(as_object(choices[0], "a choice"), event.at_s)

    def _choice(self, choice: Json, at_s: float) -> None:
        if whole(choice, "index"):
            self.error = self.error or "a piece of another choice than the one asked for"
        ended = self.finish is not None
        self.finish = text(choice, "finish_reason") or self.finish
        delta = as_object(choice.get("delta") or {}, "delta")
        self.role = text(delta, "role") or self.role
        self.states.append(state_of(delta, "content"))
        fields = {name: state_of(delta, name) for name in DELTA_FIELDS}
        self.chunks.append(
            {**fields, "finish_reason": state_of(choice, "finish_reason"), "usage": self.usage_state}
        )
        content, reasoning = text(delta, "content"), text(delta, "reasoning_content")
        if ended and (content or reasoning):
            self.error = self.error or "text after the piece that said why the text ended"
        if content or reasoning:
            self.times.append(at_s)
        self.content += [content] if content else []
        self.reasoning += [reasoning] if reasoning else []


def read_events(events: Iterable[SseEvent]) -> StreamReader:
    """Read the events of a stream, whole or not."""
    reader = StreamReader()
    for event in events:
        reader.take(event)
    return reader


def parse_stream(result: StreamExchange, *, prompt: str, max_tokens: int) -> StreamAnswer:
    """Read the events of a stream, whole or not."""
    reader = read_events(result.events)
    content, reasoning = "".join(reader.content), "".join(reader.reasoning)
    gaps = [later - earlier for earlier, later in zip(reader.times, reader.times[1:], strict=False)]
    return StreamAnswer(
        prompt=prompt,
        max_tokens=max_tokens,
        content_type=result.header("content-type").partition(";")[0].strip().lower()[:80],
        ended="done" if reader.done else "closed" if result.end == "stopped" else result.end,
        error=reader.error,
        text=content[:TEXT_CHARACTERS],
        reasoning_characters=len(reasoning),
        problem=judge_text(content or reasoning, prompt),
        role=reader.role,
        first_content=reader.states[0] if reader.states else "absent",
        last_content=reader.states[-1] if reader.states else "absent",
        first_chunk=reader.chunks[0] if reader.chunks else {},
        last_chunk={**reader.chunks[-1], "usage": reader.usage_state} if reader.chunks else {},
        pieces=len(reader.times),
        finish_reason=reader.finish,
        usage=reader.usage,
        usage_choices_empty=reader.usage_choices_empty,
        timings=reader.timings,
        model=reader.model,
        ids=tuple(dict.fromkeys(reader.ids))[:4],
        comments=result.comments,
        unreadable=reader.unreadable,
        first_token_s=round(reader.times[0], 6) if reader.times else None,
        inter_piece_median_s=round(median(gaps), 6) if gaps else None,
        inter_piece_p95_s=round(_percentile(gaps, 95), 6) if gaps else None,
        spread_s=round(reader.times[-1] - reader.times[0], 6) if gaps else None,
        lumps=1 + sum(1 for gap in gaps if gap >= NEW_ARRIVAL_S) if reader.times else 0,
    )


def _percentile(values: list[float], percent: int) -> float:
    """Return the smallest value that so many percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


@probe(
    "chat-stream",
    sends=f"POST {PATH} with the same prompt, stream and include_usage",
    proves="text arrives over time, the stream ends as it should, and how long the first piece took",
    does_not_prove="throughput; pieces are not tokens, and one request is not a load",
    tokens="at most max_tokens (48 by default)",
    seconds="one answer, at most 120 s",
)
def probe_chat_stream(
    client: HttpClient, *, model: str | None, max_tokens: int, bounds: Bounds
) -> tuple[EndpointAnswer, Fact[StreamAnswer]]:
    """Ask our prompt again, streamed; we disconnect after the terminal marker."""
    body = request_body(PROMPT, max_tokens=max_tokens, model=model, stream=True)
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=64 * KIB, total_bytes=min(bounds.total_bytes, 4 * MIB))
    result = client.stream(
        "POST", PATH, bounds=limits, body=body, stop=lambda event: event.data.strip() == DONE
    )
    answer = answer_of("chat-stream", f"POST {PATH} (streamed)", key_sent(client), result)
    source = source_of(answer)
    if isinstance(result, HttpFailure) or answer.state != "works":
        return answer, Unknown(why=WHY[answer.state], detail=sentence(answer), source=source)
    if not result.events and result.end == "timed_out":
        detail = f"HTTP {result.status}, and then no event before the deadline"
        answer = with_state(answer, "no_answer", detail)
        return answer, Unknown(why="timed_out", detail=sentence(answer), source=source)
    return answer, Known(value=parse_stream(result, prompt=PROMPT, max_tokens=max_tokens), source=source)
