"""Fake servers that are green on the surface: none may pass, and the honest one must."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.sockets import SocketFacts, collect_sockets
from llamaops.probes.concurrency import ConcurrencyFacts, collect_concurrency
from llamaops.probes.more import MoreFacts, collect_more
from llamaops.probes.selection import select
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.probes.surface import SurfaceFacts, collect_surface
from llamaops.schema.evidence import Evidence
from llamaops.schema.finding import Finding
from llamaops.system.http import Exchange, HttpClient, Origin
from tests.fakes.fact_groups import binary_facts, gguf_facts
from tests.fakes.liars import CROWD_LIARS, ROOT, SERVER_LIARS, SURFACE_LIARS, TWISTED_LIARS, Liar
from tests.fakes.server_lies import LIES

KEY = "the-key-of-this-test"
ALIAS = "llamaops-one-time-alias"
MODEL = "/models/tiny.gguf"
REQUEST_S = 1.5
"""Long for a fake that answers in 200 ms, short enough to wait for one that never does."""


CROWD_S = 4.0


@dataclass(frozen=True)
class Judged:
    """What the tool makes of one server."""

    findings: dict[str, Finding]
    server: ServerFacts
    kept: dict[str, Evidence]
    elapsed_s: float

    @property
    def not_passed(self) -> dict[str, str]:
        return {
            name: f"{finding.status}: {finding.summary}"
            for name, finding in self.findings.items()
            if finding.status != "passed" and finding.severity == "required"
        }


@contextmanager
def running(*arguments: str, environ: dict[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """Run the fake on a free port; yield its pid and the port."""
    argv = [sys.executable, "-m", "tests.fakes.llama_server", "--port", "0", *arguments]
    process = subprocess.Popen(
        argv,
        cwd=ROOT,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        port = 0
        for line in process.stderr:
            if b"listening on" in line:
                port = int(line.rsplit(b":", 1)[1])
                break
        assert port, "the fake did not start"
        yield process.pid, port
    finally:
        process.kill()
        process.wait(5)
        if process.stderr is not None:
            process.stderr.close()


def judge(liar: Liar, level: str = "basic", slots: int = 2) -> Judged:
    key = KEY if liar.key else None
    flags = [
        "-m",
        MODEL,
        "--alias",
        ALIAS,
        "-np",
        str(slots),
        "-c",
        "1024",
        "--metrics",
        "--host",
        "127.0.0.1",
    ]
    environ = {"LLAMA_API_KEY": KEY} if key else {}
    kept: dict[str, Evidence] = {}

    def keep(evidence: Evidence) -> str:
        kept[evidence.id] = evidence
        return evidence.id

    with running("--lie", liar.name, *flags, *liar.flags, environ=environ) as (pid, port):
        client = HttpClient(Origin.parse(f"http://127.0.0.1:{port}"), api_key=key, keep=keep)
        asked = AskedFacts(
            alias=ALIAS, model_path=MODEL, host="127.0.0.1", port=port, ctx_size=1024, parallel=slots,
            kv_unified=False, api_key=key is not None, metrics=True, slots=True,
        )  # fmt: skip
        sockets = collect_sockets(pid, host="127.0.0.1", port=port)
        ready = client.fast_get()
        if liar.name != "never-ready":
            assert isinstance(ready, Exchange)
            assert ready.status == 200
        began = time.monotonic()
        selection = select(level)
        server = collect_server(
            client, asked, request_s=REQUEST_S, quick_s=1.0, total_s=20, selection=selection
        )
        more: dict[type, object] = {}
        if liar.check.startswith(("surface.", "features.")) or level == "full":
            more[SurfaceFacts] = collect_surface(client, server, selection, request_s=3.0)
            more[MoreFacts] = collect_more(client, server, selection, unified=False, request_s=3.0)
        elif level != "basic":
            more[ConcurrencyFacts] = collect_concurrency(
                client, server, selection, unified=False, total_s=20, request_s=CROWD_S
            )
        elapsed_s = time.monotonic() - began
    groups = {
        AskedFacts: asked,
        SocketFacts: sockets,
        ServerFacts: server,
        **more,
        **gguf_facts(embedding_length=576, parameter_count=134515008),
        **binary_facts(build=1, commit="7e4c0a9"),
    }
    areas = ("server",) if level == "basic" else ("server", "concurrency", "surface", "features")
    checks = [check for check in all_checks(areas) if set(check.inputs().values()) <= set(groups)]
    found = [run_check(check, groups) for check in checks]
    return Judged({item.check: item for item in found if item is not None}, server, kept, elapsed_s)


def test_the_honest_server_passes_every_check() -> None:
    judged = judge(Liar("honest", "nothing", "api_response", ""))
    assert judged.not_passed == {}
    assert {item.status for item in judged.findings.values()} == {"passed"}
    assert len(judged.findings) >= 17


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_the_honest_server_passes_with_several_requests_at_once(slots: int) -> None:
    judged = judge(Liar("honest", "nothing", "api_response", ""), "standard", slots)
    assert judged.not_passed == {}
    assert {item.status for item in judged.findings.values()} == {"passed"}
    summary = judged.findings["concurrency.slots-run-side-by-side"].summary
    assert ("one slot" in summary) is (slots == 1)
    assert ("concurrency.late-request-joins" in judged.findings) is (slots > 1)


def test_the_honest_server_passes_with_every_endpoint_and_feature() -> None:
    judged = judge(Liar("honest", "nothing", "api_response", "", flags=("--reranking",)), "full")
    assert judged.not_passed == {}
    checks = {name for name in judged.findings if name.startswith(("surface.", "features."))}
    assert len(checks) == 8


def test_a_model_that_thinks_is_asked_once_more_with_each_one_change() -> None:
    judged = judge(Liar("thinks-until-allowed-more", "", "generated_output", ""), "full")
    finding = judged.findings["features.content-can-be-had"]
    assert finding.status == "passed", finding
    assert "larger_budget, thinking_off" in finding.summary
    assert "reasoning valued" in finding.summary
    assert "harbour" not in finding.summary
    assert judged.findings["server.chat-text-is-usable"].status == "passed"


@pytest.mark.parametrize("liar", SURFACE_LIARS, ids=lambda liar: liar.name)
def test_a_liar_does_not_pass_every_endpoint(liar: Liar) -> None:
    test_a_liar_does_not_pass(liar)


@pytest.mark.parametrize("liar", TWISTED_LIARS, ids=lambda liar: liar.name)
def test_a_liar_that_changes_one_thing_does_not_pass(liar: Liar) -> None:
    test_a_liar_does_not_pass(liar)


@pytest.mark.parametrize("liar", CROWD_LIARS, ids=lambda liar: liar.name)
def test_a_liar_does_not_pass_several_requests_at_once(liar: Liar) -> None:
    test_a_liar_does_not_pass(liar)


def test_the_honest_server_with_a_key_passes_every_check_and_the_key_is_kept_nowhere() -> None:
    judged = judge(Liar("honest", "nothing", "api_response", "", key=True))
    assert judged.not_passed == {}
    assert judged.findings["server.key-is-required"].status == "passed"
    everything = repr(judged) + "".join(item.text + item.label for item in judged.kept.values())
    assert KEY not in everything


def test_an_embeddings_server_is_judged_by_its_embeddings() -> None:
    judged = judge(Liar("embeddings-only", "nothing", "api_response", "", flags=("--embeddings",)))
    assert judged.not_passed == {}
    assert judged.findings["server.embeddings-answer"].status == "passed"
    assert "server.chat-answers" not in judged.findings


def test_a_server_that_only_ranks_is_judged_by_its_ranks() -> None:
    judged = judge(Liar("ranks-only", "nothing", "api_response", "", flags=("--reranking",)), "full")
    assert judged.not_passed == {}
    assert judged.findings["server.rerank-answers"].status == "passed"
    assert "server.chat-answers" not in judged.findings
    assert "server.embeddings-answer" not in judged.findings
    assert judged.findings["surface.errors-follow-the-contract"].status == "passed"


@pytest.mark.parametrize("liar", SERVER_LIARS, ids=lambda liar: liar.name)
def test_a_liar_does_not_pass(liar: Liar) -> None:
    judged = judge(liar, "basic" if liar.level == "answers" else liar.level)
    finding = judged.findings[liar.check]
    assert finding.status == liar.status, judged.not_passed
    assert finding.boundary == liar.boundary
    assert finding.severity == "required"
    assert finding.remedy
    assert len(finding.summary) > 10
    assert not any(item.status == "error" for item in judged.findings.values()), judged.not_passed
    # Two bounded requests that hang, and the light ones: nothing takes longer than its bound.
    assert judged.elapsed_s < 2 * REQUEST_S + 4


def test_every_lie_of_the_fake_has_a_row() -> None:
    from tests.fakes.liars import HONEST_BUT_UNRULY, LIARS

    rows = {liar.name for liar in LIARS if liar.program == "llama-server"} | set(HONEST_BUT_UNRULY)
    honest = {
        "honest",
        "honest-fast",
        "embeddings-only",
        "ranks-only",
        "gpu-honest",
        "thinks-until-allowed-more",
        "woken-by-health",
    }
    assert set(LIES) == rows | honest


def test_the_words_of_other_people_in_slots_are_not_kept() -> None:
    judged = judge(Liar("honest", "nothing", "api_response", ""))
    slots = [item for item in judged.kept.values() if item.label.endswith("/slots")]
    assert slots
    assert not any("somebody" in item.text for item in judged.kept.values())
