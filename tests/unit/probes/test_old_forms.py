"""What builds of March 2024 and August 2025 answered, as recorded, is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamaops.facts.load_log import parse_load_log
from llamaops.facts.version_text import parse_version
from llamaops.probes.chat import parse_chat
from llamaops.probes.chat_stream import read_events
from llamaops.probes.features import _truncated
from llamaops.probes.health import parse_health
from llamaops.probes.metrics import parse_metrics
from llamaops.probes.models import parse_models
from llamaops.probes.props import parse_props
from llamaops.probes.slots import clean_slots, parse_slots
from llamaops.schema.fact import Known, Source
from llamaops.system.sse import SseEvent

FOLDER = Path(__file__).parents[2] / "data" / "engines"
SOURCE = Source(kind="command", name="server")
OLD, LATER = "2024-03", "2025-08"


def answers(build: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / build / "answers.json").read_text(encoding="utf-8"))
    return found


def body(build: str, name: str) -> bytes:
    return str(answers(build)[name]["body"]).encode()


def test_health_counts_slots_in_march_2024_only() -> None:
    assert parse_health(body(OLD, "health")).counts_slots
    assert not parse_health(body(LATER, "health")).counts_slots


def test_slots_of_march_2024_have_a_state_and_their_texts_are_dropped() -> None:
    found = parse_slots(body(OLD, "slots"))
    assert [(slot.id, slot.context_tokens, slot.is_processing) for slot in found.slots] == [
        (0, 512, False),
        (1, 512, False),
    ]
    kept = clean_slots(body(OLD, "slots"))
    assert b"samplers" not in kept
    assert b"prompt" not in kept
    assert parse_slots(kept) == found


def test_props_name_no_build_in_march_2024() -> None:
    found = parse_props(body(OLD, "props"))
    assert (found.build_info, found.total_slots, found.slot_context_tokens) == (None, 2, 512)
    assert parse_props(body(LATER, "props")).build_info == "b1-4227c9b"


@pytest.mark.parametrize(("build", "parameters"), [(OLD, 162826560), (LATER, 134515008)])
def test_models_are_listed_with_their_figures(build: str, parameters: int) -> None:
    (model,) = parse_models(body(build, "models")).models
    assert (model.id, model.parameter_count, model.embedding_length) == ("ours", parameters, 576)


@pytest.mark.parametrize("build", [OLD, LATER])
def test_a_chat_answer_and_the_counters_are_read(build: str) -> None:
    chat = parse_chat(body(build, "chat"), prompt="Name a colour.", max_tokens=5)
    assert chat.usage is not None
    assert chat.usage.completion_tokens == 5
    assert parse_metrics(body(build, "metrics")).counters["tokens_predicted_total"] >= 10


def test_a_stream_of_march_2024_has_no_end_marker_no_usage_and_many_ids() -> None:
    events = [
        SseEvent(name="", data=part.removeprefix("data: "), at_s=0.1 * n)
        for n, part in enumerate(body(OLD, "stream").decode().strip().split("\n\n"))
    ]
    found = read_events(events)
    assert (found.done, found.usage, found.finish) == (False, None, "length")
    assert len(set(found.ids)) == len(events) > 3


@pytest.mark.parametrize("build", [OLD, LATER])
def test_a_prompt_as_long_as_the_context_is_cut_and_said_to_be(build: str) -> None:
    class Answered:
        body = answers(build)["over-context"]["body"].encode()

    assert _truncated(Answered()) is True  # type: ignore[arg-type]  # only the body is read


def test_json_lines_of_march_2024_say_build_slots_and_that_the_model_is_loaded() -> None:
    text = (FOLDER / OLD / "server.log.stderr.txt").read_text() + (
        FOLDER / OLD / "server.log.stdout.txt"
    ).read_text()
    load = parse_load_log(text, SOURCE)
    shown = (load.form, load.era, load.build_commit, load.model_loaded, load.n_slots, load.n_ctx_slot)
    assert [fact.value for fact in shown if isinstance(fact, Known)] == [
        "json_lines_2024", "2024", "c2101a2", True, 2, 512,
    ]  # fmt: skip
    assert isinstance(load.kv_buffers, Known)
    assert len(load.requests) > 2


def test_the_log_of_august_2025_says_the_same_in_text() -> None:
    load = parse_load_log((FOLDER / LATER / "llama-server.log.stderr.txt").read_text(), SOURCE)
    shown = (load.era, load.build_commit, load.model_loaded, load.n_slots, load.n_ctx_slot)
    assert [fact.value for fact in shown if isinstance(fact, Known)] == ["2025", "4227c9b", True, 2, 512]


@pytest.mark.parametrize(("build", "program"), [(OLD, "main"), (LATER, "llama-server"), (LATER, "llama-cli")])
def test_programs_that_have_a_version_name_their_commit(build: str, program: str) -> None:
    text = (FOLDER / build / f"{program}.version.stderr.txt").read_text()
    commit = parse_version(text, SOURCE).commit
    assert isinstance(commit, Known)
    assert commit.value == {"2024-03": "c2101a2", "2025-08": "4227c9b"}[build]
