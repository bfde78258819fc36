"""The parts that answers of the chat endpoint share, streamed or not. Pure."""

from __future__ import annotations

from typing import Literal

from llamaops.probes.reading import Json, as_object, number, text, whole
from llamaops.schema.shape import Shape

FieldState = Literal["absent", "null", "empty", "valued"]


class Usage(Shape, frozen=True, kw_only=True):
    """What the server says a request cost, in tokens."""

    prompt_tokens: int | None
    """Tokens of the prompt, template included."""
    completion_tokens: int | None
    """Tokens generated, reasoning included."""
    total_tokens: int | None
    """Both together."""
    cached_tokens: int | None = None
    """Tokens of the prompt that were taken from a cache."""


class ServerTimings(Shape, frozen=True, kw_only=True):
    """What the server measured; from its clock, not ours."""

    prompt_tokens: int | None
    """Tokens of the prompt that were really processed."""
    generated_tokens: int | None
    """Tokens generated."""
    generation_s: float | None
    """Seconds from the first token to the last."""


def state_of(item: Json, name: str) -> FieldState:
    """Say whether a field is absent, null, empty or valued."""
    if name not in item:
        return "absent"
    value = item[name]
    if value is None:
        return "null"
    return "valued" if value or value == 0 else "empty"


def usage_of(item: Json) -> Usage | None:
    """Read `usage`, None where it is absent or null. Raises: ParseError."""
    if item.get("usage") is None:
        return None
    usage = as_object(item["usage"], "usage")
    details = usage.get("prompt_tokens_details")
    cached = whole(as_object(details, "prompt_tokens_details"), "cached_tokens") if details else None
    return Usage(
        prompt_tokens=whole(usage, "prompt_tokens"),
        completion_tokens=whole(usage, "completion_tokens"),
        total_tokens=whole(usage, "total_tokens"),
        cached_tokens=cached,
    )


def timings_of(item: Json) -> ServerTimings | None:
    """Read `timings`, None where it is absent or null. Raises: ParseError."""
    if item.get("timings") is None:
        return None
    timings = as_object(item["timings"], "timings")
    milliseconds = number(timings, "predicted_ms")
    return ServerTimings(
        prompt_tokens=whole(timings, "prompt_n"),
        generated_tokens=whole(timings, "predicted_n"),
        generation_s=None if milliseconds is None else milliseconds / 1000,
    )


def error_message(item: Json) -> str | None:
    """Return the message of an error object inside an answer, cut; None where there is none."""
    error = item.get("error")
    if error is None:
        return None
    message = text(error, "message") if isinstance(error, dict) else error
    return str(message or "an error without a message")[:200]
