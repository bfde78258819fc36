"""An answer whose content is empty while its reasoning is not: which one change gives content?

Field states, lengths, finish_reason and usage only; the text of a reasoning is kept nowhere.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from llamaops.errors import ParseError
from llamaops.probes.chat import PATH, PROMPT, ChatAnswer, parse_chat, request_body
from llamaops.probes.completion_body import FieldState, Usage
from llamaops.probes.endpoint import EndpointAnswer, ask
from llamaops.probes.registry import probe
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

LARGER = 4
MOST_TOKENS = 512


class ReasoningTry(Shape, frozen=True, kw_only=True):
    """One request, of which only the states of its fields are kept."""

    change: Literal["baseline", "larger_budget", "thinking_off"]
    """The one thing that differs from the baseline."""
    max_tokens: int
    """Bound on generated tokens that was sent."""
    content: FieldState
    """State of `content`."""
    content_characters: int
    """Its length."""
    reasoning: FieldState
    """State of `reasoning_content`."""
    reasoning_characters: int
    """Its length."""
    finish_reason: str | None
    """Why it ended."""
    usage: Usage | None
    """Tokens, as the server counts them."""


class ReasoningFacts(Shape, frozen=True, kw_only=True):
    """What was tried to get content out of a model that thinks."""

    tries: tuple[ReasoningTry, ...]
    """The baseline, and one change at a time."""
    gave_content: tuple[str, ...]
    """The changes that gave content."""
    not_tried: tuple[str, ...] = ()
    """Changes that were not tried, and why."""
    failed: tuple[str, ...] = ()
    """Changes whose request failed, and how."""


class Place(NamedTuple):
    """Where and with what is asked."""

    client: HttpClient
    model: str | None
    bounds: Bounds
    room_tokens: int


def needs_a_look(chat: ChatAnswer) -> bool:
    """Whether an answer has reasoning and no content."""
    return chat.content in {"absent", "null", "empty"} and chat.reasoning == "valued"


@probe(
    "reasoning",
    sends=f"POST {PATH} again with a larger max_tokens, and with thinking switched off where the template "
    "knows the switch; only where the first answer had reasoning and no content",
    proves="which one change gives content",
    does_not_prove="that the content or the reasoning is right",
    tokens="at most 512, and once more max_tokens",
    seconds="two answers, at most 120 s each",
    level="standard",
)
def probe_reasoning(place: Place, chat: ChatAnswer, *, switch: bool | None) -> ReasoningFacts:
    """Change one thing at a time from the same baseline."""
    tries, not_tried, failed = [_try("baseline", chat)], [], []
    larger = min(chat.max_tokens * LARGER, MOST_TOKENS, max(place.room_tokens, chat.max_tokens))
    changes: list[tuple[Literal["larger_budget", "thinking_off"], int, dict[str, object]]] = []
    if larger > chat.max_tokens:
        changes.append(("larger_budget", larger, {}))
    else:
        not_tried.append("larger_budget: the context has no room for more")
    if switch:
        kwargs: dict[str, object] = {"chat_template_kwargs": {"enable_thinking": False}}
        changes.append(("thinking_off", chat.max_tokens, kwargs))
    else:
        not_tried.append("thinking_off: the chat template does not look at enable_thinking")
    for change, tokens, more in changes:
        answer, found = _ask(place, tokens, more)
        if found is None:
            failed.append(f"{change}: {answer.detail}")
        else:
            tries.append(_try(change, found))
    gave = tuple(item.change for item in tries if item.content == "valued")
    return ReasoningFacts(
        tries=tuple(tries), gave_content=gave, not_tried=tuple(not_tried), failed=tuple(failed)
    )


def _ask(place: Place, tokens: int, more: dict[str, object]) -> tuple[EndpointAnswer, ChatAnswer | None]:
    body = {**request_body(PROMPT, max_tokens=tokens, model=place.model), **more}
    bounds = Bounds(wall_s=place.bounds.wall_s, keep_bytes=64 * KIB, total_bytes=2 * MIB)
    # Nothing of the exchange is kept: the body holds the reasoning.
    asked = ask(place.client.without_evidence(), "reasoning", "POST", PATH, bounds=bounds, body=body)
    if asked.answer.state != "works":
        return asked.answer, None
    try:
        return asked.answer, parse_chat(asked.body, prompt=PROMPT, max_tokens=tokens)
    except ParseError:
        return asked.answer, None


def _try(change: Literal["baseline", "larger_budget", "thinking_off"], chat: ChatAnswer) -> ReasoningTry:
    return ReasoningTry(
        change=change,
        max_tokens=chat.max_tokens,
        content=chat.content,
        content_characters=chat.characters,
        reasoning=chat.reasoning,
        reasoning_characters=chat.reasoning_characters,
        finish_reason=chat.finish_reason,
        usage=chat.usage,
    )
