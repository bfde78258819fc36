"""Structured output, tools and the edge of a slot's context: what only some clients use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from llamaops.errors import ParseError
from llamaops.probes.chat import PATH, request_body
from llamaops.probes.chat_stream import DONE
from llamaops.probes.completion_body import FieldState
from llamaops.probes.endpoint import Asked, EndpointAnswer, EndpointState, answer_of, ask, key_sent, parsed
from llamaops.probes.reading import Json, as_list, as_object, flag, text, whole
from llamaops.probes.registry import probe
from llamaops.probes.server import ServerFacts
from llamaops.probes.tool_stream import ToolStreamReader
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import HttpFailure, decode_json
from llamaops.system.sse import SseEvent

COLOURS = ("red", "green", "blue")
COUNTS = (1, 2, 3)
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": list(COLOURS)},
        "count": {"type": "integer", "enum": list(COUNTS)},
    },
    "required": ["color", "count"],
    "additionalProperties": False,
}
CITIES = ("Paris", "Rome", "Oslo")
TOOL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": list(CITIES)}},
            "required": ["city"],
        },
    },
}
TOKENS = 96
MOST_PROMPT_TOKENS = 16384
PROMPT_S = 60.0


class StructuredAnswer(Shape, frozen=True, kw_only=True):
    """An answer that had to follow a JSON schema."""

    fault: str
    """How it breaks the schema; empty where it does not."""
    finish_reason: str | None
    """Why it ended."""
    completion_tokens: int | None
    """Tokens generated."""


class ToolStream(Shape, frozen=True, kw_only=True):
    """A streamed answer that had to be one call of a tool."""

    fault: str
    """What is wrong with the call when its pieces are put together; empty where it is valid."""
    calls: int
    """Calls in the stream."""
    pieces: int
    """Pieces that carried a part of a call."""
    finish_reason: str | None
    """Why it ended."""
    in_time: bool = True
    """Whether it ended before our deadline."""
    first_chunk: dict[str, FieldState] = msgspec.field(default_factory=dict)
    """State of each field in the first piece with a choice."""
    last_chunk: dict[str, FieldState] = msgspec.field(default_factory=dict)
    """The same in the last piece with a choice."""


class ToolAnswer(Shape, frozen=True, kw_only=True):
    """An answer that had to be one call of a tool."""

    fault: str
    """What is wrong with the call; empty where it is valid."""
    calls: int
    """Calls in the answer."""
    finish_reason: str | None
    """Why it ended."""
    streamed: ToolStream | None = None
    """The same asked as a stream; none where the whole answer had no valid call."""


class ContextAnswer(Shape, frozen=True, kw_only=True):
    """Prompts of exactly so many tokens, just under a slot's context and just at it."""

    context_tokens: int
    """What a slot has by /props."""
    under_tokens: int
    """Tokens of the prompt that has to work."""
    under: EndpointAnswer
    """What it came to."""
    under_evaluated: int | None
    """Tokens of the prompt that the server says it evaluated."""
    over_tokens: int
    """Tokens of the prompt that has to be refused."""
    over: EndpointAnswer
    """What it came to."""
    over_state: EndpointState
    """`refuses` is the documented one."""
    over_truncated: bool | None = None
    """Whether the server says that it cut the prompt, as builds before September 2025 do instead."""


class Place(NamedTuple):
    """Where and with what is asked."""

    client: HttpClient
    model: str | None
    wall_s: float

    def ask(self, name: str, path: str, body: dict[str, object]) -> Asked:
        """Ask, with the model's name."""
        bounds = Bounds(wall_s=self.wall_s, keep_bytes=16 * KIB, total_bytes=4 * MIB)
        whole_body = body if self.model is None else {**body, "model": self.model}
        return ask(self.client, name, "POST", path, bounds=bounds, body=whole_body)


def _choice(body: bytes) -> tuple[Json, Json, Json]:
    """Return the body, its first choice and its message. Raises: ParseError."""
    item = as_object(decode_json(body), "the body")
    choice = as_object((as_list(item.get("choices"), "choices") or [None])[0], "a choice")
    return item, choice, as_object(choice.get("message"), "message")


@probe(
    "structured",
    sends=f"POST {PATH} with a response_format of type json_schema: an object of two enumerations",
    proves="the answer is JSON that follows the schema",
    does_not_prove="that larger schemas do, or that the values mean anything",
    tokens=f"at most {TOKENS}",
    seconds="one answer, at most 120 s",
    level="full",
)
def probe_structured(place: Place) -> Fact[StructuredAnswer]:
    """Ask for an object of two enumerations."""
    body = request_body("Name a colour and a small count.", max_tokens=TOKENS, model=None)
    form = {"name": "answer", "strict": True, "schema": SCHEMA}
    body["response_format"] = {"type": "json_schema", "json_schema": form}
    return parsed(place.ask("structured", PATH, body), parse_structured)[1]


def parse_structured(body: bytes) -> StructuredAnswer:
    """Compare the content with the schema. Raises: ParseError."""
    item, choice, message = _choice(body)
    usage = as_object(item.get("usage") or {}, "usage")
    return StructuredAnswer(
        fault=_breaks_schema(text(message, "content") or ""),
        finish_reason=text(choice, "finish_reason"),
        completion_tokens=whole(usage, "completion_tokens"),
    )


def _breaks_schema(content: str) -> str:
    try:
        value = decode_json(content.encode())
    except ParseError:
        return "the content is not JSON"
    if not isinstance(value, dict) or set(value) != {"color", "count"}:
        return "the content is not an object of the two fields asked for"
    if value["color"] not in COLOURS or value["count"] not in COUNTS or isinstance(value["count"], bool):
        return "a value is none of those that the schema allows"
    return ""


@probe(
    "tools",
    sends=f"POST {PATH} with one tool that has to be called, whole and streamed; only where the chat "
    "template knows tools",
    proves="a call of the tool comes back with valid arguments, and is not dropped, in a stream neither",
    does_not_prove="that the model calls tools when it should",
    tokens=f"at most {2 * TOKENS}",
    seconds="two answers, at most 120 s each",
    level="full",
)
def probe_tools(place: Place) -> Fact[ToolAnswer]:
    """Ask for one call, and for the same one as a stream where it came."""
    body = request_body("What is the weather in Paris?", max_tokens=TOKENS, model=place.model)
    body.update(tools=[TOOL], tool_choice="required")
    seen = parsed(place.ask("tools", PATH, body), parse_tools)[1]
    if not isinstance(seen, Known) or seen.value.fault:
        return seen
    return Known(value=replace(seen.value, streamed=_streamed_call(place, body)), source=seen.source)


def _streamed_call(place: Place, body: dict[str, object]) -> ToolStream:
    bounds = Bounds(wall_s=place.wall_s, keep_bytes=16 * KIB, total_bytes=4 * MIB)
    streamed = {**body, "stream": True}
    result = place.client.stream(
        "POST", PATH, bounds=bounds, body=streamed, stop=lambda event: event.data.strip() == DONE
    )
    answer = answer_of("tools", f"POST {PATH} (streamed)", key_sent(place.client), result)
    if isinstance(result, HttpFailure) or answer.state != "works":
        in_time = answer.state != "no_answer"
        return ToolStream(fault=answer.detail, calls=0, pieces=0, finish_reason=None, in_time=in_time)
    return replace(parse_tool_stream(result.events), in_time=result.end != "timed_out")


def parse_tool_stream(events: Iterable[SseEvent]) -> ToolStream:
    """Put the pieces of the calls together, and look at the calls."""
    reader = ToolStreamReader()
    for event in events:
        reader.take(event)
    calls = reader.whole_calls()
    fault = _fault_of_calls(calls, reader.finish)
    if not fault and not reader.done:
        fault = f"the stream has no {DONE} at its end"
    return ToolStream(
        fault=reader.error or fault,
        calls=len(calls),
        pieces=reader.tool_pieces,
        finish_reason=reader.finish,
        first_chunk=reader.chunks[0] if reader.chunks else {},
        last_chunk=reader.chunks[-1] if reader.chunks else {},
    )


def parse_tools(body: bytes) -> ToolAnswer:
    """Look at the calls. Raises: ParseError."""
    _item, choice, message = _choice(body)
    calls = as_list(message.get("tool_calls") or [], "tool_calls")
    finish = text(choice, "finish_reason")
    fault = _fault_of_calls([as_object(call, "a call") for call in calls], finish)
    return ToolAnswer(fault=fault, calls=len(calls), finish_reason=finish)


def _fault_of_calls(calls: list[Json], finish: str | None) -> str:
    """Say what is wrong with the calls of an answer. Raises: ParseError."""
    fault = "no call of the tool came, though one was required" if not calls else ""
    for call in calls:
        fault = fault or _bad_call(call)
    if not fault and finish not in {"tool_calls", "stop"}:
        fault = f"finish_reason is {finish or 'missing'}"
    return fault


def _bad_call(call: Json) -> str:
    function = as_object(call.get("function"), "function")
    if function.get("name") != "get_weather":
        return "it calls a tool that was not offered"
    if not isinstance(call.get("id", ""), str):
        return "its id is not text"
    try:
        arguments = as_object(decode_json((text(function, "arguments") or "").encode()), "arguments")
    except ParseError:
        return "its arguments are not a JSON object"
    return "" if arguments.get("city") in CITIES else "its arguments break the tool's schema"


@probe(
    "context",
    sends="POST /completion with prompts of exact lengths: just under a slot's context, and just at it",
    proves="a slot really holds the context it reports, and refuses more with the documented error",
    does_not_prove="that the model makes good use of a long context; nor that slots can all be full at once",
    tokens="one; a slot's whole context of prompt, at most 16384",
    seconds="one prompt, at most 120 s; not sent where it would take more than 60 by the server's pace",
    level="full",
)
def probe_context(place: Place, server: ServerFacts) -> Fact[ContextAnswer]:
    """Send a prompt just under the context, and one just at it."""
    props = server.props_of_model
    context = props.value.slot_context_tokens if isinstance(props, Known) else None
    if not context:
        return not_attempted("the context of a slot is not known")
    if context > MOST_PROMPT_TOKENS:
        return not_attempted(
            f"a slot has {context} tokens, more than this probe sends ({MOST_PROMPT_TOKENS})"
        )
    asked = place.ask("context", "/tokenize", {"content": " sea", "add_special": False})
    answer, ids = parsed(asked, first_token)
    if isinstance(ids, Unknown):
        return ids
    under, over = context - 4, context
    short = _prompt(place, ids.value, over)
    began = place.client.now()
    quarter = max(1, under // 8)
    _prompt(place, ids.value, quarter)
    if (place.client.now() - began) * under / quarter > PROMPT_S:
        return not_attempted(f"a prompt of {under} tokens would take more than {PROMPT_S:.0f} s here")
    whole_one = _prompt(place, ids.value, under)
    found = ContextAnswer(
        context_tokens=context,
        under_tokens=under,
        under=whole_one.answer,
        under_evaluated=_evaluated(whole_one),
        over_tokens=over,
        over=short.answer,
        over_state=short.answer.state,
        over_truncated=_truncated(short),
    )
    return Known(
        value=found,
        source=Source(kind="http", name="POST /completion", evidence=(answer.evidence or (None,))[0]),
    )


def first_token(body: bytes) -> int:
    """Return the last token of an answer of /tokenize. Raises: ParseError."""
    tokens = as_list(as_object(decode_json(body), "the body").get("tokens"), "tokens")
    number = (
        tokens[-1].get("id") if tokens and isinstance(tokens[-1], dict) else tokens[-1] if tokens else None
    )
    if not isinstance(number, int):
        raise ParseError("a token is not a number")
    return number


def _prompt(place: Place, token: int, count: int) -> Asked:
    body: dict[str, object] = {
        "prompt": [token] * count,
        "n_predict": 1,
        "cache_prompt": False,
        "temperature": 0,
    }
    return place.ask("context", "/completion", body)


def _truncated(asked: Asked) -> bool | None:
    try:
        item = as_object(decode_json(asked.body), "the body")
        # A prompt that was cut is still evaluated: an answer without that is a refusal with the wrong status.
        return flag(item, "truncated") and (whole(item, "tokens_evaluated") or 0) > 0
    except ParseError:
        return None


def _evaluated(asked: Asked) -> int | None:
    try:
        return whole(as_object(decode_json(asked.body), "the body"), "tokens_evaluated")
    except ParseError:
        return None
