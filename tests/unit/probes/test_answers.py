"""Answers of two real builds, and of older ones, become the same facts."""

from __future__ import annotations

import json

import pytest

from llamaops.errors import ParseError
from llamaops.probes.chat import PROMPT, parse_chat
from llamaops.probes.chat_stream import parse_stream
from llamaops.probes.embeddings import parse_embeddings
from llamaops.probes.endpoint import meaning_of
from llamaops.probes.features import parse_tool_stream
from llamaops.probes.health import parse_health
from llamaops.probes.metrics import parse_metrics
from llamaops.probes.models import parse_models
from llamaops.probes.props import parse_props
from llamaops.probes.rerank import parse_rerank
from llamaops.probes.slots import clean_slots, parse_slots
from llamaops.probes.tokenize import parse_token_count
from tests.fakes.http_client import answered, recorded, recorded_stream, stream

BUILDS = ("b10434", "b11669")
both_builds = pytest.mark.parametrize("build", BUILDS)


def body(build: str, name: str) -> bytes:
    return recorded(build, name).body


@both_builds
def test_models_gives_names_and_figures(build: str) -> None:
    (model,) = parse_models(body(build, "models")).models
    assert model.id == "smol"
    assert model.names == {"smol", "smol-b"}
    assert (model.vocabulary_size, model.embedding_length, model.trained_context_tokens) == (49152, 576, 8192)
    assert (model.parameter_count, model.tensor_bytes) == (134515008, 96576768)
    assert model.slot_context_tokens == 512


@both_builds
def test_models_of_a_router_have_states(build: str) -> None:
    models = parse_models(body(build, "router_models_loaded")).models
    assert {model.state for model in models} == {"loaded", "unloaded"}
    loaded = next(model for model in models if model.state == "loaded")
    assert loaded.embedding_length == 576


def test_models_of_2024_have_null_meta_while_loading_and_of_ollama_only_names() -> None:
    early = {"object": "list", "data": [{"id": "m.gguf", "object": "model", "meta": None}]}
    assert parse_models(json.dumps(early).encode()).models[0].embedding_length is None
    other = {"models": [{"name": "llama3", "model": "llama3:latest"}]}
    assert parse_models(json.dumps(other).encode()).models[0].id == "llama3:latest"


@pytest.mark.parametrize(
    "text",
    ["<html>", "[]", "{}", '{"data": {}}', '{"data": [7]}', '{"data": [{"id": 7}]}', '{"data": [{}]}',
     '{"data": [{"id": "a", "meta": {"n_vocab": "many"}}]}',
     '{"data": [{"id": "a", "meta": {"n_embd": true}}]}',
     '{"data": [{"id": "a", "meta": {"size": 1e400}}]}', '{"data": [{"id": "a", "aliases": [1]}]}'],
)  # fmt: skip
def test_models_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_models(text.encode())


@both_builds
def test_props_gives_build_slots_and_context(build: str) -> None:
    props = parse_props(body(build, "props"))
    assert props.total_slots == 2
    assert props.slot_context_tokens == 512
    assert props.model_alias == "smol"
    assert props.build_info == {"b10434": "b1-7e4c0a9", "b11669": "b11669-Debian"}[build]
    assert props.chat_template_characters
    assert not props.is_router


@both_builds
def test_props_of_a_router_says_so(build: str) -> None:
    props = parse_props(body(build, "router_props"))
    assert props.is_router
    assert props.slot_context_tokens == 0


def test_props_of_2024_holds_the_context_in_the_slot_object_or_outside_of_it() -> None:
    early = {"system_prompt": "", "default_generation_settings": {"n_ctx": 2048, "id": 0}, "total_slots": 1}
    assert parse_props(json.dumps(early).encode()).slot_context_tokens == 2048
    outside = {"total_slots": 1, "n_ctx": 1024}
    assert parse_props(json.dumps(outside).encode()).slot_context_tokens == 1024


def test_props_of_another_program_is_refused() -> None:
    with pytest.raises(ParseError):
        parse_props(b'{"status": "ok"}')


@both_builds
@pytest.mark.parametrize(
    ("name", "busy"), [("slots_fresh", False), ("slots_used", False), ("slots_busy", True)]
)
def test_slots_in_every_state(build: str, name: str, busy: bool) -> None:
    slots = parse_slots(clean_slots(body(build, name))).slots
    assert len(slots) == 2
    assert all(slot.context_tokens == 512 for slot in slots)
    assert any(slot.is_processing for slot in slots) is busy
    assert any(slot.decoded_tokens for slot in slots) is busy


def test_slots_of_2024_have_a_state_and_an_object_for_the_next_token() -> None:
    early = [{"id": 0, "state": 1, "n_ctx": 512, "prompt": "secret words", "next_token": {"n_decoded": 9}}]
    (slot,) = parse_slots(clean_slots(json.dumps(early).encode())).slots
    assert slot.is_processing
    assert slot.decoded_tokens == 9


def test_slots_lose_everything_that_can_hold_text() -> None:
    told = "the words of somebody else"
    slot = {
        "id": 0, "n_ctx": told, "prompt": told, "generated": told, "message": told, "state": told,
        "params": {"stop": [told], "grammar": told}, "next_token": [{"text": told, "n_decoded": 1}],
        "id_task": [[[[[told]]]]],
    }  # fmt: skip
    for value in (
        [slot],
        slot,
        {"slots": [slot]},
        {"error": {"message": told * 100, "x": told}},
        told,
        [told],
    ):
        cleaned = clean_slots(json.dumps(value).encode()).decode()
        assert told * 10 not in cleaned
        assert cleaned.count(told) <= (8 if isinstance(value, dict) and "error" in value else 0)
    assert told not in clean_slots(f"{told} (not JSON)".encode()).decode()


@both_builds
def test_metrics_gives_counters_and_no_gauge(build: str) -> None:
    counters = parse_metrics(body(build, "metrics_used")).counters
    assert counters["tokens_predicted_total"] > 0
    assert "requests_processing" not in counters
    assert "predicted_tokens_seconds" not in counters


@pytest.mark.parametrize(
    "text", ["", "<html>", "# TYPE a counter\na", "# TYPE a counter\na NaN", "# TYPE a counter\na -1"]
)
def test_metrics_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_metrics(text.encode())


@both_builds
def test_tokenize_counts_with_and_without_pieces(build: str) -> None:
    assert parse_token_count(body(build, "tokenize")) == 2
    assert parse_token_count(body(build, "tokenize_special")) == 5


@both_builds
def test_health_is_ok(build: str) -> None:
    assert parse_health(body(build, "health_ok")).status == "ok"


@pytest.mark.parametrize("text", ["<html>", "{}", '{"status": 1}', '{"status": "degraded"}', "[]"])
def test_health_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_health(text.encode())


@both_builds
def test_chat_gives_text_reason_and_usage(build: str) -> None:
    chat = parse_chat(body(build, "chat"), prompt="Say hello.", max_tokens=8)
    assert chat.text
    assert chat.problem is None
    assert chat.finish_reason == "length"
    assert chat.usage is not None
    assert chat.usage.completion_tokens == 8
    assert chat.model == "smol"
    assert chat.content == "valued"
    assert chat.reasoning == "absent"


@both_builds
def test_chat_of_a_reasoning_model_is_judged_by_its_reasoning_whose_text_is_not_kept(build: str) -> None:
    chat = parse_chat(body(build, "reasoning_chat"), prompt="What is 2+2?", max_tokens=12)
    assert chat.content == "empty"
    assert chat.reasoning == "valued"
    assert chat.reasoning_characters > 5
    assert chat.problem is None
    assert chat.text == ""


@pytest.mark.parametrize(
    "text",
    ["{}", '{"choices": []}', '{"choices": {}}', '{"choices": [{}]}',
     '{"choices": [{"message": {"content": 7}}]}',
     '{"choices": [{"message": {}, "finish_reason": 7}]}', '{"choices": [{"message": {}}], "usage": 7}',
     '{"choices": [{"message": {}}], "usage": {"completion_tokens": "9"}}', '{"choices": [{"message": []}]}'],
)  # fmt: skip
def test_chat_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_chat(text.encode(), prompt=PROMPT, max_tokens=8)


@both_builds
def test_a_stream_with_usage_has_every_part(build: str) -> None:
    seen = parse_stream(recorded_stream(build, "chat_stream_usage"), prompt=PROMPT, max_tokens=4)
    assert seen.ended == "done"
    assert seen.role == "assistant"
    assert seen.first_content == "null"
    assert seen.last_content == "absent"
    assert seen.finish_reason == "length"
    assert seen.usage is not None
    assert seen.usage.completion_tokens == 4
    assert seen.usage_choices_empty is True
    assert seen.pieces == seen.lumps == 4
    assert seen.first_token_s == pytest.approx(0.11)
    assert seen.inter_piece_median_s == pytest.approx(0.01)
    assert seen.spread_s == pytest.approx(0.03)
    assert len(seen.ids) == 1
    assert seen.unreadable == 0


@both_builds
def test_a_stream_without_usage_and_one_of_reasoning(build: str) -> None:
    assert parse_stream(recorded_stream(build, "chat_stream"), prompt=PROMPT, max_tokens=4).usage is None
    reasoning = parse_stream(recorded_stream(build, "reasoning_chat_stream"), prompt=PROMPT, max_tokens=4)
    assert reasoning.text == ""
    assert reasoning.reasoning_characters
    assert reasoning.pieces
    assert reasoning.problem is None


def test_a_stream_that_arrives_at_once_is_one_lump() -> None:
    seen = parse_stream(recorded_stream("b10434", "chat_stream_usage", pace_s=0), prompt=PROMPT, max_tokens=4)
    assert seen.pieces == 4
    assert seen.lumps == 1
    assert seen.spread_s == 0


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"code":500,"message":"out of memory"}}\n\n',
        b'error: {"message":"out of memory"}\n\n',
    ],
)
def test_an_error_inside_a_stream_is_seen_in_both_forms(event: bytes) -> None:
    seen = parse_stream(stream(event), prompt=PROMPT, max_tokens=4)
    assert seen.error is not None
    assert "out of memory" in seen.error
    assert seen.ended == "closed"


def test_events_of_no_known_form_are_counted() -> None:
    data = b': ping\n\ndata: {"choices": 7}\n\ndata: {oops\n\ndata: []\n\n'
    data += b'data: {"choices":[{"delta":{"content":1}}]}\n\n'
    seen = parse_stream(stream(data), prompt=PROMPT, max_tokens=4)
    assert seen.unreadable == 4
    assert seen.comments == 1


def test_embeddings_are_compared_and_not_kept() -> None:
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    text = json.dumps({"data": [{"embedding": vector} for vector in vectors]})
    seen = parse_embeddings(text.encode())
    assert (seen.dimension, seen.smallest_norm) == (2, 1.0)
    assert (seen.equal_similarity, seen.different_similarity) == (1.0, 0.0)


@pytest.mark.parametrize(
    "vectors", [[], [[1.0]], [[1.0], [1.0], []], [[1.0], [1.0], ["1"]], [[1.0], [1.0], [1.0, 2.0]]]
)
def test_embeddings_of_another_form_are_refused(vectors: object) -> None:
    assert isinstance(vectors, list)
    text = json.dumps({"data": [{"embedding": vector} for vector in vectors]})
    with pytest.raises(ParseError):
        parse_embeddings(text.encode())


def test_ranks_of_two_documents() -> None:
    def ranked(*results: object) -> bytes:
        return json.dumps({"results": results}).encode()

    one, two = {"index": 1, "relevance_score": -2.5}, {"index": 0, "relevance_score": 8}
    seen = parse_rerank(ranked(one, two))
    assert (seen.relevant_score, seen.other_score) == (8.0, -2.5)
    for wrong in (
        ranked(one), ranked(one, one), ranked(one, two, two), ranked(one, {"index": 0}), b"{}",
        ranked(one, {"index": 0, "relevance_score": True}), ranked(one, {"index": 0, "relevance_score": "8"}),
        b'{"results": [{"index": 0, "relevance_score": NaN}, {"index": 1, "relevance_score": 1}]}',
    ):  # fmt: skip
        with pytest.raises(ParseError):
            parse_rerank(wrong)


def test_a_model_that_computes_no_text_is_switched_off_and_not_broken() -> None:
    message = "the current context does not logits computation. skipping"
    refused = answered({"error": {"code": 500, "message": message, "type": "server_error"}}, 500)
    assert meaning_of(refused)[0] == "switched_off"
    broken = answered({"error": {"code": 500, "message": "Compute error.", "type": "server_error"}}, 500)
    assert meaning_of(broken)[0] == "broken"


def test_the_pieces_of_a_call_are_put_together() -> None:
    def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
        item = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        return f"data: {json.dumps(item)}\n\n".encode()

    def part(**function: str) -> dict[str, object]:
        return {"tool_calls": [{"index": 0, "function": function}]}

    start = chunk({"role": "assistant", "content": None}) + chunk(part(name="get_weather", arguments=""))
    rest = chunk(part(arguments='{"city": ')) + chunk(part(arguments='"Paris"}')) + chunk({}, "tool_calls")
    seen = parse_tool_stream(stream(start + rest + b"data: [DONE]\n\n").events)
    assert (seen.fault, seen.calls, seen.pieces, seen.finish_reason) == ("", 1, 3, "tool_calls")
    assert seen.first_chunk["tool_calls"] == "absent"
    assert "[DONE]" in parse_tool_stream(stream(start + rest).events).fault
    cut = start + chunk(part(arguments='{"city": ')) + chunk({}, "tool_calls") + b"data: [DONE]\n\n"
    assert "arguments" in parse_tool_stream(stream(cut).events).fault
    dropped = chunk({"content": "It rains."}) + chunk({}, "stop") + b"data: [DONE]\n\n"
    assert "no call" in parse_tool_stream(stream(dropped).events).fault
    failed_stream = b'data: {"error": {"message": "Compute error."}}\n\n'
    assert parse_tool_stream(stream(failed_stream).events).fault == "Compute error."
