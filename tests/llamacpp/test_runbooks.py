"""Every shipped runbook, run on the real engine as far as a machine without a GPU allows.

Those that build an engine are in test_build_runbooks, the one with a container is in test_container, and the
one with a proxy in test_proxy.
"""

from __future__ import annotations

import hashlib
import http.server
import re
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llamaops.runbook.load import find_all, load
from tests.fakes import command
from tests.fakes.liars import install
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.runbooks import ends, run_book

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(400)]

ELSEWHERE = {"build-from-archive", "build-from-git", "expose-behind-proxy", "run-in-docker"}
"""Run in test_build_runbooks, test_proxy and test_container."""
GIVEN = {"commit": "0" * 40, "sha256": "0" * 64, "image": f"x@sha256:{'0' * 64}"}
"""Inputs that have a pattern."""
OF_KIND = {"url": "http://127.0.0.1:1", "number": "1"}


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "records"
    command.wait_none_left()


@pytest.fixture
def bin_dir(embedded_server: str) -> str:
    return str(Path(embedded_server).parent)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def all_done(ran: command.Ran) -> None:
    assert ran.status == 0, (ran.err, ends(ran), ran.open_findings())
    assert set(ends(ran).values()) == {"done"}


def test_every_shipped_runbook_is_run_by_a_test() -> None:
    here = Path(__file__)
    others = "".join(file.read_text() for file in here.parent.glob("test_*.py") if file != here)
    for found in find_all({}):
        tests = others if found.id in ELSEWHERE else here.read_text()
        assert re.search(rf'run_book\(\s*"{found.id}"', tests), found.id


@pytest.mark.parametrize("name", sorted(found.id for found in find_all({})))
def test_a_plan_runs_nothing(name: str, records: Path) -> None:
    runbook = load(next(found.path for found in find_all({}) if found.id == name)).runbook
    given = {
        n: GIVEN.get(n, OF_KIND.get(i.kind, "/x"))
        for n, i in runbook.inputs.items()
        if i.default is None and not i.optional
    }
    words = [word for item in given.items() for word in ("--input", "=".join(item))]
    planned = command.run(["runbook", "plan", name, *words], records)
    assert planned.status == 0, planned.err
    assert planned.out.endswith("nothing was run\n")
    assert not records.exists()


def test_preflight_host(records: Path, bin_dir: str) -> None:
    all_done(run_book("preflight-host", records, bin_dir=bin_dir))


def test_install_release_binary(records: Path, bin_dir: str, tmp_path: Path) -> None:
    archive = tmp_path / "release.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", Path(bin_dir).parent, "bin"], check=True, timeout=120)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    folder = tmp_path / "opt" / "b1"
    ran = run_book(
        "install-release-binary", records, archive=archive, sha256=digest, folder=folder, programs="bin"
    )
    all_done(ran)
    wrong = run_book(
        "install-release-binary", records, archive=archive, sha256="0" * 64, folder=tmp_path / "other"
    )
    assert wrong.status == 3
    assert ends(wrong) == {"digest": "failed", "folder": "not_run", "unpack": "not_run", "look": "not_run"}
    assert not (tmp_path / "other").exists()


def test_a_declined_change_is_resumed_with_consent(records: Path, bin_dir: str, tmp_path: Path) -> None:
    archive = tmp_path / "release.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", Path(bin_dir).parent, "bin"], check=True, timeout=120)
    inputs: dict[str, Any] = {
        "archive": archive,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "folder": tmp_path / "b1",
        "programs": "bin",
    }
    declined = run_book("install-release-binary", records, yes=False, **inputs)
    assert declined.status == 4
    assert ends(declined) == {"digest": "done", "folder": "declined", "unpack": "not_run", "look": "not_run"}
    resumed = run_book("install-release-binary", records, words=("--resume", declined.record["id"]), **inputs)
    assert resumed.status == 0, resumed.err
    assert ends(resumed) == {"digest": "earlier", "folder": "done", "unpack": "done", "look": "done"}
    assert resumed.record["facts"]["runbook"]["resumed"] == declined.record["id"]
    step = resumed.record["facts"]["runbook"]["steps"][1]
    assert step["consent"] == "by_option"
    assert "rollback: rmdir" in step["changes"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_acquire_model(records: Path, tmp_path: Path, tiny: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            return

    handler = partial(Quiet, directory=str(tmp_path))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = run_book(
            "acquire-model",
            records,
            url=f"http://127.0.0.1:{server.server_address[1]}/{tiny.name}",
            file=tmp_path / "got.gguf",
            sha256=hashlib.sha256(tiny.read_bytes()).hexdigest(),
            licence="CC0-1.0",
            origin="made by a test",
        )
        server.shutdown()
    all_done(ran)
    assert (tmp_path / "got.gguf").read_bytes() == tiny.read_bytes()
    assert "licence CC0-1.0" in str(ran.record["evidence"])


def test_choose_quantization(records: Path, bin_dir: str, tmp_path: Path, tiny: Path) -> None:
    larger = write_tiny_model(tmp_path / "larger.gguf", type_name="F32")
    ran = run_book("choose-quantization", records, larger=larger, smaller=tiny, ctx_size=512, bin_dir=bin_dir)
    all_done(ran)


def test_bounded_smoke(records: Path, bin_dir: str, embedded_model: str) -> None:
    ran = run_book(
        "bounded-smoke", records, model=embedded_model, bin_dir=bin_dir, max_tokens=16, ctx_size=512
    )
    all_done(ran)
    assert ran.record["strongest"] == "generated_output"


def test_serve_and_verify(records: Path, bin_dir: str, embedded_model: str) -> None:
    ran = run_book("serve-and-verify", records, model=embedded_model, bin_dir=bin_dir, ctx_size=512)
    all_done(ran)
    assert ran.record["strongest"] == "api_response"
    serve, ask = ran.record["facts"]["runbook"]["steps"]
    assert serve["ended"].startswith("stopped at the end of the run")
    assert ask["command"][2].startswith("http://127.0.0.1:")


def test_raise_parallelism(records: Path, bin_dir: str, embedded_model: str) -> None:
    ran = run_book("raise-parallelism", records, model=embedded_model, bin_dir=bin_dir, ctx_size=2048)
    all_done(ran)
    assert ran.record["strongest"] == "concurrency"


def test_raise_parallelism_goes_back_to_what_last_worked(
    records: Path, tmp_path: Path, embedded_model: str
) -> None:
    """The stand-in has fewer slots than asked."""
    folder = install(tmp_path / "liar", "llama-server", "fewer-slots").parent
    ran = run_book("raise-parallelism", records, model=embedded_model, bin_dir=folder, ctx_size=2048)
    assert ran.status == 3
    steps = ran.record["facts"]["runbook"]["steps"]
    assert [(step["id"], step["end"]) for step in steps[:3]] == [
        ("one", "done"),
        ("two", "failed"),
        ("one", "done"),
    ]
    assert steps[2]["fell_back_from"] == "two"


def test_observe_continuous_batching(records: Path, bin_dir: str, embedded_model: str) -> None:
    all_done(
        run_book("observe-continuous-batching", records, model=embedded_model, bin_dir=bin_dir, ctx_size=2048)
    )


def test_empty_content(records: Path, bin_dir: str, embedded_model: str) -> None:
    all_done(run_book("empty-content", records, model=embedded_model, bin_dir=bin_dir, ctx_size=2048))


def test_diagnose_load_failure(records: Path, bin_dir: str, tmp_path: Path, tiny: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny.read_bytes()[:-40_000])
    ran = run_book("diagnose-load-failure", records, model=broken, bin_dir=bin_dir)
    assert ends(ran)["look"] == "done", (ran.err, ran.open_findings())
    assert set(ends(ran).values()) == {"done"}
    steps = {step["id"]: step for step in ran.record["facts"]["runbook"]["steps"]}
    assert "model_file" in steps["file"]["not_reached"]


def test_gpu_not_used(records: Path, bin_dir: str, tiny: Path) -> None:
    """Without a device the runbook fails where it should."""
    ran = run_book("gpu-not-used", records, model=tiny, bin_dir=bin_dir, device="CUDA0")
    assert ran.status == 3
    assert ends(ran) == {"look": "done", "offload": "failed", "diagnose": "done"}


def test_out_of_memory(records: Path, bin_dir: str, tiny: Path) -> None:
    all_done(
        run_book("out-of-memory", records, model=tiny, bin_dir=bin_dir, ctx_size=2048, smaller_ctx_size=512)
    )


def test_chat_template(records: Path, bin_dir: str, embedded_model: str) -> None:
    all_done(run_book("chat-template", records, model=embedded_model, bin_dir=bin_dir))


def test_api_errors(records: Path, bin_dir: str, embedded_model: str) -> None:
    ran = run_book("api-errors", records, model=embedded_model, bin_dir=bin_dir)
    assert set(ends(ran).values()) == {"done"}, (ran.err, ran.open_findings())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_unit(records: Path, tmp_path: Path, tiny: Path, embedded_server: str) -> None:
    key = tmp_path / "key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    decisions = tmp_path / "decisions.yaml"
    decisions.write_text(f"exposure: 1\nbind: {{address: 127.0.0.1, port: 8080}}\napi_key: {{file: {key}}}\n")
    inputs: dict[str, Any] = {
        "decisions": decisions,
        "program": "/bin/true",
        "model": tiny,
        "unit": tmp_path / "llama-server.service",
    }
    incomplete = run_book("systemd-unit", records, **inputs)
    assert ends(incomplete)["decisions"] == "failed"
    with decisions.open("a") as file:
        file.write(
            "tls: {by: none, why: loopback}\nfirewall: {rule: loopback}\ncors: {origins: []}\n"
            "rate_limit: {by: none, why: loopback}\nlogging: {prompts: false, keep_days: 1}\n"
            "tools: {open: false}\nmetrics: {open: false}\nslots: {open: false}\n"
        )
    ran = run_book("systemd-unit", records, **inputs)
    assert ends(ran) == {
        "decisions": "done", "render": "done", "verify": "done", "security": "done", "start": "skipped",
    }  # fmt: skip
    assert ran.status == 4  # what is left to be done by hand is not shown to work
    done = run_book(
        "systemd-unit", records, words=("--resume", ran.record["id"], "--by-hand-done", "start"), **inputs
    )
    assert done.status == 0, done.err


def test_upgrade_and_roll_back(records: Path, tmp_path: Path, embedded_model: str) -> None:
    old, new = (install(tmp_path / name, "llama-server") for name in ("old", "new"))
    link = tmp_path / "current"
    link.symlink_to(old.parent)
    upgraded = run_book(
        "upgrade",
        records,
        words=("--by-hand-done", "restart"),
        current=old,
        candidate=new,
        current_dir=old.parent,
        candidate_dir=new.parent,
        link=link,
        model=embedded_model,
    )
    all_done(upgraded)
    assert link.resolve() == new.parent
    back = run_book(
        "roll-back",
        records,
        words=("--by-hand-done", "restart"),
        previous_dir=old.parent,
        newer_dir=new.parent,
        link=link,
        model=embedded_model,
    )
    all_done(back)
    assert link.resolve() == old.parent
