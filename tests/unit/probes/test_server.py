"""Probes are asked in order, within one budget, and stop where asking is pointless."""

from __future__ import annotations

from typing import Any

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.probes.endpoint import EndpointAnswer
from llamaops.probes.registry import all_probes
from llamaops.probes.selection import select
from llamaops.probes.server import Preparation, ServerFacts, collect_server
from llamaops.schema.fact import Known, Unknown
from tests.fakes.http_client import Answer, FakeClient, answered, failed, recorded, recorded_stream

CHAT = "POST /v1/chat/completions"
ASKED = AskedFacts(alias="smol")


def honest(changes: dict[str, Any] | None = None, build: str = "b10434") -> dict[str, Any]:
    answers: dict[str, Any] = {
        "GET /health": recorded(build, "health_ok"),
        "GET /v1/models": recorded(build, "models"),
        "GET /props": recorded(build, "props"),
        "GET /metrics": recorded(build, "metrics_used"),
        "GET /slots": recorded(build, "slots_used"),
        "POST /tokenize": recorded(build, "tokenize"),
        CHAT: recorded(build, "chat"),
        f"{CHAT} stream": recorded_stream(build, "chat_stream_usage"),
        "POST /v1/embeddings": recorded(build, "embeddings_501"),
        "POST /v1/rerank": answered(
            {"error": {"code": 501, "message": "off", "type": "not_supported_error"}}, 501
        ),
    }
    return {**answers, **(changes or {})}


def collect(
    answers: dict[str, Any], asked: AskedFacts = ASKED, **options: Any
) -> tuple[ServerFacts, FakeClient]:
    fake = FakeClient(answers, has_key=asked.api_key)
    return collect_server(fake.client, asked, **options), fake


def outcome(server: ServerFacts, probe: str) -> EndpointAnswer:
    fact = server.outcome(probe)
    assert isinstance(fact, Known)
    return fact.value


@pytest.mark.parametrize("build", ["b10434", "b11669"])
def test_an_honest_server_answers_everything_in_order(build: str) -> None:
    server, fake = collect(honest(build=build))
    assert {answer.state for answer in server.endpoints} == {"works"}
    assert [answer.probe for answer in server.endpoints] == [
        "health", "models", "props", "metrics", "tokenize", "chat", "tokenize-answer", "chat-other",
        "chat-stream", "tokenize-answer", "slots", "metrics-after", "health-after",
    ]  # fmt: skip  # the recorded stream has another text than the recorded answer: it is counted too
    for name in ("health", "models", "props", "metrics", "slots", "chat", "chat_other", "chat_stream"):
        assert isinstance(getattr(server, name), Known), name
    assert isinstance(server.chat, Known)
    assert server.chat.value.counted_tokens == 2
    assert server.chat.source.evidence in fake.kept
    assert isinstance(server.without_key, Unknown)
    assert server.without_key.why == "not_attempted"


def test_the_request_is_bounded_greedy_seeded_and_uses_the_listed_name() -> None:
    bodies: list[dict[str, object]] = []

    def chat(body: object) -> Answer:
        assert isinstance(body, dict)
        bodies.append(body)
        return recorded("b10434", "chat")

    collect(honest({CHAT: chat}), max_tokens=32)
    assert [body["max_tokens"] for body in bodies] == [32, 16]
    assert bodies[0]["messages"] != bodies[1]["messages"]
    for body in bodies:
        assert body["model"] == "smol"
        assert (body["temperature"], body["cache_prompt"], body["stream"]) == (0, False, False)
        assert body["seed"] == 1


def test_a_server_that_still_loads_is_asked_nothing_else() -> None:
    server, fake = collect({"GET /health": recorded("b10434", "health_loading")})
    assert outcome(server, "health").state == "loading"
    assert isinstance(server.chat, Unknown)
    assert server.chat.why == "not_attempted"
    assert "loaded" in server.chat.detail
    assert fake.sent == ["GET /health", "GET /health"]


@pytest.mark.parametrize("kind", ["refused", "timed_out", "dns"])
def test_nobody_there_is_asked_once_and_once_more_at_the_end(kind: str) -> None:
    server, fake = collect({"GET /health": failed(kind)})
    assert len(fake.sent) == 2
    assert isinstance(server.health, Unknown)
    assert server.health.why == ("timed_out" if kind == "timed_out" else "failed")


def test_a_missing_health_does_not_stop_the_rest() -> None:
    server, _fake = collect(honest({"GET /health": recorded("b10434", "api_tags")}))
    assert outcome(server, "health").state == "absent"
    assert isinstance(server.chat, Known)


def test_after_a_request_that_hangs_no_other_generation_is_asked() -> None:
    server, fake = collect(honest({CHAT: failed("timed_out")}))
    assert isinstance(server.chat, Unknown)
    assert server.chat.why == "timed_out"
    assert isinstance(server.chat_stream, Unknown)
    assert server.chat_stream.why == "not_attempted"
    assert fake.sent.count(CHAT) == 1
    assert isinstance(server.health_after, Known)


def test_the_budget_ends_the_questions() -> None:
    slow = recorded("b10434", "chat")
    slow = type(slow)(slow.status, slow.headers, slow.body, 30.0, None)
    server, _fake = collect(honest({CHAT: slow}), total_s=20.0)
    assert isinstance(server.chat, Known)
    for fact in (server.chat_other, server.chat_stream, server.slots, server.health_after):
        assert isinstance(fact, Unknown)
        assert fact.why == "not_attempted"
        assert "used up" in fact.detail


def test_a_router_is_asked_for_a_loaded_model_and_loads_none() -> None:
    query = "?model=SmolLM2-A&autoload=false"
    answers = honest(
        {
            "GET /v1/models": recorded("b10434", "router_models_loaded"),
            "GET /props": recorded("b10434", "router_props"),
            f"GET /props{query}": recorded("b10434", "props"),
            f"GET /metrics{query}": recorded("b10434", "metrics_used"),
            f"GET /slots{query}": recorded("b10434", "slots_used"),
        }
    )
    server, _fake = collect(answers, AskedFacts())
    assert isinstance(server.request_model, Known)
    assert server.request_model.value == "SmolLM2-A"


def test_a_router_without_a_loaded_model_is_not_made_to_load_one() -> None:
    answers = honest(
        {
            "GET /v1/models": recorded("b10434", "router_models"),
            "GET /props": recorded("b10434", "router_props"),
            "GET /metrics": recorded("b10434", "router_slots_nomodel"),
        }
    )
    server, fake = collect(answers, AskedFacts())
    assert CHAT not in fake.sent
    assert isinstance(server.chat, Unknown)
    assert server.chat.why == "not_attempted"
    assert "router" in server.chat.detail


def test_a_model_that_was_named_is_the_one_asked() -> None:
    server, _fake = collect(honest(), prepare=Preparation(model="other"))
    assert isinstance(server.request_model, Known)
    assert server.request_model.value == "other"


def test_with_a_key_the_same_questions_are_asked_without_and_with_a_wrong_one() -> None:
    refused = recorded("b10434", "key_props")
    guarded = {f"GET {path}{key}": refused for path in ("/props", "/slots") for key in (" none", " wrong")}
    answers = honest(
        {
            **guarded,
            "GET /health none": recorded("b10434", "health_ok"),
            "GET /v1/models none": recorded("b10434", "key_models"),
            f"{CHAT} none": recorded("b10434", "key_chat"),
            f"{CHAT} wrong": refused,
        },
    )
    server, _fake = collect(answers, AskedFacts(api_key=True))
    assert isinstance(server.without_key, Known)
    states = {(answer.request, answer.key): answer.state for answer in server.without_key.value}
    assert (
        states["GET /props", "wrong"] == states[CHAT, "none"] == states["GET /slots", "none"] == "needs_key"
    )
    assert states["GET /v1/models", "none"] == "works"  # so it is in this build


def test_without_the_key_that_a_server_needs_everything_is_unknown_and_says_what_to_do() -> None:
    refused = recorded("b11669", "key_props")
    names = ["GET /v1/models", "GET /props", "GET /metrics", "GET /slots", "POST /tokenize", CHAT]
    answers = {**honest(), **dict.fromkeys(names, refused)}
    answers[f"{CHAT} stream"] = failed("reset", 401)
    server, _fake = collect(answers, AskedFacts())
    assert isinstance(server.chat, Unknown)
    assert server.chat.why == "refused"
    assert "LLAMAOPS_API_KEY" in server.chat.detail
    assert isinstance(server.props, Unknown)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("nometrics_metrics", "switched_off"),
        ("api_tags", "absent"),
        ("key_props", "needs_key"),
        ("router_slots_nomodel", "refuses"),
        ("health_loading", "loading"),
        ("err_badjson", "broken"),
    ],
)
def test_every_status_of_a_real_build_is_a_fact(name: str, state: str) -> None:
    server, _fake = collect(honest({"GET /metrics": recorded("b10434", name)}))
    assert outcome(server, "metrics").state == state
    assert isinstance(server.metrics, Unknown)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (answered("", 302), "broken"),
        (answered("<html>"), "broken"),
        (answered({"error": "no"}), "broken"),
        (answered({"error": {"type": "feature_disabled", "message": "off"}}, 403), "switched_off"),
        (answered("", 403), "needs_key"),
        (answered("", 405), "absent"),
        (answered("", 429), "refuses"),
        (answered({"status": "loading model"}, 503), "loading"),
        (answered({"error": {"message": "no slot available"}}, 503), "refuses"),
        (answered("", 502), "broken"),
        (failed("too_large", 200), "broken"),
        (failed("bad_response"), "broken"),
        (failed("reset"), "broken"),
        (failed("refused"), "unreachable"),
        (failed("timed_out"), "no_answer"),
    ],
)
def test_every_other_ending_is_a_fact_too(answer: Answer, state: str) -> None:
    server, _fake = collect(honest({CHAT: answer}))
    assert outcome(server, "chat").state == state
    assert isinstance(server.chat, Unknown)


def test_where_chat_is_switched_off_embeddings_are_asked() -> None:
    off = recorded("b10434", "embeddings_501")
    vectors = {"data": [{"embedding": v} for v in ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0])]}
    server, fake = collect(honest({CHAT: off, "POST /v1/embeddings": answered(vectors)}))
    assert outcome(server, "chat").state == "switched_off"
    assert isinstance(server.embeddings, Known)
    assert f"{CHAT} stream" not in fake.sent


def test_every_probe_says_what_it_sends_proves_and_does_not_prove() -> None:
    probes = all_probes()
    assert {probe.id for probe in probes} >= {
        "auth", "chat", "chat-other", "chat-stream", "concurrency", "context", "disconnect", "embeddings",
        "errors", "exposure", "health", "late-request", "metrics", "models", "props", "reasoning", "slots",
        "structured", "surface", "tokenize", "tools",
    }  # fmt: skip
    assert all(p.sends and p.proves and p.does_not_prove and p.tokens and p.seconds for p in probes)


def test_what_is_left_out_is_not_asked_and_no_check_is_judged_by_it() -> None:
    server, fake = collect(honest(), selection=select("basic", [], ["chat-stream,slots", "metrics"]))
    assert f"{CHAT} stream" not in fake.sent
    assert not {"GET /slots", "GET /metrics"} & set(fake.sent)
    for fact in (server.chat_stream, server.slots, server.metrics, server.metrics_after):
        assert isinstance(fact, Unknown)
        assert fact.why == "not_selected"
    skipped = server.outcome("chat-stream")
    assert isinstance(skipped, Unknown)
    assert skipped.why == "not_selected"
    groups: dict[type, object] = {ServerFacts: server, AskedFacts: ASKED}
    checks = [c for c in all_checks(("server",)) if set(c.inputs().values()) <= set(groups)]
    found = {item.check: item for item in (run_check(check, groups) for check in checks) if item is not None}
    assert found["server.stream-is-complete"].status == "not_run"
    assert found["server.chat-answers"].status == "passed"
    assert "unknown" not in {item.status for item in found.values()}
