"""Ask a server everything that a selection holds, group by group, and judge it."""

from __future__ import annotations

import msgspec

from llamaops.facts.asked import AskedFacts
from llamaops.operations.session import Session
from llamaops.probes.concurrency import collect_concurrency
from llamaops.probes.health import probe_health
from llamaops.probes.more import collect_more
from llamaops.probes.selection import Selection
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.probes.surface import collect_surface
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Known
from llamaops.system.http import HttpClient

AREAS = ("server", "concurrency", "surface", "features")
"""Areas of checks that judge what is collected here."""
CROWD = frozenset({"concurrency", "late-request"})
SURFACE = frozenset({"surface", "errors", "exposure"})
MORE = frozenset({"disconnect", "reasoning", "structured", "tools", "context", "pool-exhaustion"})
NOT_COVERED = {
    "surface": "chat completions only; other endpoints were not asked",
    "context": "the whole context of a slot, structured output and tools were not tried (--level full)",
    "concurrency": "one request at a time: slots, batching and a shared KV cache under load were not tried",
}


def not_covered(selection: Selection) -> tuple[str, ...]:
    """Return what a verification of this selection does not cover."""
    return tuple(text for probe, text in NOT_COVERED.items() if probe not in selection)


def ask_everything(
    session: Session, client: HttpClient, asked: AskedFacts, selection: Selection, *, max_tokens: int
) -> None:
    """Ask single requests, then several at once, and add what they gave to the record."""
    server = collect_server(client, asked, max_tokens=max_tokens, selection=selection)
    session.add("server", server)
    if selection.ids & CROWD:
        session.add("concurrency", collect_concurrency(client, server, selection, unified=asked.kv_unified))
    if selection.ids & SURFACE:
        session.add("surface", collect_surface(client, server, selection))
    if selection.ids & MORE:
        session.add("more", collect_more(client, server, selection, unified=asked.kv_unified))
    if selection.ids & {*CROWD, *SURFACE, *MORE}:
        session.add("server", _still_healthy(client, server))
    _narrow_promise(session, server)


def _still_healthy(client: HttpClient, server: ServerFacts) -> ServerFacts:
    """Ask /health again, now that more requests were made, and put its answer in the place of the last."""
    answer, health = probe_health(client, bounds=Bounds(wall_s=10.0), name="health-after")
    others = tuple(item for item in server.endpoints if item.probe != "health-after")
    return msgspec.structs.replace(server, endpoints=(*others, answer), health_after=health)


def _narrow_promise(session: Session, server: ServerFacts) -> None:
    """Take back what a server without chat cannot show: it is one for embeddings."""
    chat = server.outcome("chat")
    without = isinstance(chat, Known) and chat.value.state in {"absent", "switched_off"}
    if without and isinstance(server.embeddings, Known):
        lost = {"generated_output", "concurrency"}
        session.promised = tuple(name for name in session.promised if name not in lost)
        session.not_covered.append("the server has no chat: generated text and slots were not tried")
