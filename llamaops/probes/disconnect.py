"""Does a client that goes away free its slot?"""

from __future__ import annotations

import time
from typing import NamedTuple

from llamaops.probes.chat import PATH
from llamaops.probes.chat_stream import StreamReader
from llamaops.probes.endpoint import QUICK, EndpointAnswer, answer_of, key_sent
from llamaops.probes.metrics import probe_metrics
from llamaops.probes.registry import probe
from llamaops.probes.slots import probe_slots
from llamaops.probes.streamed import long_body
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import StreamExchange
from llamaops.system.sse import SseEvent

PROMPT = "Tell me a very long story about the sea, and do not stop."
FREE_WITHIN_S = 5.0
PIECES = 3
LOOK_EVERY_S = 0.1
LONG_S = 6.0
"""How long the answer would have taken, if the context and the bound on tokens allow it."""
MOST_TOKENS = 1024


class DisconnectAnswer(Shape, frozen=True, kw_only=True):
    """A streamed request that we broke off."""

    answer: EndpointAnswer
    """What it came to until then."""
    max_tokens: int
    """Bound on generated tokens that was sent."""
    pieces: int
    """Pieces of text before we disconnected."""
    left_s: float | None
    """Seconds that the rest of the answer would have taken, by its own pace."""
    busy_before: int
    """Slots that others used before."""
    free_s: float | None
    """Seconds until no more slots were busy than before; none where that was not seen in time."""
    seen_by: str
    """Which endpoint showed it."""
    busy_meanwhile: int | None = None
    """Slots that were busy after our first piece, while the answer went on; none where that was not asked."""


class Place(NamedTuple):
    """Where and with what is asked."""

    client: HttpClient
    model: str | None
    query: str
    room_tokens: int
    pace_s: float | None
    request_s: float


@probe(
    "disconnect",
    sends="one long streamed chat request that we leave after three pieces; then /slots or /metrics, ten "
    "times a second for at most 5 s",
    proves="a slot whose client has gone is free again within 5 s",
    does_not_prove="the same for requests that are not streamed, or behind a proxy",
    tokens="a few; at most 1024 where the server does not notice",
    seconds="under 1; at most 5 after the first tokens",
    level="standard",
)
def probe_disconnect(place: Place) -> Fact[DisconnectAnswer]:
    """Ask for a long answer, leave, and look whether its slot becomes free."""
    busy = _busy(place)
    if isinstance(busy, Unknown):
        return busy
    wanted = int(LONG_S / place.pace_s) if place.pace_s else MOST_TOKENS
    tokens = max(32, min(MOST_TOKENS, place.room_tokens, wanted))
    reader = StreamReader()

    meanwhile: list[int] = []

    def enough(event: SseEvent) -> bool:
        reader.take(event)
        # Where most of the time is over before anything comes, the answer may have ended behind a buffer.
        soon = reader.times and place.pace_s and reader.times[0] < place.pace_s * tokens / 2
        if soon and not meanwhile and not reader.finish:
            shown = _busy(place)
            meanwhile.append(shown.value if isinstance(shown, Known) else -1)
        return len(reader.times) >= PIECES

    body = long_body(PROMPT, max_tokens=tokens, model=place.model)
    limits = Bounds(wall_s=place.request_s, keep_bytes=16 * KIB, total_bytes=MIB)
    result = place.client.stream("POST", PATH, bounds=limits, body=body, stop=enough)
    answer = answer_of("disconnect", f"POST {PATH} (streamed, left)", key_sent(place.client), result)
    left_at = place.client.now()
    source = Source(kind="http", name=answer.request, evidence=(answer.evidence or (None,))[0])
    if not isinstance(result, StreamExchange) or result.end != "stopped" or len(reader.times) < PIECES:
        return Unknown(
            why="failed",
            detail=f"the request gave too little text to leave it: {answer.detail}",
            source=source,
        )
    pace = place.pace_s or (reader.times[-1] - reader.times[0]) / (PIECES - 1)
    found = DisconnectAnswer(
        answer=answer,
        max_tokens=tokens,
        pieces=len(reader.times),
        left_s=round(pace * (tokens - len(reader.times)), 4),
        busy_before=busy.value,
        free_s=_free_after(place, busy.value, left_at),
        seen_by=busy.source.name,
        busy_meanwhile=next((count for count in meanwhile if count >= 0), None),
    )
    return Known(value=found, source=source)


def _free_after(place: Place, before: int, left_at: float) -> float | None:
    while (passed := place.client.now() - left_at) < FREE_WITHIN_S:
        busy = _busy(place)
        if isinstance(busy, Known) and busy.value <= before:
            return round(place.client.now() - left_at, 4)
        time.sleep(min(LOOK_EVERY_S, max(0.0, FREE_WITHIN_S - passed)))
    return None


def _busy(place: Place) -> Fact[int]:
    """Return how many slots are busy, by /slots or else by /metrics."""
    quiet = place.client.without_evidence()
    _answer, slots = probe_slots(quiet, bounds=QUICK, query=place.query)
    if isinstance(slots, Known) and all(slot.is_processing is not None for slot in slots.value.slots):
        return Known(value=sum(1 for slot in slots.value.slots if slot.is_processing), source=slots.source)
    _answer, metrics = probe_metrics(quiet, bounds=QUICK, query=place.query)
    if isinstance(metrics, Known) and "requests_processing" in metrics.value.gauges:
        return Known(value=int(metrics.value.gauges["requests_processing"]), source=metrics.source)
    source = Source(kind="http", name="GET /slots and /metrics")
    return Unknown(
        why="unsupported", detail="neither /slots nor /metrics shows which slots are busy", source=source
    )
