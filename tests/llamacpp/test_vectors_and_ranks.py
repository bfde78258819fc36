"""Real engines that compute vectors or ranks: their width, equal texts, and the relevant document first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.tiny_bert import WIDTH, write_tiny_bert

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(240)]
SMOLLM2_WIDTH = 576


@pytest.fixture(params=["engine", "engine-b10068"])
def program(request: pytest.FixtureRequest, fetched: Callable[[str], str]) -> str:
    return fetched(request.param)


def serve(program: str, model: str, tmp_path: Path, *flags: str) -> command.Ran:
    words = ["serve", "--verify", "--once", "--level", "full", "--bin-dir", os.path.dirname(program)]
    words += ["--model", model, "--ctx-size", "512", "--parallel", "2", "--threads", "1"]
    return command.run([*words, "--format", "json", "--", *flags], tmp_path / "records")


def required(ran: command.Ran) -> dict[str, str]:
    return {
        f["check"]: f["summary"]
        for f in ran.record["findings"]
        if f["status"] not in {"passed", "not_run"} and f["severity"] == "required"
    }


def test_an_encoder_gives_vectors_as_wide_as_its_header(program: str, tmp_path: Path) -> None:
    model = write_tiny_bert(tmp_path / "embeddings.gguf", ranks=False)
    ran = serve(program, str(model), tmp_path, "--embeddings")
    assert ran.status == 0, ran.err
    assert required(ran) == {}
    vectors = ran.record["facts"]["server"]["embeddings"]["value"]
    assert vectors["dimension"] == WIDTH
    assert vectors["equal_similarity"] > 0.9999 > vectors["different_similarity"]
    for check in ("embeddings-answer", "embedding-width-agrees", "embedding-width-agrees-with-header"):
        assert ran.finding(f"server.{check}")["status"] == "passed"
    assert ran.finding("model.use-fits-the-run")["status"] == "passed"
    # What it has no text for says so, and is not broken.
    assert ran.finding("surface.endpoints-work-or-say-why")["status"] == "passed"
    assert ran.record["promised"][-1] == "api_response"


def test_a_reranker_ranks_the_relevant_document_first(program: str, tmp_path: Path) -> None:
    model = write_tiny_bert(tmp_path / "ranks.gguf", ranks=True)
    ran = serve(program, str(model), tmp_path, "--reranking")
    assert ran.status == 0, ran.err
    assert required(ran) == {}
    scores = ran.record["facts"]["server"]["rerank"]["value"]
    assert scores["relevant_score"] > scores["other_score"] + 1
    assert ran.finding("server.rerank-answers")["status"] == "passed"
    assert ran.finding("surface.enabled-endpoints-answer")["status"] == "passed"
    rows = {row["request"]: row["meaning"] for row in ran.record["facts"]["surface"]["rows"]["value"]}
    assert rows["POST /v1/rerank"] == "works"
    assert rows["POST /v1/chat/completions"] == "refuses_as_documented"


def test_a_chat_model_gives_vectors_beside_chat(
    embedded_server: str, embedded_model: str, tmp_path: Path
) -> None:
    ran = serve(embedded_server, embedded_model, tmp_path, "--embeddings", "--pooling", "mean")
    assert ran.status == 0, ran.err
    assert required(ran) == {}
    assert ran.record["facts"]["server"]["embeddings"]["value"]["dimension"] == SMOLLM2_WIDTH
    assert ran.finding("server.chat-answers")["status"] == "passed"
    assert ran.finding("server.embedding-width-agrees-with-header")["status"] == "passed"
