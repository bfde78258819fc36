"""GET /metrics: the server's counters. Most gauges are not read: they are reset by whoever reads them."""

from __future__ import annotations

import math

import msgspec

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

PREFIX = "llamacpp:"
MOST_COUNTERS = 200
STEADY_GAUGES = frozenset({"requests_processing", "requests_deferred", "n_busy_slots_per_decode"})


class MetricsAnswer(Shape, frozen=True, kw_only=True):
    """Counters since the server started."""

    counters: dict[str, float]
    """Name without the prefix `llamacpp:`, and value."""
    gauges: dict[str, float] = msgspec.field(default_factory=dict)
    """The few gauges that reading does not reset: requests at work and waiting, mean of busy slots."""


def parse_metrics(body: bytes) -> MetricsAnswer:
    """Read the counters of the text format. Raises: ParseError."""
    counters: dict[str, float] = {}
    gauges: dict[str, float] = {}
    is_counter: set[str] = set()
    for line in body.decode("utf-8", "replace").splitlines():
        words = line.split()
        if line.startswith("# TYPE") and len(words) == 4 and words[3] == "counter":  # noqa: PLR2004 - # TYPE NAME KIND
            is_counter.add(words[2])
        elif words and words[0] in is_counter and len(counters) < MOST_COUNTERS:
            counters[words[0].removeprefix(PREFIX)] = _value(words)
        elif words and words[0].removeprefix(PREFIX) in STEADY_GAUGES:
            gauges[words[0].removeprefix(PREFIX)] = _value(words)
    if not counters:
        raise ParseError("the body has no counter of the Prometheus text format")
    return MetricsAnswer(counters=counters, gauges=gauges)


def _value(words: list[str]) -> float:
    try:
        value = float(words[1])
    except (IndexError, ValueError) as error:
        raise ParseError("a counter has no number") from error
    if not math.isfinite(value) or value < 0:
        raise ParseError("a counter is negative or not a number")
    return value


@probe(
    "metrics",
    sends="GET /metrics",
    proves="what the server has counted since it started",
    does_not_prove="rates: its gauges are averages since the last reader came",
)
def probe_metrics(
    client: HttpClient, *, bounds: Bounds, query: str = ""
) -> tuple[EndpointAnswer, Fact[MetricsAnswer]]:
    """Ask for the counters."""
    return parsed(ask(client, "metrics", "GET", f"/metrics{query}", bounds=bounds), parse_metrics)
