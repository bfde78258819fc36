"""Text is judged, not exit statuses; what was not generated is not a pass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks.generation import (
    chat_text_is_usable,
    ends_by_itself,
    raw_text_is_usable,
    token_limit_is_honoured,
)
from llamaops.checks.registry import NotApplicable, Verdict, all_checks, run_check
from llamaops.facts.generation import Generation, GenerationFacts
from llamaops.schema.fact import Source, Unknown, known

SOURCE = Source(kind="command", name="llama-completion", evidence="ev-000000000001")
ABSENT = Unknown(why="absent", detail="the log has no such line", source=SOURCE)


def generation(**changes: Any) -> Generation:
    values: dict[str, Any] = {
        "path": "raw",
        "via": "completion",
        "request": "llama-completion -m m.gguf",
        "prompt": known("p", SOURCE),
        "text": known("a usable text", SOURCE),
        "text_characters": known(13, SOURCE),
        "reasoning_characters": known(0, SOURCE),
        "problem": known("", SOURCE),
        "prompt_tokens": known(5, SOURCE),
        "generated_tokens": known(16, SOURCE),
        "prompt_processing_per_s": ABSENT,
        "token_generation_per_s": ABSENT,
        "finish": ABSENT,
        "end": known("exit status 0", SOURCE),
        "elapsed_s": known(1.0, SOURCE),
    }
    return Generation(**{**values, **changes})


def facts(**changes: Any) -> GenerationFacts:
    values: dict[str, Any] = {
        "max_tokens": 16,
        "seed": 42,
        "temperature": 0.0,
        "chosen_via": "completion",
        "has_chat_template": known(False, SOURCE),
        "raw": generation(),
    }
    return GenerationFacts(**{**values, **changes})


def verdict(found: Verdict | NotApplicable) -> Verdict:
    assert isinstance(found, Verdict)
    return found


def test_usable_text_passes_and_points_to_its_evidence() -> None:
    found = verdict(raw_text_is_usable(facts()))
    assert found.holds
    assert found.evidence == ("ev-000000000001", "ev-000000000001")


@pytest.mark.parametrize("problem", ["empty", "whitespace", "repeated", "replacement", "echo", "control"])
def test_each_known_fault_fails_and_is_named(problem: str) -> None:
    found = verdict(raw_text_is_usable(facts(raw=generation(problem=known(problem, SOURCE)))))
    assert not found.holds
    assert found.remedy is None or found.summary
    assert (problem == "empty") is ("no text at all" in found.summary)


def test_a_model_without_template_needs_no_chat() -> None:
    assert isinstance(chat_text_is_usable(facts()), NotApplicable)


def test_a_template_whose_path_was_not_tried_is_unknown_not_passed() -> None:
    untested = facts(has_chat_template=known(True, SOURCE), chat_not_attempted="no server is installed")
    check = next(one for one in all_checks(["generation"]) if one.id == "generation.chat-text-is-usable")
    finding = run_check(check, {GenerationFacts: untested})
    assert finding is not None
    assert (finding.status, finding.why, finding.summary) == (
        "unknown",
        "not_attempted",
        "no server is installed",
    )


def test_a_chat_answer_is_judged_like_any_text() -> None:
    chat = generation(path="chat", via="server", problem=known("echo", SOURCE))
    assert not verdict(chat_text_is_usable(facts(has_chat_template=known(True, SOURCE), chat=chat))).holds


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"end": known("HTTP 200", SOURCE)}, True),
        ({"end": known("exit status 1", SOURCE)}, False),
        ({"end": known("ended by SIGSEGV", SOURCE)}, False),
        ({"end": known("HTTP 200, with an error object in the body", SOURCE)}, False),
        ({"stopped_at_bound": True}, False),
    ],
)
def test_it_has_to_end_by_itself_and_well(changes: dict[str, Any], holds: bool) -> None:
    assert verdict(ends_by_itself(facts(raw=generation(**changes)))).holds is holds


@pytest.mark.parametrize(("count", "holds"), [(1, True), (16, True), (17, False), (0, False)])
def test_the_token_limit(count: int, holds: bool) -> None:
    raw = generation(generated_tokens=known(count, SOURCE))
    assert verdict(token_limit_is_honoured(facts(raw=raw))).holds is holds


@pytest.mark.parametrize("name", ["generation.ends-by-itself", "generation.token-limit-is-honoured"])
def test_without_a_generation_nothing_is_judged(name: str) -> None:
    check = next(one for one in all_checks(["generation"]) if one.id == name)
    assert run_check(check, {GenerationFacts: facts(raw=None)}) is None


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("generation.raw-text-is-usable", "problem"),
        ("generation.ends-by-itself", "end"),
        ("generation.token-limit-is-honoured", "generated_tokens"),
    ],
)
def test_what_is_unknown_stays_unknown(name: str, field: str) -> None:
    check = next(one for one in all_checks(["generation"]) if one.id == name)
    raw = msgspec.structs.replace(generation(), **{field: ABSENT})
    finding = run_check(check, {GenerationFacts: facts(raw=raw)})
    assert finding is not None
    assert (finding.status, finding.why) == ("unknown", "absent")
