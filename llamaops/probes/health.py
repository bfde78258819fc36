"""GET /health: does the server say that it is ready?"""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import as_object, text, whole
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json


class HealthAnswer(Shape, frozen=True, kw_only=True):
    """A ready server's answer."""

    status: str
    """The server's own word: `ok`; builds of 2024 also had `no slot available`."""
    counts_slots: bool = False
    """Whether it counts idle and busy slots, as builds from January to September 2024 do."""


def parse_health(body: bytes) -> HealthAnswer:
    """Read a ready answer. Raises: ParseError."""
    item = as_object(decode_json(body), "the body")
    status = text(item, "status")
    if status is None:
        raise ParseError("the body has no status")
    if status not in {"ok", "no slot available"}:
        raise ParseError("its status is neither ok nor one that a build is known to send")
    counts = (whole(item, "slots_idle"), whole(item, "slots_processing"))
    return HealthAnswer(status=status, counts_slots=None not in counts)


@probe(
    "health",
    sends="GET /health",
    proves="something on this address says that it is ready",
    does_not_prove="that it is our server, that a model is loaded (a router needs none), or that it works",
)
def probe_health(
    client: HttpClient, *, bounds: Bounds, name: str = "health"
) -> tuple[EndpointAnswer, Fact[HealthAnswer]]:
    """Ask for readiness."""
    return parsed(ask(client, name, "GET", "/health", bounds=bounds), parse_health)
