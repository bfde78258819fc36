"""Real engines that call a tool: the engine's own grammar and parser, and a model that says such a call."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.tiny_model import CALL, TOOLS, write_tiny_model

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(240)]


def serve(program: str, model: str, tmp_path: Path, *flags: str) -> command.Ran:
    words = ["serve", "--verify", "--once", "--only", "tools", "--bin-dir", os.path.dirname(program)]
    words += ["--model", model, "--ctx-size", "2048", "--parallel", "1", "--threads", "1", "--format", "json"]
    return command.run([*words, "--", *flags] if flags else words, tmp_path / "records")


def caller(tmp_path: Path) -> str:
    model = tmp_path / "calls.gguf"
    return str(write_tiny_model(model, words=CALL, ends=True, spaced=False, template=TOOLS))


def assert_called(ran: command.Ran) -> None:
    assert ran.status == 0, ran.open_findings()
    tools = ran.record["facts"]["more"]["tools"]["value"]
    stream = tools.pop("streamed")
    assert tools == {"fault": "", "calls": 1, "finish_reason": "tool_calls"}
    assert (stream["fault"], stream["calls"], stream["finish_reason"]) == ("", 1, "tool_calls")
    assert stream["pieces"] >= 2  # the name, and then the arguments piece by piece
    assert stream["first_chunk"]["role"] == "valued"
    assert stream["last_chunk"]["finish_reason"] == "valued"
    assert ran.finding("features.tool-is-called")["status"] == "passed"


@pytest.mark.parametrize("build", ["engine", "engine-b10068"])
def test_a_call_of_a_tool_comes_back_valid(fetched: Callable[[str], str], build: str, tmp_path: Path) -> None:
    assert_called(serve(fetched(build), caller(tmp_path), tmp_path))


@pytest.mark.slow
@pytest.mark.fullengine
def test_a_call_of_a_tool_comes_back_valid_from_the_full_engine(
    full_engine_server: str, tmp_path: Path
) -> None:
    assert_called(serve(os.path.join(full_engine_server, "llama-server"), caller(tmp_path), tmp_path))


def test_a_template_without_tools_is_not_asked_for_a_call(embedded_server: str, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    ran = serve(embedded_server, str(model), tmp_path)
    assert ran.record["facts"]["more"]["tools"]["why"] == "unsupported"
    assert "features.tool-is-called" not in {f["check"] for f in ran.record["findings"]}


def test_a_model_that_chats_on_to_its_limit_instead_of_calling_is_no_liar(
    embedded_server: str, embedded_model: str, tmp_path: Path
) -> None:
    """Engines let a model write before its call, so a small one may be cut before it: that is unknown."""
    template = tmp_path / "tools.jinja"
    template.write_text(TOOLS, encoding="utf-8")
    ran = serve(embedded_server, embedded_model, tmp_path, "--chat-template-file", str(template))
    finding = ran.finding("features.tool-is-called")
    assert finding["status"] in {"unknown", "passed"}, finding
    assert finding["status"] == "passed" or "cut at its limit" in finding["summary"]
