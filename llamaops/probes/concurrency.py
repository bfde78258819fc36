"""Several requests at once, and a late one beside a running one: are the slots really used together?

Streams are used throughout: the times at which text arrives show what advanced beside what, and a request
that is no longer wanted ends as soon as we disconnect. Neither probe measures speed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from llamaops.probes.endpoint import QUICK
from llamaops.probes.metrics import MetricsAnswer, probe_metrics
from llamaops.probes.overlap import arrives_in_lumps, could_have_joined, long_enough, side_by_side
from llamaops.probes.registry import probe
from llamaops.probes.selection import Selection
from llamaops.probes.server import ServerFacts, pace_of_chat, router_query, slot_context
from llamaops.probes.slots import SlotsAnswer, probe_slots
from llamaops.probes.streamed import Sending, StreamedRequest, ask_streamed
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted, not_selected
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.parallel import start

FEWEST_TOKENS = 24
MOST_TOKENS = 384
TOKENS_FOR_EACH = 5
MARGIN_TOKENS = 10
PROMPT_TOKENS = 128
"""What a prompt of ours and its template take at most, with room to spare."""
WATCHED_S = 0.2
"""How long an answer should last for its neighbours to be seen beside it."""
MOST_REQUESTS = 64
PROMPTS = 16
"""Prompts of different length; requests beyond take them again."""
SAMPLE_EVERY_S = 1.5
"""More often would keep the server from noticing that a client of somebody else's has gone."""
ROUND_S = 120.0
TOTAL_S = 300.0
ROUNDS = 3
LATE_PIECES = 2
"""Pieces that the running request still has to give after the late one's first, to be seen beside it."""


class SlotSample(Shape, frozen=True, kw_only=True):
    """What /slots and /metrics said while requests ran."""

    at_s: float
    """Seconds after the round began when the answer was there."""
    busy: tuple[int, ...] | None
    """Ids of the slots that were processing; none where /slots gave no answer."""
    decoded_tokens: dict[str, int | None] = msgspec.field(default_factory=dict)
    """Tokens that each busy slot had generated, by slot id; null where the build does not say."""
    processing: float | None = None
    """Requests at work by /metrics."""
    deferred: float | None = None
    """Requests that wait for a slot by /metrics."""


class Round(Shape, frozen=True, kw_only=True):
    """Requests that were sent at once."""

    max_tokens: int
    """Bound on generated tokens of each."""
    requests: tuple[StreamedRequest, ...]
    """Each with its own result."""
    samples: tuple[SlotSample, ...]
    """The slots meanwhile."""
    side_by_side: int
    """Most requests whose text advanced in the same stretches of time."""
    long_enough: bool
    """Whether requests side by side would have shown as such."""
    in_lumps: bool
    """Whether text arrived in lumps, which says nothing about when it was generated."""
    busy_slots_per_decode: float | None = None
    """Mean number of slots in a decode over the round, from the difference of counters."""


class LateArrival(Shape, frozen=True, kw_only=True):
    """A request sent while another had already produced text."""

    running: StreamedRequest
    """The request that ran when the late one came."""
    late: StreamedRequest | None
    """The late request; none where the first had given no text before it ended."""
    samples: tuple[SlotSample, ...]
    """The slots meanwhile."""
    pieces_before: int
    """Pieces of the running request before the late one was sent."""
    pieces_after: int
    """Pieces of the running request after the late one's first."""
    pieces_meanwhile: int
    """Pieces of the running request between the sending of the late one and its own end."""
    had_time: bool
    """Whether the late request had time to give text before the running one ended."""
    in_lumps: bool
    """Whether text arrived in lumps."""


class ConcurrencyFacts(Shape, frozen=True, kw_only=True):
    """What several requests at once showed."""

    slots: Fact[int]
    """Slots by the server's own word."""
    busy_before: Fact[int]
    """Slots that others used before we began."""
    rounds: Fact[tuple[Round, ...]]
    """Twice as many requests as slots at once; again with more tokens where too little was seen."""
    late: Fact[LateArrival]
    """A late request beside a running one."""


class _Work(NamedTuple):
    """What every request here needs."""

    client: HttpClient
    model: str | None
    slots: int
    query: str
    most_tokens: int
    pace_s: float | None
    end_s: float
    request_s: float

    def bounds(self) -> Bounds:
        return Bounds(wall_s=max(1.0, min(self.request_s, self.end_s - self.client.now())))


def collect_concurrency(
    client: HttpClient,
    server: ServerFacts,
    selection: Selection,
    *,
    unified: bool | None,
    total_s: float = TOTAL_S,
    request_s: float = ROUND_S,
) -> ConcurrencyFacts:
    """Send requests at once and one late, where they are selected and a single one works.

    Args:
        client: For the server's origin.
        server: What single requests gave.
        selection: The probes to ask.
        unified: Whether the slots share one KV cache; None when it is not known, and then they may.
        total_s: Bound on both probes together.
        request_s: Bound on one request.

    Units: seconds. Raises: nothing for what a server does.
    """
    slots = slot_count(server)
    why_not = _why_not(server, slots)
    if why_not is not None or not isinstance(slots, Known):
        gap = why_not or not_attempted("the number of slots is not known")
        return ConcurrencyFacts(
            slots=slots,
            busy_before=gap,
            rounds=_or_left_out(selection, "concurrency", gap),
            late=_or_left_out(selection, "late-request", gap),
        )
    work = _work(client, server, slots.value, unified, (total_s, request_s))
    before = _busy_before(work)
    rounds: Fact[tuple[Round, ...]] = not_selected(selection.why_not("concurrency"))
    if "concurrency" in selection:
        rounds = Known(value=probe_concurrency(work), source=_source("requests at once"))
    late: Fact[LateArrival] = not_selected(selection.why_not("late-request"))
    if "late-request" in selection:
        late = _late_or_why_not(work, rounds)
    return ConcurrencyFacts(slots=slots, busy_before=before, rounds=rounds, late=late)


def slot_count(server: ServerFacts) -> Fact[int]:
    """Return how many slots the server says it has, by /props or else /slots."""
    props = server.props_of_model
    if isinstance(props, Known) and props.value.total_slots:
        return Known(value=props.value.total_slots, source=props.source)
    if isinstance(server.slots, Known) and server.slots.value.slots:
        return Known(value=len(server.slots.value.slots), source=server.slots.source)
    source = Source(kind="computed", name="the number of slots")
    return Unknown(
        why="absent", detail="neither /props nor /slots says how many slots there are", source=source
    )


def _or_left_out(selection: Selection, name: str, gap: Unknown) -> Unknown:
    return gap if name in selection else not_selected(selection.why_not(name))


def _why_not(server: ServerFacts, slots: Fact[int]) -> Unknown | None:
    if not isinstance(server.chat, Known):
        return not_attempted(f"one chat request alone did not work: {server.chat.detail}")
    if server.stream_hangs:
        return not_attempted("one streamed request alone did not end in time")
    if isinstance(slots, Unknown):
        return slots
    return None


def _work(
    client: HttpClient, server: ServerFacts, slots: int, unified: bool | None, limits_s: tuple[float, float]
) -> _Work:
    name = server.request_model
    context = slot_context(server)
    share = None if context is None else context // (1 if unified is False else slots)
    room = MOST_TOKENS if share is None else share - _longest_prompt(server, slots)
    return _Work(
        client=client,
        model=name.value if isinstance(name, Known) else None,
        slots=slots,
        query=router_query(server.props, name),
        most_tokens=max(8, min(MOST_TOKENS, room)),
        pace_s=pace_of_chat(server),
        end_s=client.now() + limits_s[0],
        request_s=limits_s[1],
    )


def _longest_prompt(server: ServerFacts, slots: int) -> int:
    """Return about how many tokens the longest of our prompts has, template included."""
    usage = server.chat.value.usage if isinstance(server.chat, Known) else None
    if usage is None or not usage.prompt_tokens:
        return PROMPT_TOKENS
    return min(PROMPT_TOKENS, usage.prompt_tokens + TOKENS_FOR_EACH * min(2 * slots, PROMPTS) + MARGIN_TOKENS)


def _busy_before(work: _Work) -> Fact[int]:
    _answer, slots = probe_slots(work.client, bounds=QUICK, query=work.query)
    if isinstance(slots, Unknown):
        return slots
    return Known(value=len(_busy(slots.value)), source=slots.source)


def _busy(slots: SlotsAnswer) -> tuple[int, ...]:
    return tuple(slot.id for slot in slots.slots if slot.is_processing)


def _source(name: str) -> Source:
    return Source(kind="http", name=name)


def prompt_of(number: int) -> str:
    """Return a prompt of its own length for each of sixteen requests, so that an answer shows its request."""
    return "Tell me a long story about a ship" + " and a small boat" * (number % PROMPTS) + "."


@probe(
    "concurrency",
    sends="2 x slots streamed chat requests at once (64 at most), each with its own prompt; /slots and "
    "/metrics meanwhile, at least 1.5 s apart",
    proves="how many requests advanced at the same time, and that each of them was answered as its own",
    does_not_prove="that batching makes anything faster, or that longer prompts fit beside each other",
    tokens="24 to 384 for each request by the server's pace, at most three rounds",
    seconds="one answer under load for each round, at most 300 with the late request",
    level="standard",
)
def probe_concurrency(work: _Work) -> tuple[Round, ...]:
    """Send twice as many requests as there are slots; again with longer answers where too little showed."""
    rounds: list[Round] = []
    tokens = _tokens_for(work, work.pace_s)
    for _attempt in range(ROUNDS):
        done = _round(work, tokens)
        rounds.append(done)
        failed = any(request.fault for request in done.requests)
        longer = min(work.most_tokens, tokens * 4)
        wanted = min(work.slots, len(done.requests))
        if failed or done.side_by_side >= wanted or longer <= tokens or work.client.now() >= work.end_s:
            break
        if work.slots > 1 and done.long_enough and done.side_by_side <= 1 and _attempt > 0:
            break
        tokens = longer
    return tuple(rounds)


def _tokens_for(work: _Work, pace_s: float | None) -> int:
    """Return how many tokens make an answer that can be watched."""
    wanted = FEWEST_TOKENS if not pace_s else int(WATCHED_S / pace_s)
    return min(max(FEWEST_TOKENS, wanted), work.most_tokens)


class _Watch:
    """Samples /slots and /metrics in a thread of its own while requests run."""

    def __init__(self, work: _Work, origin_s: float) -> None:
        self._work = work
        self._origin_s = origin_s
        self._begin, self._end = threading.Event(), threading.Event()
        self.samples: list[SlotSample] = []
        self._quiet = work.client.without_evidence()
        self._slots = self._metrics = True
        self._running = start(self._run)

    def begin(self) -> None:
        """Say that there is something to see."""
        self._begin.set()

    def finish(self) -> tuple[SlotSample, ...]:
        """End, and return what was seen."""
        self._end.set()
        self._begin.set()
        self._running.result()
        return tuple(self.samples)

    def _run(self) -> None:
        self._begin.wait(self._work.request_s)
        while not self._end.is_set() and (self._slots or self._metrics):
            self.samples.append(self._sample())
            self._end.wait(SAMPLE_EVERY_S)

    def _sample(self) -> SlotSample:
        busy: tuple[int, ...] | None = None
        decoded: dict[str, int | None] = {}
        gauges: dict[str, float] = {}
        if self._slots:
            _answer, slots = probe_slots(self._quiet, bounds=QUICK, query=self._work.query)
            self._slots = isinstance(slots, Known)
            if isinstance(slots, Known):
                busy = _busy(slots.value)
                decoded = {str(s.id): s.decoded_tokens for s in slots.value.slots if s.is_processing}
        at_s = self._work.client.now() - self._origin_s
        if self._metrics:
            _answer, metrics = probe_metrics(self._quiet, bounds=QUICK, query=self._work.query)
            self._metrics = isinstance(metrics, Known)
            gauges = metrics.value.gauges if isinstance(metrics, Known) else {}
        return SlotSample(
            at_s=round(at_s, 5),
            busy=busy,
            decoded_tokens=decoded,
            processing=gauges.get("requests_processing"),
            deferred=gauges.get("requests_deferred"),
        )


def _round(work: _Work, tokens: int) -> Round:
    count = min(2 * work.slots, MOST_REQUESTS)
    before = _metrics(work)
    origin = work.client.now()
    watch = _Watch(work, origin)
    begun: set[int] = set()
    sending = Sending(work.client, "concurrency", work.model, tokens, work.bounds(), origin)

    def send(number: int) -> Callable[[], StreamedRequest]:
        def on_event(_event: object, pieces: int) -> None:
            if pieces == LATE_PIECES:
                begun.add(number)
                if len(begun) >= min(work.slots, count):
                    watch.begin()

        return lambda: ask_streamed(sending, number, prompt_of(number - 1), on_event)

    pending = [start(send(number)) for number in range(1, count + 1)]
    try:
        requests = tuple(item.result() for item in pending)
    finally:
        samples = watch.finish()
    streams = [request.times_s for request in requests if request.times_s]
    return Round(
        max_tokens=tokens,
        requests=requests,
        samples=samples,
        side_by_side=side_by_side(streams),
        long_enough=long_enough([request.sent_s for request in requests], streams),
        in_lumps=arrives_in_lumps(streams),
        busy_slots_per_decode=_per_decode(before, _metrics(work)),
    )


def _metrics(work: _Work) -> Fact[MetricsAnswer]:
    return probe_metrics(work.client.without_evidence(), bounds=QUICK, query=work.query)[1]


def _per_decode(before: Fact[MetricsAnswer], after: Fact[MetricsAnswer]) -> float | None:
    """Return the mean of busy slots over a stretch, from the cumulative mean at both of its ends."""
    if not (isinstance(before, Known) and isinstance(after, Known)):
        return None
    figures = [
        (answer.counters.get("n_decode_total"), answer.gauges.get("n_busy_slots_per_decode"))
        for answer in (before.value, after.value)
    ]
    (decodes0, mean0), (decodes1, mean1) = figures
    if decodes0 is None or decodes1 is None or mean0 is None or mean1 is None or decodes1 <= decodes0:
        return None
    return round((mean1 * decodes1 - mean0 * decodes0) / (decodes1 - decodes0), 3)


def _late_or_why_not(work: _Work, rounds: Fact[tuple[Round, ...]]) -> Fact[LateArrival]:
    if work.slots == 1:
        detail = "one slot: a late request has to wait, there is nothing to join"
        return Unknown(why="unsupported", detail=detail, source=_source("the number of slots"))
    if work.client.now() >= work.end_s:
        return not_attempted("the time for requests at once was used up")
    tokens = 0
    if isinstance(rounds, Known) and rounds.value:
        tokens = rounds.value[-1].max_tokens
    return Known(
        value=probe_late_request(work, tokens), source=_source("a late request beside a running one")
    )


@probe(
    "late-request",
    sends="one long streamed chat request, and a second one once the first has given text",
    proves="the second gave text while the first went on: a late request ran beside a running one",
    does_not_prove="that batching makes anything faster",
    tokens="48 to 384 for the first and a third of that for the second, by the server's pace",
    seconds="one answer; at most 120",
    level="standard",
)
def probe_late_request(work: _Work, tokens: int = 0) -> LateArrival:
    """Send one request, and another once the first has given text; longer where the first ended too early."""
    wanted = min(work.most_tokens, max(2 * FEWEST_TOKENS, tokens, 2 * _tokens_for(work, work.pace_s)))
    seen = _late(work, wanted)
    if ran_beside(seen) == "too_short" and work.most_tokens > wanted and work.client.now() < work.end_s:
        seen = _late(work, work.most_tokens)
    return seen


def _late(work: _Work, tokens: int) -> LateArrival:
    origin = work.client.now()
    watch = _Watch(work, origin)
    has_text = threading.Event()

    def first(_event: object, pieces: int) -> None:
        if pieces >= LATE_PIECES:
            has_text.set()

    def second(_event: object, pieces: int) -> None:
        if pieces:
            watch.begin()

    def ask(number: int, limit: int, on_event: Callable[[object, int], None]) -> StreamedRequest:
        sending = Sending(work.client, "late-request", work.model, limit, work.bounds(), origin)
        return ask_streamed(sending, number, prompt_of(number - 1), on_event)

    def run_first() -> StreamedRequest:
        try:
            return ask(1, tokens, first)
        finally:
            has_text.set()

    running = start(run_first)
    try:
        has_text.wait(work.request_s)
        late = ask(2, max(8, tokens // 3), second)
        one = running.result()
    finally:
        samples = watch.finish()
    joined = late.times_s[0] if late.times_s else None
    return LateArrival(
        running=one,
        late=late,
        samples=samples,
        pieces_before=sum(1 for at in one.times_s if at <= late.sent_s),
        pieces_after=0 if joined is None else sum(1 for at in one.times_s if at > joined),
        pieces_meanwhile=sum(1 for at in one.times_s if at > late.sent_s),
        had_time=bool(one.times_s)
        and could_have_joined(late.sent_s, one.times_s[-1], one.times_s[0] - one.sent_s),
        in_lumps=arrives_in_lumps([one.times_s]),
    )


def ran_beside(seen: LateArrival) -> Literal["yes", "no", "too_short", "in_lumps"]:
    """Say whether the late request gave text while the running one went on.

    `too_short` where the running one ended too soon to tell.
    """
    if seen.in_lumps:
        return "in_lumps"
    if seen.pieces_before >= 1 and seen.pieces_after >= LATE_PIECES:
        return "yes"
    # A server that admits requests at once needs a few decodes for the prompt and the first token.
    waited = seen.pieces_before >= 1 and seen.pieces_meanwhile >= FEWEST_TOKENS // 2
    return "no" if waited and seen.had_time else "too_short"
