"""Verify a server that already runs: the same probes, and nothing started or stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llamaops.facts.asked import AskedFacts
from llamaops.facts.host import collect_host
from llamaops.launch.settings import LOOPBACK
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.operations.side_by_side import side_by_side
from llamaops.probes.server import collect_server
from llamaops.schema.boundary import BoundaryName
from llamaops.system.http import HttpClient
from llamaops.system.machine import Machine
from llamaops.system.origin import Origin

PROMISED: tuple[BoundaryName, ...] = ("generated_output", "api_response")
NOT_COVERED = (
    "whose process answers and on which device the weights lie: the load log was not seen",
    "one request at a time: slots, batching and a shared KV cache under load were not tried",
)


def verify_server(
    session: Session, machine: Machine, url: str, settings: Settings, api_key: str | None
) -> str:
    """Ask a running server representative requests, and judge what it answers."""
    origin = Origin.parse(url)
    session.begin(PROMISED, NOT_COVERED)
    asked = AskedFacts(
        via="attached",
        host=origin.host,
        port=origin.port,
        max_tokens=settings.max_tokens,
        api_key=api_key is not None,
    )
    session.add("asked", asked)
    client = HttpClient(origin, api_key=api_key, keep=machine.keep, clock=machine.clock)
    tasks: dict[str, Callable[[], Any]] = {
        "server": lambda: collect_server(client, asked, max_tokens=settings.max_tokens)
    }
    if origin.host in LOOPBACK or origin.host.startswith("127."):
        tasks["host"] = lambda: collect_host(machine)
    with session.step("verify", f"ask {origin.url} representative requests"):
        seen = side_by_side(tasks)
    for name in ("host", "server"):
        if name in seen:
            session.add(name, seen[name])
    session.judge("host", "server")
    return "ended by itself; the server was left as it was"
