"""Reading what a generation gave: echo, lost output, and the fields of an answer."""

from __future__ import annotations

import pytest

from llamaops.operations.generate import Ask, ask_chat, ask_raw, lost_its_output, masked, strip_echo
from llamaops.schema.fact import Known, Source, Unknown, known
from llamaops.system.http import HttpClient
from llamaops.system.process import Exited, Signalled
from tests.fakes.http_client import Answer, FakeClient, answered, failed
from tests.fakes.system import completed
from tests.unit.checks.test_generation import generation

SOURCE = Source(kind="command", name="llama-completion")
OURS = Ask(prompt="Once upon a time", is_ours=True, max_tokens=8, seed=1, temperature=0.0, timeout_s=5)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Once upon a time there was", " there was"),
        (" Once upon a time", ""),
        ("there was", "there was"),
        ("", ""),
    ],
)
def test_the_echoed_prompt_is_taken_away(text: str, rest: str) -> None:
    assert strip_echo(text, "Once upon a time") == rest


@pytest.mark.parametrize(
    ("stdout", "end", "count", "lost"),
    [("", 0, 8, True), ("text", 0, 8, False), ("", 1, 8, False), ("", 0, 1, False), ("", -11, 8, False)],
)
def test_a_run_that_counted_tokens_and_printed_nothing_is_told(
    stdout: str, end: int, count: int, lost: bool
) -> None:
    done = completed(["llama-completion"], stdout=stdout, end=Exited(end) if end >= 0 else Signalled(-end))
    assert lost_its_output(generation(generated_tokens=known(count, SOURCE)), done) is lost


def test_without_a_count_nothing_is_called_lost() -> None:
    unknown = Unknown(why="absent", detail="no line", source=SOURCE)
    assert not lost_its_output(generation(generated_tokens=unknown), completed(["x"]))


def test_the_operators_own_prompt_is_masked_in_argv() -> None:
    mine = Ask(prompt="my secret", is_ours=False, max_tokens=8, seed=1, temperature=0.0, timeout_s=5)
    assert masked(("llama-completion", "-p", "my secret"), mine) == ("llama-completion", "-p", "<prompt>")
    assert masked(("llama-completion", "-p", OURS.prompt), OURS)[2] == OURS.prompt


def client(**answers: Answer) -> HttpClient:
    return FakeClient(answers={**answers}).client


CHAT = "POST /v1/chat/completions"


def chat(body: object, status: int = 200) -> HttpClient:
    return client(**{CHAT: answered(body, status)})


def good(content: object, **message: object) -> dict[str, object]:
    return {
        "choices": [
            {"finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"completion_tokens": 5},
        "timings": {"prompt_n": 9, "prompt_per_second": 50.0, "predicted_n": 5, "predicted_per_second": 10.0},
    }


def test_a_chat_answer_is_read_whole() -> None:
    found = ask_chat(chat(good("Red, green and blue.")), OURS)
    assert (found.path, found.via, found.end.need(), found.finish.need()) == (
        "chat",
        "server",
        "HTTP 200",
        "stop",
    )
    assert found.text.need() == "Red, green and blue."
    assert found.problem.need() == ""
    assert (found.prompt_tokens.need(), found.generated_tokens.need()) == (9, 5)
    assert (found.prompt_processing_per_s.need(), found.token_generation_per_s.need()) == (50.0, 10.0)


def test_content_null_is_an_answer_without_text() -> None:
    found = ask_chat(chat(good(None, reasoning_content="thinking")), OURS)
    assert found.problem.need() == "empty"
    assert found.reasoning_characters.need() == 8


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"error": {"message": "Loading model"}}, 503, "HTTP 503"),
        ({"error": {"message": "x"}}, 200, "with an error object"),
        ("<html>busy</html>", 200, "not JSON"),
        ([1], 200, "no JSON object"),
        ({"choices": []}, 200, "HTTP 200"),
        ({"choices": [{"message": {"content": 5}}]}, 200, "HTTP 200"),
    ],
)
def test_an_answer_without_text_leaves_the_text_unknown(body: object, status: int, word: str) -> None:
    found = ask_chat(chat(body, status), OURS)
    assert word in found.end.need()
    assert isinstance(found.problem, Unknown)
    assert isinstance(found.text, Unknown)


def test_a_time_out_is_a_bound() -> None:
    found = ask_chat(client(**{CHAT: failed("timed_out")}), OURS)
    assert found.stopped_at_bound
    assert isinstance(found.generated_tokens, Unknown)


@pytest.mark.parametrize("field", ["stop_type", "stopped_eos"])
def test_a_raw_completion_of_either_era(field: str) -> None:
    body = {"content": " a lived", "tokens_predicted": 3, field: "eos" if field == "stop_type" else True}
    found = ask_raw(client(**{"POST /completion": answered(body)}), OURS)
    assert (found.finish.need(), found.generated_tokens.need(), found.text.need()) == ("eos", 3, " a lived")


def test_one_token_has_no_generation_rate() -> None:
    body = {"content": "x", "tokens_predicted": 1, "timings": {"predicted_n": 1, "predicted_per_second": 1e6}}
    found = ask_raw(client(**{"POST /completion": answered(body)}), OURS)
    assert not isinstance(found.token_generation_per_s, Known)
