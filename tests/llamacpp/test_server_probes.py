"""Real servers: every probe answers, every check passes, with a key and without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.sockets import SocketFacts, collect_sockets
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.schema.fact import Known
from llamaops.schema.finding import Finding
from llamaops.system.http import Exchange, HttpClient, Origin
from llamaops.system.machine import Machine
from llamaops.system.server_process import ServerProcess
from llamaops.system.sockets import listeners
from tests.fakes.fact_groups import gguf_facts

ALIAS = "llamaops-alias-of-this-test"
KEY = "the-key-of-this-test"
SMOLLM2 = {
    "vocabulary_size": 49152, "embedding_length": 576, "context_length_tokens": 8192,
    "parameter_count": 134515008, "tensor_bytes": 96576768,
}  # fmt: skip
READY_S = 90.0


@contextmanager
def serving(
    program: str, *arguments: str, key_file: Path | None = None
) -> Iterator[tuple[ServerProcess, int]]:
    """Run a real server on a free port until it is ready, and stop it whatever happens."""
    port = _free_port()
    argv = [program, "--host", "127.0.0.1", "--port", str(port), *arguments]
    if key_file is not None:
        argv += ["--api-key-file", str(key_file)]
    with Machine() as machine, ServerProcess(argv, env=machine.child_environment()) as server:
        assert server.start() is None
        client = HttpClient(Origin("http", "127.0.0.1", port))
        end = machine.clock.monotonic() + READY_S
        while machine.clock.monotonic() < end and server.poll() is None:
            answer = client.fast_get()
            if isinstance(answer, Exchange) and answer.status == 200:
                yield server, port
                return
            machine.clock.sleep(0.05)
        pytest.fail(f"not ready: {server.poll()}\n{server.stderr.text[-2000:]}")


def _free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def judged(program: str, model: str, key_file: Path | None) -> tuple[dict[str, Finding], ServerFacts, str]:
    kept: list[str] = []

    def keep(evidence: object) -> str:
        kept.append(repr(evidence))
        return f"ev-{len(kept)}"

    arguments = ("-m", model, "--alias", ALIAS, "-c", "1024", "-np", "2", "--metrics")
    with serving(program, *arguments, key_file=key_file) as (process, port):
        assert process.pid is not None
        key = None if key_file is None else KEY
        client = HttpClient(Origin("http", "127.0.0.1", port), api_key=key, keep=keep)
        asked = AskedFacts(
            alias=ALIAS, model_path=model, host="127.0.0.1", port=port, ctx_size=1024, parallel=2,
            api_key=key is not None,
        )  # fmt: skip
        server = collect_server(client, asked)
        sockets = collect_sockets(process.pid, host="127.0.0.1", port=port)
        assert len(listeners(process.pid)) == 1
    groups: dict[type, object] = {
        AskedFacts: asked, ServerFacts: server, SocketFacts: sockets, **gguf_facts(**SMOLLM2)
    }  # fmt: skip
    checks = [check for check in all_checks(("server",)) if set(check.inputs().values()) <= set(groups)]
    found = [run_check(check, groups) for check in checks]
    return {item.check: item for item in found if item is not None}, server, "".join(kept)


def assert_whole(findings: dict[str, Finding], server: ServerFacts) -> None:
    assert {name: item.summary for name, item in findings.items() if item.status != "passed"} == {}
    assert {answer.state for answer in server.endpoints} == {"works"}
    assert isinstance(server.chat_stream, Known)
    assert server.chat_stream.value.pieces > 5
    assert server.chat_stream.value.usage_choices_empty is True


@pytest.mark.llamacpp
@pytest.mark.parametrize("with_key", [False, True], ids=["open", "with a key"])
def test_the_embedded_server_passes_every_check(
    embedded_server: str, embedded_model: str, tmp_path: Path, with_key: bool
) -> None:
    key_file = _key_file(tmp_path) if with_key else None
    findings, server, kept = judged(embedded_server, embedded_model, key_file)
    assert_whole(findings, server)
    assert KEY not in kept
    if with_key:
        assert isinstance(server.without_key, Known)
        states = {(answer.request, answer.key): answer.state for answer in server.without_key.value}
        assert states["GET /v1/models", "none"] == "works"  # open in this build
        assert states["GET /props", "none"] == states["GET /props", "wrong"] == "needs_key"


@pytest.mark.slow
@pytest.mark.fullengine
@pytest.mark.llamacpp
@pytest.mark.parametrize("with_key", [False, True], ids=["open", "with a key"])
def test_the_full_engines_server_passes_every_check(
    full_engine_server: str, embedded_model: str, tmp_path: Path, with_key: bool
) -> None:
    program = os.path.join(full_engine_server, "llama-server")
    findings, server, kept = judged(program, embedded_model, _key_file(tmp_path) if with_key else None)
    assert_whole(findings, server)
    assert KEY not in kept


def _key_file(folder: Path) -> Path:
    path = folder / "key"
    path.write_text(KEY + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path
