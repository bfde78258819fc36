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
from llamaops.operations.verification import AREAS
from llamaops.probes.concurrency import ConcurrencyFacts, collect_concurrency
from llamaops.probes.more import MoreFacts, collect_more
from llamaops.probes.selection import select
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.probes.surface import SurfaceFacts, collect_surface
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


def judged(
    program: str, model: str, key_file: Path | None = None, *more: str, slots: int = 2, level: str = "basic"
) -> tuple[dict[str, Finding], dict[type, object], str]:
    kept: list[str] = []

    def keep(evidence: object) -> str:
        kept.append(repr(evidence))
        return f"ev-{len(kept)}"

    arguments = ("-m", model, "--alias", ALIAS, "-c", "1024", "-np", str(slots), "--metrics", *more)
    with serving(program, *arguments, key_file=key_file) as (process, port):
        assert process.pid is not None
        key = None if key_file is None else KEY
        client = HttpClient(Origin("http", "127.0.0.1", port), api_key=key, keep=keep)
        asked = AskedFacts(
            alias=ALIAS, model_path=model, host="127.0.0.1", port=port, ctx_size=1024,
            parallel=slots, api_key=key is not None, kv_unified="-kvu" in more, metrics=True, slots=True,
        )  # fmt: skip
        selection = select(level)
        server = collect_server(client, asked, selection=selection)
        found_more: dict[type, object] = {}
        if level != "basic":
            unified = "-kvu" in more
            found_more = {
                ConcurrencyFacts: collect_concurrency(client, server, selection, unified=unified),
                SurfaceFacts: collect_surface(client, server, selection),
                MoreFacts: collect_more(client, server, selection, unified=unified),
            }
        sockets = collect_sockets(process.pid, host="127.0.0.1", port=port)
        assert len(listeners(process.pid)) == 1
    groups: dict[type, object] = {
        AskedFacts: asked, ServerFacts: server, SocketFacts: sockets, **found_more,
        **gguf_facts(**SMOLLM2),
    }  # fmt: skip
    checks = [check for check in all_checks(AREAS) if set(check.inputs().values()) <= set(groups)]
    found = [run_check(check, groups) for check in checks]
    return {item.check: item for item in found if item is not None}, groups, "".join(kept)


def assert_whole(findings: dict[str, Finding], groups: dict[type, object]) -> ServerFacts:
    server = groups[ServerFacts]
    assert isinstance(server, ServerFacts)
    assert {name: item.summary for name, item in findings.items() if item.status != "passed"} == {}
    assert {answer.state for answer in server.endpoints} == {"works"}
    assert isinstance(server.chat_stream, Known)
    assert server.chat_stream.value.pieces > 5
    assert server.chat_stream.value.usage_choices_empty is True
    return server


@pytest.mark.llamacpp
@pytest.mark.parametrize("with_key", [False, True], ids=["open", "with a key"])
def test_the_embedded_server_passes_every_check(
    embedded_server: str, embedded_model: str, tmp_path: Path, with_key: bool
) -> None:
    key_file = _key_file(tmp_path) if with_key else None
    findings, groups, kept = judged(embedded_server, embedded_model, key_file)
    server = assert_whole(findings, groups)
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
    findings, groups, kept = judged(program, embedded_model, _key_file(tmp_path) if with_key else None)
    assert_whole(findings, groups)
    assert KEY not in kept


FULL_CHECKS = {
    "concurrency.every-request-is-answered", "concurrency.slots-run-side-by-side",
    "concurrency.answers-belong-to-their-requests", "surface.endpoints-work-or-say-why",
    "surface.errors-follow-the-contract", "surface.no-doors-for-others", "features.disconnect-frees-the-slot",
    "features.schema-is-followed",
}  # fmt: skip
ONE_THREAD = ("-t", "1")
"""Threads that spin for each other on a busy machine would make a decode take a hundred times as long."""


def assert_full(program: str, model: str, slots: int, *more: str) -> None:
    findings, groups, _kept = judged(program, model, None, *ONE_THREAD, *more, slots=slots, level="full")
    server = assert_whole(findings, groups)
    assert set(findings) >= FULL_CHECKS
    assert ("concurrency.late-request-joins" in findings) is (slots > 1)
    assert isinstance(server.chat_stream, Known)
    first, last = server.chat_stream.value.first_chunk, server.chat_stream.value.last_chunk
    assert (first["role"], first["content"], last["finish_reason"], last["usage"]) == (
        "valued", "null", "valued", "valued",
    )  # fmt: skip
    surface = groups[SurfaceFacts]
    assert isinstance(surface, SurfaceFacts)
    assert isinstance(surface.rows, Known)
    meanings = {row.request: row.meaning for row in surface.rows.value}
    for request in ("/v1/completions", "/completion", "/v1/responses", "/v1/messages", "/detokenize"):
        assert meanings[f"POST {request}"] == "works"
    assert meanings["POST /v1/embeddings"] == meanings["POST /infill"] == "refuses_as_documented"


@pytest.mark.llamacpp
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("slots", "more"), [(1, ()), (2, ()), (2, ("-kvu",))], ids=["one slot", "two split", "two unified"]
)
def test_the_embedded_server_passes_at_every_level(
    embedded_server: str, embedded_model: str, slots: int, more: tuple[str, ...]
) -> None:
    assert_full(embedded_server, embedded_model, slots, *more)


@pytest.mark.slow
@pytest.mark.fullengine
@pytest.mark.llamacpp
@pytest.mark.timeout(240)
def test_the_full_engines_server_passes_at_every_level(full_engine_server: str, embedded_model: str) -> None:
    assert_full(os.path.join(full_engine_server, "llama-server"), embedded_model, 2)


@pytest.mark.llamacpp
@pytest.mark.timeout(240)
def test_without_continuous_batching_a_late_request_is_seen_to_wait(
    embedded_server: str, embedded_model: str
) -> None:
    findings, _groups, _kept = judged(
        embedded_server, embedded_model, None, *ONE_THREAD, "--no-cont-batching", level="standard"
    )
    assert findings["concurrency.late-request-joins"].status == "failed", findings
    assert findings["concurrency.every-request-is-answered"].status == "passed"


THINKS = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' and message['reasoning_content'] %}"
    "<think>\n{{ message['reasoning_content'] }}\n</think>\n\n{% endif %}"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}"
)
"""It opens a block of thoughts that SmolLM2 never closes, unless thinking is switched off."""


@pytest.mark.llamacpp
@pytest.mark.timeout(240)
def test_a_template_that_thinks_gives_content_without_thinking(
    embedded_server: str, embedded_model: str, tmp_path: Path
) -> None:
    template = tmp_path / "thinks.jinja"
    template.write_text(THINKS)
    findings, groups, _kept = judged(
        embedded_server, embedded_model, None, *ONE_THREAD, "--jinja", "--chat-template-file", str(template),
        level="standard",
    )  # fmt: skip
    more = groups[MoreFacts]
    assert isinstance(more, MoreFacts)
    assert isinstance(more.reasoning, Known), more.reasoning
    tries = {item.change: item for item in more.reasoning.value.tries}
    assert tries["baseline"].content == "empty"
    assert tries["baseline"].reasoning == "valued"
    assert tries["thinking_off"].content == "valued"
    finding = findings["features.content-can-be-had"]
    assert finding.status == "passed", finding
    assert "thinking_off" in finding.summary
    assert {i.check for i in findings.values() if i.status == "failed" and i.severity == "required"} == set()


def _key_file(folder: Path) -> Path:
    path = folder / "key"
    path.write_text(KEY + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.mark.llamacpp
@pytest.mark.timeout(240)
def test_requests_that_fit_alone_fail_together_in_a_shared_cache(
    embedded_server: str, embedded_model: str
) -> None:
    arguments = ("-m", embedded_model, "--alias", ALIAS, "-c", "512", "-np", "2", "-kvu", *ONE_THREAD)
    with serving(embedded_server, *arguments) as (_process, port):
        client = HttpClient(Origin("http", "127.0.0.1", port))
        selection = select(only=["pool-exhaustion"])
        server = collect_server(client, AskedFacts(alias=ALIAS), selection=selection)
        more = collect_more(client, server, selection, unified=True)
        assert isinstance(client.fast_get(), Exchange)
    assert isinstance(more.pool, Known), more.pool
    assert more.pool.value.alone.state == "works"
    assert [answer.status for answer in more.pool.value.together] == [500, 500]
    assert "Context size has been exceeded" in more.pool.value.together[0].detail
