"""What a build of early 2024 lacks is said to be absent in it; the same gap in a newer server is a fault."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from llamaops.checks.concurrency import every_request_is_answered, late_request_joins
from llamaops.checks.features import context_is_real
from llamaops.checks.load_fit import prediction_agrees
from llamaops.checks.registry import Verdict
from llamaops.errors import NotKnownError
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.version_text import unknown_version
from llamaops.probes.age import is_early, is_of_2024
from llamaops.probes.concurrency import LateArrival
from llamaops.probes.features import ContextAnswer
from llamaops.probes.health import HealthAnswer
from llamaops.probes.models import ModelsAnswer
from llamaops.probes.server import ServerFacts
from llamaops.schema.fact import Known, Source
from tests.fakes.fact_groups import binary_facts, gguf_facts
from tests.fakes.server_facts import MODEL, PROPS, STREAM, changed, known, server, unknown
from tests.unit.checks import test_concurrency, test_features, test_fit, test_load, test_server
from tests.unit.checks.test_server import run
from tests.unit.facts.load_logs import YEAR_2024, parsed, read

COUNTS = known(HealthAnswer(status="ok", counts_slots=True))
OLD_PROPS = changed(PROPS, build_info=None)
OLD_STREAM = changed(STREAM, ended="closed", usage=None, ids=("chatcmpl-1", "chatcmpl-2"))
SMOLLM2_PARAMETERS, EMBEDDING = 134515008, 49152 * 576


def early(**facts: Any) -> ServerFacts:
    return server(**{"health": COUNTS, "props": OLD_PROPS, **facts})


@pytest.mark.parametrize(
    ("health", "props", "expected"),
    [
        (COUNTS, OLD_PROPS, True),
        (COUNTS, known(PROPS), False),  # a build that names itself is not so old
        (known(HealthAnswer(status="ok")), OLD_PROPS, False),
    ],
)
def test_early_is_said_by_two_answers(health: Any, props: Any, expected: bool) -> None:
    assert is_early(server(health=health, props=props)) is expected


def test_a_stream_of_early_2024_is_whole_with_its_finish_reason() -> None:
    found = run("stream-is-complete", early(chat_stream=OLD_STREAM))
    assert found is not None
    assert found.status == "passed"
    assert "no terminal marker [DONE], no usage" in found.summary
    assert "absent in this build" in found.summary


@pytest.mark.parametrize("change", [{"finish_reason": None}, {"ended": "cut"}, {"pieces": 0}])
def test_a_stream_of_early_2024_that_is_cut_is_a_fault_all_the_same(change: dict[str, Any]) -> None:
    stream = known(replace(OLD_STREAM.value, **change))
    found = run("stream-is-complete", early(chat_stream=stream))
    assert found is not None
    assert found.status == "failed"


def test_the_same_stream_of_a_build_of_today_is_a_fault() -> None:
    found = run("stream-is-complete", server(chat_stream=OLD_STREAM))
    assert found is not None
    assert found.status == "failed"


@pytest.mark.parametrize(("grown", "status"), [(36 + 30, "passed"), (36 + 60, "failed"), (30, "failed")])
def test_counters_leave_room_for_a_stream_without_usage(grown: int, status: str) -> None:
    after = known(replace(server().metrics.need(), counters={"tokens_predicted_total": 100.0 + grown}))
    found = run(
        "counters-agree",
        early(chat_stream=OLD_STREAM, metrics_after=after),
        replace(test_server.ASKED, via="server"),
    )
    assert found is not None
    assert found.status == status, found.summary


@pytest.mark.parametrize(
    ("facts", "more", "status"),
    [(early, EMBEDDING, "passed"), (server, EMBEDDING, "failed"), (early, EMBEDDING + 1, "failed")],
)
def test_an_embedding_that_is_counted_twice(facts: Any, more: int, status: str) -> None:
    listed = replace(MODEL, parameter_count=SMOLLM2_PARAMETERS + more, tensor_bytes=126657792)
    header = gguf_facts(
        vocabulary_size=49152, embedding_length=576, context_length_tokens=8192,
        parameter_count=SMOLLM2_PARAMETERS, tensor_bytes=96576768,
    )  # fmt: skip
    assert GgufFacts in header
    found = run("model-agrees-with-header", facts(models=known(ModelsAnswer(models=(listed,)))), more=header)
    assert found is not None
    assert found.status == status, found.summary


def test_a_build_that_names_itself_nowhere_is_not_asked_for_its_name() -> None:
    (binary,) = binary_facts(build=1, commit="c2101a2").values()
    assert isinstance(binary, BinaryFacts)
    nameless = replace(binary, version=unknown_version("unsupported", "usage text", known(1).source))
    assert run("build-agrees-with-binary", early(), more={BinaryFacts: nameless}) is None
    assert run("build-agrees-with-binary", early(), more={BinaryFacts: binary}) is None
    newer = run("build-agrees-with-binary", server(props=OLD_PROPS), more={BinaryFacts: binary})
    assert newer is not None
    assert newer.status == "unknown"


def test_a_build_of_summer_2024_is_known_by_the_state_of_its_slots() -> None:
    by_state = known(replace(server().slots.need(), by_state=True))
    assert is_of_2024(server(slots=by_state, props=OLD_PROPS))
    assert not is_of_2024(server(slots=by_state))
    assert not is_of_2024(server(props=OLD_PROPS))
    stream = changed(STREAM, ended="closed")
    found = run("stream-is-complete", server(slots=by_state, props=OLD_PROPS, chat_stream=stream))
    assert found is not None
    assert found.status == "passed"
    assert "no terminal marker [DONE] (absent in this build" in found.summary


def test_a_server_whose_slots_are_all_busy_is_healthy() -> None:
    found = run(
        "is-healthy", early(health=known(HealthAnswer(status="no slot available", counts_slots=True)))
    )
    assert found is not None
    assert found.status == "passed"


def test_pieces_with_ids_of_their_own_are_a_fault_since_september_2024() -> None:
    several = test_concurrency.facts(*(test_concurrency.request(n, ids=9) for n in (1, 2, 3, 4)))
    old, new = every_request_is_answered(several, early()), every_request_is_answered(several, server())
    assert isinstance(old, Verdict)
    assert isinstance(new, Verdict)
    assert (old.holds, new.holds) == (True, False)
    assert "different ids" in new.summary


def test_a_late_request_with_such_ids_is_still_seen_to_join() -> None:
    late = LateArrival(
        running=test_concurrency.request(1, ids=9), late=test_concurrency.request(2, 0.2, ids=9), samples=(),
        pieces_before=5, pieces_after=15, pieces_meanwhile=19, had_time=True, in_lumps=False,
    )  # fmt: skip
    found = late_request_joins(test_concurrency.facts(late=late), early())
    assert isinstance(found, Verdict)
    assert found.holds
    with pytest.raises(NotKnownError, match="different ids"):
        late_request_joins(test_concurrency.facts(late=late), server())


@pytest.mark.parametrize(("truncated", "holds"), [(True, True), (False, False), (None, False)])
def test_a_prompt_that_is_cut_has_to_be_said_to_be_cut(truncated: bool | None, holds: bool) -> None:
    works = test_features.answer("works", 200)
    seen = ContextAnswer(
        context_tokens=512, under_tokens=508, under=works, under_evaluated=508, over_tokens=512, over=works,
        over_state="works", over_truncated=truncated,
    )  # fmt: skip
    found = context_is_real(test_features.facts(context=known(seen)))
    assert isinstance(found, Verdict)
    assert found.holds is holds


def test_the_prediction_is_not_held_against_a_build_of_another_age() -> None:
    old = replace(test_fit.load(kv=100, compute=90), era=known("2025"))
    with pytest.raises(NotKnownError, match=r"an older one: KV cache .* predicted"):
        prediction_agrees(test_fit.fit(), old)


def test_a_log_that_is_held_back_does_not_make_the_load_unknown() -> None:
    health = Source(kind="http", name="GET http://127.0.0.1:8080/health")
    loaded = Known(value=True, source=health)
    gap = unknown("absent", "the load log does not say")
    quiet = replace(read("2024"), model_loaded=loaded, n_slots=gap, loaded_line=gap)
    for check in (test_load.SLOTS, test_load.ERRORS):
        assert test_load.status(check, quiet, replace(test_server.ASKED, via="server")) == "not applicable"
        silent = replace(quiet, model_loaded=gap)
        assert test_load.status(check, silent, replace(test_server.ASKED, via="server")) == "unknown"


@pytest.mark.parametrize(
    "last", ["terminate called without an active exception", "GGML_ASSERT(n < 4) failed", "CUDA error: oops"]
)
def test_what_breaks_down_later_was_loaded_all_the_same(last: str) -> None:
    assert test_load.status(test_load.LOADED, parsed(f"{YEAR_2024}\n{last}\n")) == "passed"
    failed = YEAR_2024.replace("model loaded", "nothing of the kind")
    assert test_load.status(test_load.LOADED, parsed(f"{failed}\n{last}\n")) == "failed"
