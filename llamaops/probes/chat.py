"""POST /v1/chat/completions: a representative request, with our own prompt and a bound on its tokens."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.probes.completion_body import (
    FieldState,
    ServerTimings,
    Usage,
    state_of,
    timings_of,
    usage_of,
)
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import as_list, as_object, text, whole
from llamaops.probes.registry import probe
from llamaops.probes.usable_text import TextProblem, judge_text
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json

PATH = "/v1/chat/completions"
PROMPT = "Write two short sentences about the sea."
"""Long enough an answer to see it arrive, and not one that a prompt given back could pass for."""
OTHER_PROMPT = "List the days of the week, starting with Monday."
"""Another question, so that an answer which does not depend on the question shows."""
SEED = 1
TEXT_CHARACTERS = 16 * KIB


class ChatAnswer(Shape, frozen=True, kw_only=True):
    """One whole answer to one of our own prompts."""

    prompt: str
    """What was asked."""
    max_tokens: int
    """Bound on generated tokens that was sent."""
    text: str
    """The content, or the empty text; kept because the prompt is our own."""
    characters: int
    """Length of the content in characters."""
    content: FieldState
    """State of the field `content`."""
    reasoning: FieldState
    """State of the field `reasoning_content`; its text is not kept."""
    reasoning_characters: int
    """Length of the reasoning in characters."""
    problem: TextProblem | None
    """What is wrong with the content, or with the reasoning where there is no content; none if usable."""
    role: str | None
    """Role of the message."""
    finish_reason: str | None
    """Why it ended: `stop` or `length`."""
    usage: Usage | None
    """Tokens, as the server counts them."""
    timings: ServerTimings | None
    """What the server measured."""
    model: str | None
    """The model's name in the answer."""
    id: str | None
    """The answer's id."""
    created: int | None
    """Unix time at which the server says it made the answer."""
    counted_tokens: int | None = None
    """Tokens of the content by /tokenize; none where that could not be asked."""


def request_body(
    prompt: str, *, max_tokens: int, model: str | None, stream: bool = False
) -> dict[str, object]:
    """Return the body of a chat request: greedy, seeded, bounded, without the prompt cache."""
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "seed": SEED,
        "cache_prompt": False,
        "stream": stream,
    }
    if model is not None:
        body["model"] = model
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body


def parse_chat(body: bytes, *, prompt: str, max_tokens: int) -> ChatAnswer:
    """Read a whole answer. Raises: ParseError."""
    item = as_object(decode_json(body), "the body")
    choices = as_list(item.get("choices"), "choices")
    if not choices:
        raise ParseError("choices is empty")
    if len(choices) > 1:
        raise ParseError(f"there are {len(choices)} choices where one was asked for")
    choice = as_object(choices[0], "a choice")
    message = as_object(choice.get("message"), "message")
    content, reasoning = text(message, "content") or "", text(message, "reasoning_content") or ""
    return ChatAnswer(
        prompt=prompt,
        max_tokens=max_tokens,
        text=content[:TEXT_CHARACTERS],
        characters=len(content),
        content=state_of(message, "content"),
        reasoning=state_of(message, "reasoning_content"),
        reasoning_characters=len(reasoning),
        problem=judge_text(content or reasoning, prompt),
        role=text(message, "role"),
        finish_reason=text(choice, "finish_reason"),
        usage=usage_of(item),
        timings=timings_of(item),
        model=text(item, "model"),
        id=text(item, "id"),
        created=whole(item, "created"),
    )


@probe(
    "chat",
    sends=f"POST {PATH} with a fixed prompt, temperature 0, a seed and max_tokens",
    proves="the server generates through the chat template, honours the limit and counts",
    does_not_prove="that the answer is right, or that any other request works",
    tokens="at most max_tokens (48 by default)",
    seconds="one answer, at most 120 s",
)
def probe_chat(
    client: HttpClient, *, model: str | None, max_tokens: int, bounds: Bounds
) -> tuple[EndpointAnswer, Fact[ChatAnswer]]:
    """Ask our prompt and read the whole answer."""
    body = request_body(PROMPT, max_tokens=max_tokens, model=model)
    asked = ask(client, "chat", "POST", PATH, bounds=_answer_bounds(bounds), body=body)
    return parsed(asked, lambda data: parse_chat(data, prompt=PROMPT, max_tokens=max_tokens))


@probe(
    "chat-other",
    sends=f"POST {PATH} with another fixed prompt and a smaller max_tokens",
    proves="the answer depends on the question, and a small limit on tokens is honoured",
    does_not_prove="that the answer is right",
    tokens="at most 16",
    seconds="one answer, at most 120 s",
)
def probe_chat_other(
    client: HttpClient, *, model: str | None, bounds: Bounds, max_tokens: int = 16
) -> tuple[EndpointAnswer, Fact[ChatAnswer]]:
    """Ask something else, and for less of it."""
    body = request_body(OTHER_PROMPT, max_tokens=max_tokens, model=model)
    asked = ask(client, "chat-other", "POST", PATH, bounds=_answer_bounds(bounds), body=body)
    return parsed(asked, lambda data: parse_chat(data, prompt=OTHER_PROMPT, max_tokens=max_tokens))


def _answer_bounds(bounds: Bounds) -> Bounds:
    """Return bounds for a body that holds some hundred tokens at most."""
    return Bounds(wall_s=bounds.wall_s, keep_bytes=64 * KIB, total_bytes=min(bounds.total_bytes, 2 * MIB))
