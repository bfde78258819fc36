"""What single requests beyond chat, and a client that goes away, show: the fact group MoreFacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llamaops.probes import disconnect, features, pool, reasoning
from llamaops.probes.age import EARLY, is_early
from llamaops.probes.concurrency import PROMPT_TOKENS, slot_count
from llamaops.probes.disconnect import DisconnectAnswer, probe_disconnect
from llamaops.probes.features import (
    ContextAnswer,
    StructuredAnswer,
    ToolAnswer,
    probe_context,
    probe_structured,
    probe_tools,
)
from llamaops.probes.pool import PoolAnswer, probe_pool
from llamaops.probes.reasoning import ReasoningFacts, needs_a_look, probe_reasoning
from llamaops.probes.selection import Selection
from llamaops.probes.server import ServerFacts, pace_of_chat, router_query, slot_context
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted, not_selected
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

T = TypeVar("T")
TOTAL_S = 300.0
STREAMED = frozenset({"disconnect", "tools"})
"""Probes that need a stream which ends."""


class MoreFacts(Shape, frozen=True, kw_only=True):
    """A client that goes away, reasoning, structured output, tools, and the edge of the context."""

    disconnect: Fact[DisconnectAnswer]
    """A streamed request that we broke off."""
    reasoning: Fact[ReasoningFacts]
    """What gives content, where the first answer had only reasoning."""
    structured: Fact[StructuredAnswer]
    """An answer by a JSON schema."""
    tools: Fact[ToolAnswer]
    """A call of a tool."""
    pool: Fact[PoolAnswer]
    """Large prompts at once in a KV cache that slots share; only where that was named."""
    context: Fact[ContextAnswer]
    """Prompts just under and at a slot's context."""


def collect_more(
    client: HttpClient,
    server: ServerFacts,
    selection: Selection,
    *,
    unified: bool | None,
    total_s: float = TOTAL_S,
    request_s: float = 120.0,
) -> MoreFacts:
    """Ask what is selected, where a single chat request works.

    Units: seconds. Raises: nothing for what a server does.
    """
    name = server.request_model
    model = name.value if isinstance(name, Known) else None
    slots, context = slot_count(server), slot_context(server)
    room = 1024
    if context is not None:
        shared = slots.value if isinstance(slots, Known) and unified is not False else 1
        room = max(16, context // shared - PROMPT_TOKENS)
    query, pace = router_query(server.props, name), pace_of_chat(server)
    end_s = client.now() + total_s
    chat, props = server.chat, server.props_of_model

    def wanted(probe: str, call: Callable[[float], Fact[T]]) -> Fact[T]:
        if probe not in selection:
            return not_selected(selection.why_not(probe))
        if (gap := _why_not(probe, server)) is not None:
            return gap
        left = end_s - client.now()
        if left <= 0:
            return not_attempted("the time for all probes together was used up")
        return call(min(request_s, left))

    def look(wall_s: float) -> Fact[ReasoningFacts]:
        if not isinstance(chat, Known) or not needs_a_look(chat.value):
            return _not_this("the answer has content, there is nothing to look for")
        switch = props.value.template_has_thinking_switch if isinstance(props, Known) else None
        place = reasoning.Place(client, model, Bounds(wall_s=wall_s), room)
        found = probe_reasoning(place, chat.value, switch=switch)
        return Known(
            value=found, source=Source(kind="http", name="POST /v1/chat/completions, one change at a time")
        )

    def ask_schema(wall_s: float) -> Fact[StructuredAnswer]:
        found = probe_structured(features.Place(client, model, wall_s))
        older = isinstance(found, Unknown) and "response_format type must be one of" in found.detail
        return _not_this("absent in this build: no response_format of type json_schema") if older else found

    def call_tool(wall_s: float) -> Fact[ToolAnswer]:
        if isinstance(props, Known) and props.value.template_has_tools is False:
            return _not_this("the chat template has no tools")
        found = probe_tools(features.Place(client, model, wall_s))
        needs_flag = isinstance(found, Unknown) and "requires --jinja" in found.detail
        return _not_this("tools are switched off: this build wants --jinja for them") if needs_flag else found

    def since_2024(call: Callable[[float], Fact[T]]) -> Callable[[float], Fact[T]]:
        """Leave out what builds of early 2024 do not have; token numbers as a prompt even end them."""
        return (lambda _wall_s: _not_this(EARLY)) if is_early(server) else call

    return MoreFacts(
        disconnect=wanted(
            "disconnect",
            lambda wall_s: probe_disconnect(disconnect.Place(client, model, query, room, pace, wall_s)),
        ),
        reasoning=wanted("reasoning", look),
        structured=wanted(
            "structured",
            since_2024(ask_schema),
        ),
        tools=wanted("tools", since_2024(call_tool)),
        pool=wanted(
            "pool-exhaustion",
            since_2024(
                lambda wall_s: probe_pool(
                    pool.Place(client, model, wall_s, slots.value if isinstance(slots, Known) else 1, context)
                )
            ),
        ),
        context=wanted(
            "context",
            since_2024(lambda wall_s: probe_context(features.Place(client, model, wall_s), server)),
        ),
    )


def _why_not(probe: str, server: ServerFacts) -> Unknown | None:
    """Return why a probe is not worth its time, from what single requests came to."""
    if server.has_no_chat:
        return _not_this("the server has no chat")
    if not isinstance(server.chat, Known):
        return not_attempted(f"one chat request alone did not work: {server.chat.detail}")
    if probe in STREAMED and server.stream_hangs:
        return not_attempted("one streamed request alone did not end in time")
    return None


def _not_this(detail: str) -> Unknown:
    """Return that a question does not concern this server."""
    return Unknown(why="unsupported", detail=detail, source=Source(kind="computed", name="not applicable"))
