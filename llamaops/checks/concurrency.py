"""Are requests that come at once answered side by side, each as its own, and may a late one join?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.checks.server_answers import no_chat
from llamaops.errors import NotKnownError
from llamaops.probes.age import is_early
from llamaops.probes.concurrency import PROMPTS, ConcurrencyFacts, LateArrival, Round, ran_beside
from llamaops.probes.server import ServerFacts
from llamaops.probes.streamed import StreamedRequest
from llamaops.probes.usable_text import MEANING
from llamaops.schema.fact import Known

SILENT = frozenset({"no_answer", "unreachable", "loading", "needs_key"})
JITTER_S = 0.02
"""Threads of ours see an arrival up to some milliseconds late."""
NOT_SPEED = "this says nothing about speed"


def _requests(facts: ConcurrencyFacts) -> list[tuple[str, StreamedRequest]]:
    """Return every request with where it belongs."""
    found: list[tuple[str, StreamedRequest]] = []
    if isinstance(facts.rounds, Known):
        for number, done in enumerate(facts.rounds.value, 1):
            found += [(f"round {number}, request {item.number}", item) for item in done.requests]
    if isinstance(facts.late, Known):
        found.append(("running request", facts.late.value.running))
        if facts.late.value.late is not None:
            found.append(("late request", facts.late.value.late))
    return found


def _evidence(requests: Iterator[StreamedRequest] | list[StreamedRequest]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for request in requests for item in request.answer.evidence))


@check(
    "concurrency.every-request-is-answered",
    title="Each of several requests at once is answered whole, with usable text",
    boundary="concurrency",
    remedy="see each request's own result in the record; with a shared KV cache lower --parallel or raise "
    "--ctx-size, and read the end of the server's log",
)
def every_request_is_answered(concurrency: ConcurrencyFacts, server: ServerFacts) -> Verdict | NotApplicable:
    """Ask every request for its own status, text, finish_reason and end; one failed fails all."""
    if (other := no_chat(server)) is not None:
        return other
    if not isinstance(concurrency.rounds, Known):
        concurrency.late.need()
    requests = _requests(concurrency)
    faults = [(place, item) for place, item in requests if _fault_of(item, server)]
    silent = [place for place, item in faults if item.answer.state in SILENT]
    if faults and len(silent) == len(faults) and len(faults) < len(requests):
        silent = []  # the others were answered meanwhile: the machine is not merely slow
    if faults and silent and len(silent) == len(faults):
        place, item = faults[0]
        raise NotKnownError("timed_out", f"{place}: {item.answer.detail}; no request was answered in time")
    shown = "; ".join(f"{place}: {_fault_of(item, server)}" for place, item in faults[:4])
    good = f"{len(requests)} requests, each answered whole"
    return Verdict(
        holds=not faults,
        summary=f"{len(faults)} of {len(requests)} failed: {shown}" if faults else good,
        expected="every request with HTTP 200, usable text, a finish_reason and its end",
        observed=shown or good,
        evidence=_evidence([item for _place, item in faults or requests]),
    )


def _fault_of(request: StreamedRequest, server: ServerFacts) -> str | None:
    if fault := _not_whole(request, server):
        return fault
    # Past its own end a small model may repeat itself: that is no fault of the slots.
    if request.problem in {None, "repeated"}:
        return None
    return f"its text is {MEANING[request.problem]}"


def _not_whole(request: StreamedRequest, server: ServerFacts) -> str | None:
    """Return why a request counts as failed; ids of their own in every piece are how old builds send them."""
    if request.fault is None and request.ids > 1 and not is_early(server):
        return "its pieces carry different ids"
    return request.fault


@check(
    "concurrency.slots-run-side-by-side",
    title="Requests at once run side by side on every slot, and wait beyond them",
    boundary="concurrency",
    remedy="compare --parallel with n_slots in the load log; switch --cont-batching on; ask the server "
    "directly, not through a proxy that sends one request after the other",
)
def slots_run_side_by_side(concurrency: ConcurrencyFacts, server: ServerFacts) -> Verdict | NotApplicable:
    """Compare the slots with the most requests whose text advanced in the same stretches of time."""
    if (other := no_chat(server)) is not None:
        return other
    rounds, slots = concurrency.rounds.need(), concurrency.slots.need()
    _whole(rounds)
    best = max(rounds, key=lambda done: done.side_by_side)
    wanted = min(slots, len(best.requests))
    if best.side_by_side > slots:
        return _verdict(best, slots, f"{best.side_by_side} ran side by side on {slots} slots", holds=False)
    if slots == 1:
        return _one_slot(rounds)
    if best.side_by_side >= wanted:
        if wanted < slots:
            raise NotKnownError(
                "unsupported",
                f"{wanted} requests ran side by side; more are not sent, and {slots} slots exist",
            )
        said = (
            f"parallel: {best.side_by_side} of {slots} slots advanced at the same time; {_queue(best, slots)}"
        )
        return _verdict(best, slots, said, holds=True)
    return _fewer(rounds, best, slots, concurrency)


def _whole(rounds: tuple[Round, ...]) -> None:
    answered = sum(1 for request in rounds[-1].requests if request.pieces)
    if answered < 2:  # noqa: PLR2004 - two is the least that can overlap
        raise NotKnownError("failed", f"only {answered} of the requests gave text: nothing can be compared")


def _one_slot(rounds: tuple[Round, ...]) -> Verdict:
    last = rounds[-1]
    streams = sorted((request.times_s for request in last.requests if request.times_s), key=lambda t: t[0])
    if any(later[0] < earlier[-1] - JITTER_S for earlier, later in itertools.pairwise(streams)):
        raise NotKnownError(
            "failed", "text of two requests came at once, too briefly to call it side by side"
        )
    said = f"one slot: {len(last.requests)} requests ran one after the other, as they have to; "
    return _verdict(last, 1, f"{said}a late request joining is not applicable", holds=True)


def _fewer(rounds: tuple[Round, ...], best: Round, slots: int, facts: ConcurrencyFacts) -> Verdict:
    """Judge fewer side by side than there are slots: failed only where more would have shown."""
    others = facts.busy_before.value if isinstance(facts.busy_before, Known) else 0
    last = rounds[-1]
    if others:
        raise NotKnownError("failed", f"not observed: {others} slots were busy with other people's requests")
    if last.in_lumps:
        raise NotKnownError("failed", "not observed: text came in lumps, so its times say nothing")
    if not last.long_enough:
        detail = f"not observed: answers of {last.max_tokens} tokens were too short to be seen side by side"
        raise NotKnownError("failed", detail)
    busiest = max((len(s.busy) for done in rounds for s in done.samples if s.busy is not None), default=None)
    if best.side_by_side > 1 and busiest is not None and busiest >= slots:
        detail = f"{best.side_by_side} of {slots} advanced side by side, and /slots showed {busiest} busy"
        raise NotKnownError("failed", f"not observed on every slot: {detail}")
    kind = "serialized" if best.side_by_side <= 1 else "too few side by side"
    said = f"{kind}: at most {best.side_by_side} of {slots} slots advanced at the same time"
    return _verdict(last, slots, said, holds=False)


def _queue(done: Round, slots: int) -> str:
    """Say how many had to wait for a slot, and how long."""
    beyond = len(done.requests) - slots
    waits = sorted(request.waited_s for request in done.requests if request.waited_s is not None)
    if beyond <= 0 or not waits:
        return "none had to wait"
    return f"{beyond} queued as expected, the longest wait {waits[-1]:.2f} s"


def _verdict(done: Round, slots: int, said: str, *, holds: bool) -> Verdict:
    busy = [len(sample.busy) for sample in done.samples if sample.busy is not None]
    notes = [f"/slots showed {max(busy)} processing at once"] if busy else []
    if done.busy_slots_per_decode is not None:
        notes.append(f"{done.busy_slots_per_decode:.2f} slots in a decode by /metrics")
    return Verdict(
        holds=holds,
        summary="; ".join([said, *notes, NOT_SPEED]),
        expected=f"{slots} slots side by side, and further requests after one of them has ended",
        observed=said,
        evidence=_evidence(list(done.requests)),
    )


@check(
    "concurrency.late-request-joins",
    title="A late request runs beside a running one",
    boundary="concurrency",
    remedy="switch continuous batching on (--cont-batching); ask the server directly, not through a queue",
)
def late_request_joins(concurrency: ConcurrencyFacts, server: ServerFacts) -> Verdict | NotApplicable:
    """Look whether the second request gave text while the first, already at work, went on."""
    if (other := no_chat(server)) is not None:
        return other
    if isinstance(concurrency.slots, Known) and concurrency.slots.value == 1:
        return NotApplicable("one slot: a late request has to wait, there is nothing to join")
    seen = concurrency.late.need()
    late = seen.late
    fault = _not_whole(seen.running, server) or (_not_whole(late, server) if late else "it was not sent")
    if fault:
        raise NotKnownError("failed", f"one of the two requests failed: {fault}")
    state = ran_beside(seen)
    if state in {"too_short", "in_lumps"}:
        what = "ended too soon" if state == "too_short" else "came in lumps"
        raise NotKnownError("failed", f"not observed: the text of the running request {what}")
    if state != "yes" and (others := _others(concurrency, seen)):
        raise NotKnownError("failed", f"not observed: {others}, so the late request had to wait for a slot")
    return _late_verdict(seen, holds=state == "yes")


def _others(concurrency: ConcurrencyFacts, seen: LateArrival) -> str:
    """Say that others use the server: a slot was busy before us, or besides the running request."""
    before = concurrency.busy_before.value if isinstance(concurrency.busy_before, Known) else 0
    if before:
        return f"{before} slots were busy with other people's requests"
    slots = concurrency.slots.value if isinstance(concurrency.slots, Known) else 0
    if slots and any(len(sample.busy) >= slots for sample in seen.samples if sample.busy is not None):
        return "/slots showed every slot busy while the late request gave nothing"
    return ""


def _late_verdict(seen: LateArrival, *, holds: bool) -> Verdict:
    after = f"after {seen.pieces_before} pieces of the running request the late one was sent"
    went_on = f"{seen.pieces_after} more pieces of the running one came after the late one's first"
    waited = f"the late one gave nothing while {seen.pieces_meanwhile} pieces of the running one came"
    two = [sample.busy for sample in seen.samples if sample.busy is not None and len(sample.busy) > 1]
    where = f"; /slots showed {', '.join(map(str, two[0]))} processing" if two and holds else ""
    claim = "a late request ran beside a running one" if holds else "serialized: a late request had to wait"
    observed = went_on if holds else waited
    return Verdict(
        holds=holds,
        summary=f"{claim}: {after}, and {observed}{where}; {NOT_SPEED}",
        expected="text of the late request before the running one ends",
        observed=observed,
        evidence=_evidence([seen.running, *([seen.late] if seen.late else [])]),
    )


@check(
    "concurrency.answers-belong-to-their-requests",
    title="Each of several requests at once gets the answer to itself",
    boundary="concurrency",
    remedy="do not use this server for more than one client: answers are mixed up or shared",
)
def answers_belong_to_their_requests(
    concurrency: ConcurrencyFacts, server: ServerFacts
) -> Verdict | NotApplicable:
    """Compare ids, limits, and the prompt tokens that usage gives with the length of each own prompt."""
    if (other := no_chat(server)) is not None:
        return other
    rounds = concurrency.rounds.need()
    faults = [fault for done in rounds for fault in _mixed(done)]
    ids = [item.id for _place, item in _requests(concurrency) if item.id]
    if len(set(ids)) < len(ids):
        faults.append("several requests got answers with the same id")
    good = f"{len(ids)} ids, all different; prompt tokens grow with each request's own prompt"
    return Verdict(
        holds=not faults,
        summary="; ".join(dict.fromkeys(faults)) or good,
        expected="ids of their own, and prompt tokens in the order of the prompts' lengths",
        observed="; ".join(dict.fromkeys(faults)) or good,
        evidence=_evidence([item for _place, item in _requests(concurrency)]),
    )


def _mixed(done: Round) -> list[str]:
    faults = []
    answered = [request for request in done.requests if request.fault is None]
    ordered = sorted(
        ((request.number - 1) % PROMPTS, request.usage.prompt_tokens)
        for request in answered
        if request.usage and request.usage.prompt_tokens
    )
    for (length, tokens), (longer, more) in itertools.pairwise(ordered):
        if length < longer and tokens >= more:
            faults.append(f"usage says {tokens} prompt tokens for a shorter prompt, {more} for a longer one")
    for request in answered:
        said = request.usage.completion_tokens if request.usage else None
        if request.pieces > done.max_tokens + 1 or (said or 0) > done.max_tokens:
            faults.append(f"request {request.number} is longer than its limit of {done.max_tokens} tokens")
        if request.finish_reason == "stop" and said == done.max_tokens:
            faults.append(f"request {request.number} ended at its limit, and finish_reason is stop")
    return faults
