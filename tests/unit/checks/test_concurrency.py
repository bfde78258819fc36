"""Several requests at once are judged by their own results, and never by too little."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.checks.concurrency import (
    answers_belong_to_their_requests,
    every_request_is_answered,
    late_request_joins,
    slots_run_side_by_side,
)
from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.errors import NotKnownError
from llamaops.facts.asked import AskedFacts
from llamaops.probes.completion_body import Usage
from llamaops.probes.concurrency import ConcurrencyFacts, LateArrival, Round, SlotSample
from llamaops.probes.endpoint import EndpointAnswer
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.probes.streamed import StreamedRequest
from llamaops.schema.fact import Fact, Known, Source, not_attempted, not_selected
from tests.fakes.http_client import FakeClient
from tests.unit.probes.test_server import honest

SOURCE = Source(kind="http", name="made for a test")


@pytest.fixture(scope="module")
def server() -> ServerFacts:
    return collect_server(FakeClient(honest()).client, AskedFacts(alias="smol"))


def request(number: int, begin: float = 0.1, **changes: object) -> StreamedRequest:
    answer = EndpointAnswer(
        probe="concurrency", request="POST", key="none", state="works", status=200, detail="HTTP 200",
        elapsed_s=1.0, evidence=(f"ev-{number}",),
    )  # fmt: skip
    tokens = 20 + 4 * number
    made = StreamedRequest(
        number=number, answer=answer, max_tokens=24, sent_s=0.0, started_s=begin, waited_s=begin,
        ended_s=begin + 1,
        times_s=tuple(begin + 0.02 * n for n in range(24)), pieces=24, finish_reason="length",
        usage=Usage(prompt_tokens=tokens, completion_tokens=24, total_tokens=tokens + 24), id=f"id-{number}",
        text="a story",
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def facts(
    *requests: StreamedRequest,
    slots: int = 2,
    late: LateArrival | None = None,
    others: int = 0,
    **changes: object,
) -> ConcurrencyFacts:
    done = Round(
        max_tokens=24, requests=requests or tuple(map(request, range(1, 5))), samples=(), side_by_side=2,
        long_enough=True, in_lumps=False,
    )  # fmt: skip
    seen: Fact[LateArrival] = not_attempted("not here")
    if late is not None:
        seen = Known(value=late, source=SOURCE)
    return ConcurrencyFacts(
        slots=Known(value=slots, source=SOURCE),
        busy_before=Known(value=others, source=SOURCE),
        rounds=Known(value=(msgspec.structs.replace(done, **changes),), source=SOURCE),
        late=seen,
    )


def verdict(found: Verdict | NotApplicable) -> Verdict:
    assert isinstance(found, Verdict)
    return found


def test_side_by_side_on_every_slot_is_parallel(server: ServerFacts) -> None:
    found = verdict(slots_run_side_by_side(facts(busy_slots_per_decode=1.9), server))
    assert found.holds
    assert "parallel: 2 of 2" in found.summary
    assert "2 queued as expected" in found.summary
    assert "1.90 slots in a decode" in found.summary
    assert "nothing about speed" in found.summary


def test_one_after_the_other_is_serialized(server: ServerFacts) -> None:
    found = verdict(slots_run_side_by_side(facts(side_by_side=1), server))
    assert not found.holds
    assert found.summary.startswith("serialized")


def test_more_than_its_slots_contradicts(server: ServerFacts) -> None:
    assert not verdict(slots_run_side_by_side(facts(side_by_side=3), server)).holds


def test_one_slot_queues_and_says_that_joining_is_not_applicable(server: ServerFacts) -> None:
    one = facts(request(1), request(2, 0.7), slots=1, side_by_side=1)
    found = verdict(slots_run_side_by_side(one, server))
    assert found.holds
    assert "not applicable" in found.summary
    assert isinstance(late_request_joins(one, server), NotApplicable)
    assert not verdict(slots_run_side_by_side(facts(slots=1, side_by_side=2), server)).holds


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (facts(side_by_side=1, long_enough=False), "too short"),
        (facts(side_by_side=1, in_lumps=True), "lumps"),
        (facts(side_by_side=1, others=1), "other people"),
        (
            facts(slots=3, samples=(SlotSample(at_s=0.1, busy=(0, 1, 2)),)),
            "not observed on every slot",
        ),
        (facts(request(1), request(2, fault="no", pieces=0)), "nothing can be compared"),
    ],
)
def test_not_observed_is_unknown_and_never_a_pass(
    made: ConcurrencyFacts, said: str, server: ServerFacts
) -> None:
    with pytest.raises(NotKnownError, match=said):
        slots_run_side_by_side(made, server)


def test_one_slot_whose_requests_came_at_once_is_not_passed(server: ServerFacts) -> None:
    with pytest.raises(NotKnownError, match="came at once"):
        slots_run_side_by_side(facts(request(1), request(2, 0.3), slots=1, side_by_side=1), server)


def test_one_failed_request_fails_and_the_others_are_kept(server: ServerFacts) -> None:
    bad = request(2, fault="an error inside the stream: Context size has been exceeded.")
    found = verdict(every_request_is_answered(facts(request(1), bad, request(3)), server))
    assert not found.holds
    assert found.summary.startswith("1 of 3 failed: round 1, request 2")
    assert found.evidence == ("ev-2",)


def test_none_answered_in_time_is_unknown(server: ServerFacts) -> None:
    answer = EndpointAnswer(
        probe="c",
        request="POST",
        key="none",
        state="no_answer",
        status=None,
        detail="nothing in time",
        elapsed_s=9,
    )
    silent = [request(n, answer=answer, fault="nothing in time") for n in (1, 2)]
    with pytest.raises(NotKnownError, match="no request was answered"):
        every_request_is_answered(facts(*silent), server)
    assert not verdict(every_request_is_answered(facts(silent[0], request(2)), server)).holds


def test_answers_that_are_mixed_up_are_seen(server: ServerFacts) -> None:
    assert verdict(answers_belong_to_their_requests(facts(), server)).holds
    same = Usage(prompt_tokens=24, completion_tokens=24, total_tokens=48)
    for made in (
        facts(request(1), request(2, usage=same)),
        facts(request(1), request(2, id="id-1")),
        facts(request(1), request(2, pieces=60)),
    ):
        assert not verdict(answers_belong_to_their_requests(made, server)).holds


def late(**changes: object) -> LateArrival:
    made = LateArrival(
        running=request(1), late=request(2, 0.3), samples=(), pieces_before=3, pieces_after=12,
        pieces_meanwhile=20, had_time=True, in_lumps=False,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_a_late_request_that_joins(server: ServerFacts) -> None:
    found = verdict(late_request_joins(facts(late=late()), server))
    assert found.holds
    assert "a late request ran beside a running one" in found.summary


def test_a_late_request_that_waits(server: ServerFacts) -> None:
    assert not verdict(late_request_joins(facts(late=late(pieces_after=0)), server)).holds
    with pytest.raises(NotKnownError, match="other people's requests"):
        late_request_joins(facts(late=late(pieces_after=0), others=1), server)


@pytest.mark.parametrize(
    "seen",
    [
        late(pieces_after=0, pieces_meanwhile=3),
        late(pieces_after=0, had_time=False),
        late(in_lumps=True),
        late(late=None),
        late(running=request(1, fault="x")),
    ],
)
def test_a_late_request_of_which_too_little_was_seen(seen: LateArrival, server: ServerFacts) -> None:
    with pytest.raises(NotKnownError):
        late_request_joins(facts(late=seen), server)


def test_what_was_left_out_is_not_judged(server: ServerFacts) -> None:
    made = msgspec.structs.replace(facts(), rounds=not_selected("left out"))
    with pytest.raises(NotKnownError) as caught:
        slots_run_side_by_side(made, server)
    assert caught.value.why == "not_selected"
