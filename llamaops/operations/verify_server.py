"""Verify a server that already runs: the same probes, and nothing started or stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from llamaops.facts.asked import AskedFacts
from llamaops.facts.host import collect_host
from llamaops.facts.sockets import collect_owner
from llamaops.launch.settings import LOOPBACK
from llamaops.operations.await_ready import await_ready
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.operations.side_by_side import side_by_side
from llamaops.operations.verification import AREAS, ask_everything, not_covered
from llamaops.probes.children import probe_children
from llamaops.probes.router import RouterFacts
from llamaops.probes.selection import Selection
from llamaops.schema.fact import Known, Source
from llamaops.system.http import HttpClient
from llamaops.system.machine import Machine
from llamaops.system.origin import Origin
from llamaops.system.sockets import is_own_address

NOT_COVERED = "whose process answers and on which device the weights lie: the load log was not seen"


def verify_server(
    session: Session,
    machine: Machine,
    url: str,
    settings: Settings,
    api_key: str | None,
    selection: Selection,
    models: tuple[str, ...] = (),
    *,
    wait_s: float = 0.0,
) -> str:
    """Ask a running server representative requests, and judge what it answers.

    Args:
        session: The run.
        machine: The machine.
        url: The server's address.
        settings: The settings of the run.
        api_key: Sent to that address and to no other.
        selection: The probes to ask.
        models: Names to ask for; a router is made to load them where they are not.
        wait_s: Seconds to wait at most until the server is ready.
    """
    origin = Origin.parse(url)
    session.begin(selection.promises(), (NOT_COVERED, *not_covered(selection)))
    asked = AskedFacts(
        via="attached",
        host=origin.host,
        port=origin.port,
        max_tokens=settings.max_tokens,
        api_key=api_key is not None,
        models=models,
    )
    session.add("asked", asked)
    client = HttpClient(origin, api_key=api_key, keep=machine.keep, clock=machine.clock)
    await_ready(session, client, machine.clock, wait_s)
    tasks: dict[str, Callable[[], Any]] = {
        "server": lambda: ask_everything(session, client, asked, selection, max_tokens=settings.max_tokens)
    }
    if origin.host in LOOPBACK or origin.host.startswith("127."):
        tasks["host"] = lambda: collect_host(machine)
    with session.step("verify", f"ask {origin.url} representative requests"):
        seen = side_by_side(tasks)
    if "host" in seen:
        session.add("host", seen["host"])
    if "exposure" in selection:
        _add_owner(session, origin, here=is_own_address(origin.host), key=api_key is not None)
    session.judge("host", *AREAS)
    return f"ended by itself; {_left(session)}"


def _add_owner(session: Session, origin: Origin, *, here: bool, key: bool) -> None:
    """Add who answers at that address, and whether its children answer without the key."""
    owner = collect_owner(origin.host, origin.port, here=here)
    if key and isinstance(owner.listeners, Known):
        children = [(item.address, item.port) for item in owner.listeners.value if item.of_child]
        if children:
            source = Source(kind="http", name="GET /props of each child, without a key")
            owner = msgspec.structs.replace(
                owner, open_children=Known(value=probe_children(children), source=source)
            )
    session.add("owner", owner)


def _left(session: Session) -> str:
    """Say how the server was left: a router that was made to load a model was changed."""
    router = session.group(RouterFacts)
    models = router.models.value if router is not None and isinstance(router.models, Known) else ()
    away = router.put_away if router is not None else ()
    loaded = [model.name for model in models if model.load_s is not None and model.name not in away]
    if not loaded and not away:
        return "the server was left as it was"
    said = [f"with {', '.join(loaded)} loaded"] * bool(loaded) + [f"without {', '.join(away)}"] * bool(away)
    return f"the router was left {', '.join(said)}"
