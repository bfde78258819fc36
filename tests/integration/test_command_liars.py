"""Whole commands against programs that are green on the surface: none may pass, nothing may be left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.liars import (
    COMMAND_LIARS,
    COMPLETION_LIARS,
    CROWD_LIARS,
    HONEST_BUT_UNRULY,
    SERVER_LIARS,
    SURFACE_LIARS,
    Liar,
    install,
)

# The server liars are all tried at the level of probes and checks (test_liars.py); these few show that the
# whole command draws the same conclusion from each kind.
FROM_PROBES = {
    "chat-500", "chat-empty", "chat-echo", "usage-too-large", "wrong-model-figures",
    "stream-at-once", "stream-cut", "stream-error-event", "every-address", "dead-after-ready", "redirect",
    "infinite-body", "serialized", "crowd-fails-together", "takes-broken-json", "tools-open",
}  # fmt: skip
SEEN_BY_PROBES = (*SERVER_LIARS, *CROWD_LIARS, *SURFACE_LIARS)
SERVED = [liar for liar in SEEN_BY_PROBES if liar.name in FROM_PROBES] + list(COMMAND_LIARS)


pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(120)]


@pytest.fixture
def model(embedded_model: str) -> str:
    """Return the model whose figures the fake server reports, so that only its lie can fail it."""
    return embedded_model


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


def serve(liar: Liar, tmp_path: Path, model: str, records: Path) -> command.Ran:
    install(tmp_path / "bin", liar.program, liar.name)
    words = ["serve", "--verify", "--once", "--bin-dir", str(tmp_path / "bin"), "--model", model]
    if "-ngl" in liar.flags:
        words += ["--n-gpu-layers", "99", "--expect-device", "CUDA0"]
    return command.run_json([*words, "--ready-timeout", "8"], records)


def test_the_selection_is_of_real_liars() -> None:
    assert {liar.name for liar in SEEN_BY_PROBES} >= FROM_PROBES


def _check_did_not_pass(ran: command.Ran, liar: Liar) -> None:
    """The check that sees the lie did not pass; a GPU that the host lacks already stops the run before it."""
    found = [f["status"] for f in ran.record["findings"] if f["check"] == liar.check]
    stopped_before = ran.state("host") == "failed" or ran.state("binary") == "failed"
    assert found in (["failed"], ["unknown"]) or (not found and stopped_before), ran.open_findings()


@pytest.mark.parametrize("liar", SERVED, ids=lambda liar: liar.name)
def test_a_lying_server_is_not_believed(liar: Liar, tmp_path: Path, model: str, records: Path) -> None:
    ran = serve(liar, tmp_path, model, records)
    assert ran.status in {3, 4, 5}, ran.err
    assert ran.record["outcome"] != "passed"
    assert ran.state(liar.boundary) != "reached", ran.open_findings()
    _check_did_not_pass(ran, liar)
    assert ran.record["strongest"] not in {liar.boundary, "concurrency"}
    assert all(finding["remedy"] for finding in ran.record["findings"] if finding["status"] == "failed")
    command.wait_none_left()


@pytest.mark.parametrize("liar", COMPLETION_LIARS, ids=lambda liar: liar.name)
def test_a_lying_completion_program_is_not_believed(
    liar: Liar, tmp_path: Path, model: str, records: Path
) -> None:
    install(tmp_path / "bin", liar.program, liar.name)
    words = ["smoke", "--bin-dir", str(tmp_path / "bin"), "--model", model, "--max-tokens", "16"]
    if liar.name == "claims-gpu":
        words += ["--n-gpu-layers", "99", "--expect-device", "CUDA0"]
    ran = command.run_json([*words, "--timeout", "3"], records)
    if liar.check:
        assert ran.status in {3, 4, 5}, ran.open_findings()
        assert ran.state(liar.boundary) != "reached", ran.open_findings()
        _check_did_not_pass(ran, liar)
        assert ran.record["strongest"] != "generated_output"
    command.wait_none_left()
    assert not [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_ours(pid)]


def _is_ours(pid: int) -> bool:
    """Whether a process carries the HOME of this test and a mark of llamaops."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"HOME={os.environ['HOME']}".encode() in environ.split(b"\0") and b"LLAMAOPS_CHILD=" in environ


@pytest.mark.parametrize("lie", HONEST_BUT_UNRULY)
def test_an_honest_server_that_is_hard_to_stop_is_stopped(
    lie: str, tmp_path: Path, model: str, records: Path
) -> None:
    install(tmp_path / "bin", "llama-server", lie)
    words = ["serve", "--verify", "--once", "--bin-dir", str(tmp_path / "bin"), "--model", model]
    ran = command.run_json([*words, "--ready-timeout", "20"], records)
    assert ran.record["facts"]["lifecycle"]["stop"] in {"first_sigterm", "second_sigterm", "sigkill"}, ran.err
    command.wait_none_left()
    assert not [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_ours(pid)]


def test_an_honest_fake_passes_so_that_the_lies_are_what_fails(
    tmp_path: Path, model: str, records: Path
) -> None:
    install(tmp_path / "bin", "llama-server")
    words = ["serve", "--verify", "--once", "--bin-dir", str(tmp_path / "bin"), "--model", model]
    ran = command.run_json(words, records)
    assert ran.status == 0, (ran.open_findings(), ran.err)
