"""Builds of March 2024 and August 2025, where `make old-engines` has built them.

What a build lacks is absent in it and no failure. Both are shallow clones that call themselves build 1, so
that only the commit tells which one it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from llamaops.facts.build_names import collect_build_names
from llamaops.facts.gguf_file import collect_gguf
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine
from llamaops.system.server_process import ServerProcess
from tests.fakes import command
from tests.fakes.liars import ROOT
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.test_server_probes import KEY, _key_file, serving

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(300)]

BUILDS = {
    "old_engine_2024": ("server", "main", "c2101a2"),
    "old_engine_2025": ("llama-server", "llama-cli", "4227c9b"),
}
"""Fixture: its server, its one-shot program, its commit."""
NOT_THERE = {
    "old_engine_2024": {
        "POST /v1/completions", "POST /v1/responses", "POST /v1/messages", "POST /v1/messages/count_tokens",
        "POST /v1/rerank", "POST /apply-template", "GET /lora-adapters",
    },
    "old_engine_2025": {"POST /v1/responses", "POST /v1/messages", "POST /v1/messages/count_tokens"},
}  # fmt: skip
ONE_THREAD = ("--threads", "1")


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Return the name of a build's fixture and the folder of its programs."""
    return request.param, request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start everything in a folder of its own: these builds may write a log where they are started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def words(build: tuple[str, str], verb: str, model: str, *more: str) -> list[str]:
    return [verb, "--bin-dir", build[1], "--model", model, *more]


def blocking(ran: command.Ran) -> dict[str, str]:
    """Return what is required and did not pass."""
    return {
        item["check"]: item["summary"]
        for item in ran.record["findings"]
        if item["status"] != "passed" and item["severity"] == "required"
        if not item["summary"].startswith("not judged: --level")
    }


def test_preflight_knows_the_programs_and_what_they_say_of_their_build(
    build: tuple[str, str], embedded_model: str, tmp_path: Path
) -> None:
    ran = command.run_json(words(build, "preflight", embedded_model), tmp_path)
    assert ran.status == 0, ran.open_findings()
    server, once, commit = BUILDS[build[0]]
    found = {Path(item["path"]).name: item for item in ran.record["facts"]["binaries"]["found"]["value"]}
    assert found[server]["role"] == "llama-server"
    assert found[once]["version"]["commit"]["value"] == commit
    named = found[server]["version"]["commit"]
    assert named.get("value") == (None if server == "server" else commit)


@pytest.mark.parametrize("level", ["standard", "full"])
def test_its_server_is_verified(
    build: tuple[str, str], embedded_model: str, tmp_path: Path, level: str
) -> None:
    asked = words(build, "serve", embedded_model, "--verify", "--once", "--level", level, *ONE_THREAD)
    ran = command.run_json([*asked, "--parallel", "2", "--ctx-size", "1024"], tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    assert blocking(ran) == {}
    assert ran.record["strongest"] == "concurrency"
    rows = {row["request"]: row["meaning"] for row in ran.record["facts"]["surface"]["rows"]["value"]}
    absent = {name for name, meaning in rows.items() if meaning == "absent"} - {"GET /metrics"}
    assert absent == NOT_THERE[build[0]]  # without --metrics, 2024 has no such path
    commit = ran.record["facts"]["load"]["build_commit"]
    assert commit.get("value") in {BUILDS[build[0]][2], None}  # an old log is held back, and may be lost
    assert list(tmp_path.iterdir()) == [tmp_path / "records"], "it writes into the working directory"


def test_its_default_context_is_planned_and_said_aloud(
    build: tuple[str, str], embedded_model: str, tmp_path: Path
) -> None:
    asked = words(build, "serve", embedded_model, "--verify", "--once", "--level", "basic", *ONE_THREAD)
    ran = command.run_json([*asked, "--parallel", "2"], tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    argv = ran.record["facts"]["launch"]["argv"]
    context = {"old_engine_2024": 512, "old_engine_2025": 4096}[build[0]]
    assert argv[argv.index("--ctx-size") + 1] == str(context)
    assert ran.record["facts"]["launch"]["planned"]["slot_context_tokens"] == context // 2
    assert ran.finding("server.plan-is-what-runs")["status"] == "passed"


def test_a_model_of_ours_is_served_and_read_from_the_log(build: tuple[str, str], tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", type_name="F32", ends=True)
    asked = words(build, "serve", str(model), "--once", *ONE_THREAD, "--parallel", "2", "--ctx-size", "1024")
    ran = command.run_json(asked, tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    assert ran.state("model_load") == "reached"
    load = ran.record["facts"]["load"]
    assert load["model_loaded"]["value"] is True
    assert load["n_ctx"]["value"] == 1024
    assert load["kv_buffers"]["value"][0]["size_bytes"] > 0


def test_a_smoke_generates_raw_and_through_the_template(
    build: tuple[str, str], embedded_model: str, tmp_path: Path
) -> None:
    ran = command.run_json(
        words(build, "smoke", embedded_model, "--max-tokens", "24", *ONE_THREAD), tmp_path / "records"
    )
    assert ran.status == 0, ran.open_findings()
    assert blocking(ran) == {}
    assert list(tmp_path.iterdir()) == [tmp_path / "records"], "it writes into the working directory"
    generation = ran.record["facts"]["generation"]
    assert generation["chosen_via"].startswith("completion" if build[0] == "old_engine_2024" else "server")
    for path in ("raw", "chat"):
        assert generation[path]["text_characters"]["value"] > 20


@contextmanager
def running(build: tuple[str, str], model: str, *more: str, key: Path | None = None) -> Iterator[Any]:
    server, _once, _commit = BUILDS[build[0]]
    own = ("--cont-batching", "--log-disable") if server == "server" else ("--slots",)
    flags = ("-m", model, "-c", "1024", "-np", "2", "--metrics", *ONE_THREAD, *own, *more)
    with serving(str(Path(build[1]) / server), *flags, key_file=key) as (process, port):
        yield process, f"http://127.0.0.1:{port}"


def test_a_running_one_is_verified_and_its_log_diagnosed(
    build: tuple[str, str], embedded_model: str, tmp_path: Path
) -> None:
    with running(build, embedded_model) as (process, url):
        ran = command.run_json(["verify", url], tmp_path / "records")
        assert isinstance(process, ServerProcess)
        log = process.log()
    assert ran.status == 0, ran.open_findings()
    assert blocking(ran) == {}
    assert ran.record["strongest"] == "concurrency"
    (tmp_path / "server.log").write_text(log, encoding="utf-8")
    found = command.run(["diagnose", str(tmp_path / "server.log"), "--format", "json"], tmp_path / "records")
    diagnosis = json.loads(found.out)["record"]["facts"]["diagnosis"]
    causes = json.dumps(diagnosis)
    for wrong in ("model-not-found", "unknown-architecture", "out-of-memory", "port-in-use", "crash"):
        assert f'"{wrong}"' not in causes
    assert "model_load" in causes


def test_a_key_guards_what_it_guarded_then(
    build: tuple[str, str], embedded_model: str, tmp_path: Path
) -> None:
    key = _key_file(tmp_path)
    with running(build, embedded_model, key=key) as (_process, url):
        ran = command.run_json(["verify", url, "--api-key-file", str(key)], tmp_path / "records")
    assert KEY not in ran.out + ran.err
    finding = ran.finding("server.key-is-required")
    if build[0] == "old_engine_2024":  # it asked for the key where text is generated, and nowhere else
        assert finding["status"] == "failed"
        assert "/slots with none key: HTTP 200" in finding["summary"]
        assert "--slots-endpoint-disable" in finding["remedy"]
        assert set(blocking(ran)) == {"server.key-is-required"}
    else:
        assert finding["status"] == "passed"
        assert blocking(ran) == {}


def test_the_pre_tokenizer_is_looked_for_in_the_binary_before_it_loads(
    build: tuple[str, str], embedded_model: str
) -> None:
    with Machine() as machine:
        program = str(Path(build[1]) / BUILDS[build[0]][0])
        names = collect_build_names(machine, program, collect_gguf(machine, embedded_model)).names
    (pre,) = [item for item in names if item.kind == "pre_tokenizer"]
    if build[0] == "old_engine_2024":
        assert isinstance(pre.found, Unknown)
        assert "older than pre-tokenizers" in pre.found.detail
    else:
        assert isinstance(pre.found, Known)
        assert pre.found.value == "whole"
    assert next(item.found.need() for item in names if item.kind != "pre_tokenizer") == "whole"
