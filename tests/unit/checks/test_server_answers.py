"""Do the answers hold together? Each check: holds, does not, not known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks.registry import NotApplicable, Verdict, all_checks, run_check
from llamaops.checks.server_answers import embedding_width_agrees_with_header
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.probes.completion_body import ServerTimings, Usage
from llamaops.probes.embeddings import EmbeddingsAnswer
from llamaops.probes.metrics import MetricsAnswer
from llamaops.probes.models import ModelsAnswer
from llamaops.probes.rerank import RerankAnswer
from llamaops.probes.server import ServerFacts
from llamaops.schema.finding import Finding
from tests.fakes.fact_groups import gguf_facts
from tests.fakes.server_facts import (
    CHAT,
    MODEL,
    OTHER,
    PROPS,
    STREAM,
    answer,
    changed,
    known,
    server,
    unknown,
)

CHECKS = {check.id: check for check in all_checks(("server",))}
VECTORS = EmbeddingsAnswer(dimension=8, smallest_norm=1.0, equal_similarity=1.0, different_similarity=0.2)


def run(name: str, facts: ServerFacts, asked: AskedFacts | None = None) -> Finding | None:
    return run_check(CHECKS[f"server.{name}"], {ServerFacts: facts, AskedFacts: asked or AskedFacts()})


def status(name: str, facts: ServerFacts, asked: AskedFacts | None = None) -> str:
    finding = run(name, facts, asked)
    assert finding is not None
    if finding.status == "failed":
        assert finding.remedy
        assert finding.observed
    return finding.status


def chat(**changes: Any) -> ServerFacts:
    return server(chat=changed(CHAT, **changes))


def usage(prompt: int | None, generated: int | None, total: int | None) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=generated, total_tokens=total)


def test_chat_answers() -> None:
    assert status("chat-answers", server()) == "passed"
    for state in ("broken", "refuses", "unreachable"):
        assert status("chat-answers", server(answers=(answer("chat", state),), chat=unknown())) == "failed"
    for state in ("no_answer", "needs_key", "absent", "switched_off"):
        assert status("chat-answers", server(answers=(answer("chat", state),), chat=unknown())) == "unknown"  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["absent", "switched_off"])
def test_a_server_for_embeddings_is_not_judged_by_its_chat(state: Any) -> None:
    facts = server(
        answers=(answer("chat", state, 501), answer("embeddings")), chat=unknown("unsupported"),
        chat_other=unknown(), chat_stream=unknown(), embeddings=known(VECTORS),
    )  # fmt: skip
    for name in ("chat-answers", "chat-text-is-usable", "finish-reason-and-usage", "token-limit-is-honoured",
                 "model-name-agrees", "answers-depend-on-the-question", "stream-arrives-over-time",
                 "stream-is-complete", "stream-agrees-with-answer", "counters-agree"):  # fmt: skip
        assert run(name, facts) is None, name
    assert status("embeddings-answer", facts) == "passed"


@pytest.mark.parametrize(
    ("norm", "equal", "different", "expected"),
    [
        (1.0, 1.0, 0.2, "passed"),
        (0.0, 0.0, 0.0, "failed"),
        (1.0, 1.0, 1.0, "failed"),
        (1.0, 0.5, 0.2, "failed"),
    ],
)
def test_embeddings_answer(norm: float, equal: float, different: float, expected: str) -> None:
    vectors = EmbeddingsAnswer(
        dimension=8, smallest_norm=norm, equal_similarity=equal, different_similarity=different
    )
    facts = server(answers=(answer("embeddings"),), embeddings=known(vectors))
    assert status("embeddings-answer", facts, AskedFacts(embeddings=True)) == expected


def test_embeddings_that_are_broken_off_or_not_asked() -> None:
    broken = server(answers=(answer("embeddings", "broken"),), embeddings=unknown())
    assert status("embeddings-answer", broken) == "failed"
    off = server(answers=(answer("embeddings", "switched_off", 501),), embeddings=unknown("unsupported"))
    assert status("embeddings-answer", off) == "unknown"
    assert run("embeddings-answer", server()) is None


def test_embedding_width_agrees() -> None:
    """And with the header: embedding_width_agrees_with_header."""
    cut = known(msgspec.structs.replace(VECTORS, dimension=MODEL.embedding_length))
    facts = server(answers=(answer("embeddings"),), embeddings=cut)
    assert status("embedding-width-agrees", facts) == "passed"
    other = server(answers=(answer("embeddings"),), embeddings=known(VECTORS))
    assert status("embedding-width-agrees", other) == "failed"
    unlisted = known(ModelsAnswer(models=(msgspec.structs.replace(MODEL, embedding_length=None),)))
    assert status("embedding-width-agrees", server(embeddings=cut, models=unlisted)) == "unknown"
    assert run("embedding-width-agrees", server()) is None
    (header,) = gguf_facts(embedding_length=576).values()
    assert isinstance(header, GgufFacts)
    for given, holds in ((facts, True), (other, False)):
        verdict = embedding_width_agrees_with_header(given, header)
        assert isinstance(verdict, Verdict)
        assert verdict.holds is holds
    assert isinstance(embedding_width_agrees_with_header(server(), header), NotApplicable)


def test_rerank_answers() -> None:
    def ranked(first: float, second: float) -> ServerFacts:
        scores = RerankAnswer(relevant_score=first, other_score=second)
        return server(answers=(answer("rerank"),), rerank=known(scores))

    assert status("rerank-answers", ranked(8.5, -2.0)) == "passed"
    assert status("rerank-answers", ranked(-2.0, 8.5)) == "failed"
    assert status("rerank-answers", ranked(1.0, 1.0)) == "failed"
    assert run("rerank-answers", server()) is None
    asked = AskedFacts(reranking=True)
    broken = server(answers=(answer("rerank", "broken"),), rerank=unknown())
    assert status("rerank-answers", broken, asked) == "failed"
    silent = server(answers=(answer("rerank", "no_answer"),), rerank=unknown())
    assert status("rerank-answers", silent, asked) == "unknown"
    assert status("rerank-answers", server(), asked) == "unknown"


def test_chat_text_is_usable() -> None:
    finding = run("chat-text-is-usable", server())
    assert finding is not None
    assert (finding.status, finding.boundary) == ("passed", "generated_output")
    assert status("chat-text-is-usable", chat(problem="echo")) == "failed"
    assert status("chat-text-is-usable", server(chat_stream=changed(STREAM, problem="repeated"))) == "failed"
    assert status("chat-text-is-usable", server(chat=unknown())) == "unknown"


def test_reasoning_without_content_is_usable_and_said_to_be_reasoning() -> None:
    finding = run("chat-text-is-usable", chat(text="", characters=0, content="empty", reasoning="valued",
                                              reasoning_characters=90))  # fmt: skip
    assert finding is not None
    assert finding.status == "passed"
    assert "reasoning" in finding.summary


@pytest.mark.parametrize(
    "changes",
    [
        {"finish_reason": None},
        {"finish_reason": "done"},
        {"usage": None},
        {"usage": usage(None, 20, 20)},
        {"usage": usage(38, 20, 60)},
        {"usage": usage(38, 0, 38), "timings": None},
        {"usage": usage(3, 20, 23)},
        {
            "usage": usage(38, 20, 58),
            "timings": ServerTimings(prompt_tokens=1, generated_tokens=4, generation_s=1),
        },
        {"usage": usage(38, 47, 85), "timings": None},
        {"usage": usage(38, 1, 39), "timings": None, "counted_tokens": 40},
        {"usage": usage(38, 33, 71), "timings": None},
        {"usage": usage(38, 13, 51), "timings": None},
        {"usage": usage(38, 2, 40), "timings": None, "counted_tokens": None, "characters": 400},
        {"usage": usage(38, 1, 39), "timings": None, "counted_tokens": None, "finish_reason": "length"},
    ],
)
def test_an_answer_that_contradicts_itself(changes: dict[str, Any]) -> None:
    assert status("finish-reason-and-usage", chat(**changes)) == "failed"


def test_finish_reason_and_usage() -> None:
    assert status("finish-reason-and-usage", server()) == "passed"
    assert status("finish-reason-and-usage", chat(counted_tokens=None, timings=None)) == "passed"
    reasoning = chat(counted_tokens=2, reasoning="valued", reasoning_characters=200,
                     usage=usage(38, 48, 86), timings=None)  # fmt: skip
    assert status("finish-reason-and-usage", reasoning) == "passed"
    assert (
        status("finish-reason-and-usage", server(chat_other=changed(OTHER, finish_reason=None))) == "failed"
    )
    assert (
        status("finish-reason-and-usage", server(chat_stream=changed(STREAM, usage=usage(1, 2, 9))))
        == "failed"
    )
    assert status("finish-reason-and-usage", server(chat=unknown())) == "unknown"


@pytest.mark.parametrize(
    "facts",
    [
        chat(usage=usage(38, 49, 87)),
        chat(counted_tokens=90),
        chat(characters=48 * 40 + 1, counted_tokens=None),
        server(chat_other=changed(OTHER, usage=usage(41, 17, 58))),
        server(chat_stream=changed(STREAM, pieces=80)),
        server(chat_stream=changed(STREAM, usage=usage(38, 99, 137))),
        server(chat_stream=changed(STREAM, text="x" * 4000)),
    ],
)
def test_a_limit_that_is_not_honoured(facts: ServerFacts) -> None:
    assert status("token-limit-is-honoured", facts) == "failed"


def test_token_limit_is_honoured() -> None:
    assert status("token-limit-is-honoured", server()) == "passed"
    assert status("token-limit-is-honoured", chat(usage=usage(38, 48, 86), counted_tokens=52)) == "passed"
    assert status("token-limit-is-honoured", server(chat=unknown())) == "unknown"


def test_model_name_agrees() -> None:
    assert status("model-name-agrees", server()) == "passed"
    assert status("model-name-agrees", chat(model="gpt-4o")) == "failed"
    assert status("model-name-agrees", server(chat_stream=changed(STREAM, model="gpt-4o"))) == "failed"
    assert status("model-name-agrees", server(props=changed(PROPS, model_alias="other"))) == "failed"
    assert (
        status("model-name-agrees", server(props=changed(PROPS, role="router", model_alias="x"))) == "passed"
    )
    assert status("model-name-agrees", server(models=unknown("refused"))) == "unknown"
    silent = server(
        chat=changed(CHAT, model=None), chat_other=changed(OTHER, model=None),
        chat_stream=changed(STREAM, model=None), props=changed(PROPS, model_alias=None),
    )  # fmt: skip
    assert status("model-name-agrees", silent) == "unknown"


def test_answers_depend_on_the_question() -> None:
    assert status("answers-depend-on-the-question", server()) == "passed"
    assert (
        status("answers-depend-on-the-question", server(chat_other=changed(OTHER, id="chatcmpl-1")))
        == "failed"
    )
    assert (
        status("answers-depend-on-the-question", server(chat_other=changed(OTHER, text=CHAT.text)))
        == "failed"
    )
    start = server(chat_other=changed(OTHER, text=CHAT.text[:26]))
    assert status("answers-depend-on-the-question", start) == "failed"
    short = server(chat_other=changed(OTHER, text=CHAT.text[:6]))
    assert status("answers-depend-on-the-question", short) == "passed"
    assert status("answers-depend-on-the-question", server(chat_other=unknown())) == "unknown"


def test_counters_agree() -> None:
    finding = run("counters-agree", server())
    assert finding is not None
    assert (finding.status, finding.severity) == ("passed", "required")
    less = server(metrics_after=known(MetricsAnswer(counters={"tokens_predicted_total": 110.0})))
    assert status("counters-agree", less) == "failed"
    more = server(metrics_after=known(MetricsAnswer(counters={"tokens_predicted_total": 9999.0})))
    assert status("counters-agree", more) == "failed"
    attached = run("counters-agree", more, AskedFacts(via="attached"))
    assert attached is not None
    assert attached.status == "unknown"  # others may have asked too, or it counts wrongly
    prompts = {"tokens_predicted_total": 100.0, "prompt_tokens_total": 50.0}
    sent = known(MetricsAnswer(counters=prompts))
    for grown, expected in ((117.0, "passed"), (116.0, "failed"), (0.0, "failed"), (150.0, "failed")):
        after = {"tokens_predicted_total": 156.0, "prompt_tokens_total": 50.0 + grown}
        facts = server(metrics=sent, metrics_after=known(MetricsAnswer(counters=after)))
        assert status("counters-agree", facts) == expected, grown
    old = known(MetricsAnswer(counters={"other": 1.0}))
    assert run("counters-agree", server(metrics=old, metrics_after=old)) is None
    assert status("counters-agree", server(metrics=unknown("refused"))) == "unknown"
    assert run("counters-agree", server(answers=(answer("metrics", "switched_off", 501),))) is None
