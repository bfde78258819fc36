"""The canary between two real builds: switch where nothing is lost, hold where a flag is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import command
from tests.fakes.tiny_model import write_tiny_model

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(240)]


def compare(
    current: str, candidate: str, model: Path, records: Path, *flags: str, more: tuple[str, ...] = ()
) -> Any:
    words = ["canary", "--current", current, "--candidate", candidate, "--model", str(model), *more]
    ran = command.run([*words, "--format", "json", "--", "--ctx-size", "512", *flags], records)
    assert ran.out, ran.err
    command.wait_none_left()
    return ran


def findings(ran: command.Ran) -> dict[str, str]:
    return {f["check"]: f["status"] for f in ran.record["findings"] if f["check"].startswith("upgrade.")}


@pytest.fixture(scope="session")
def older_server(fetched: Callable[[str], str]) -> str:
    """Return the older of two builds, on every processor."""
    return fetched("engine-b10068")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def test_a_newer_build_that_does_the_same(
    older_server: str, b10434_server: str, model: Path, tmp_path: Path
) -> None:
    ran = compare(older_server, b10434_server, model, tmp_path / "records", "--parallel", "1", "--no-mmap")
    facts = ran.record["facts"]["canary"]
    assert facts["verdict"] == "switch", facts["reasons"]
    assert ran.record["ended"].startswith("verdict: switch")
    assert f"start {older_server} again" in facts["go_back"] or "go back" in ran.record["ended"]
    found = findings(ran)
    for name in (
        "templates-agree",
        "tokens-agree",
        "greedy-output-agrees",
        "endpoints-still-work",
        "memory-is-not-more",
    ):
        assert found[f"upgrade.{name}"] == "passed", ran.open_findings()
    for side in ("current", "candidate"):
        assert facts[side]["tokens"][0]["state"] == "known"
        assert facts[side]["endpoints"]["POST /v1/chat/completions"] == "works"
    flags = {change["flag"]: change["state"] for change in facts["flags"]["value"]["in_use"]}
    assert flags["--no-mmap"] == "deprecated"
    assert any("speed was not tested" in gap["detail"] for gap in ran.record["gaps"])


def test_a_flag_that_the_candidate_lacks_is_a_reason_to_hold(
    older_server: str, b10434_server: str, model: Path, tmp_path: Path
) -> None:
    ran = compare(b10434_server, older_server, model, tmp_path / "records", "--load-mode", "none")
    assert ran.status == 3
    facts = ran.record["facts"]["canary"]
    assert facts["verdict"] == "hold"
    assert any("--load-mode vanished" in reason for reason in facts["reasons"][:2]), facts["reasons"]
    assert not facts["candidate"]["ready"]
    assert "no --load-mode" in facts["candidate"]["why_not"]


def test_a_model_that_only_one_build_can_load(
    older_server: str, b10434_server: str, model: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model.read_bytes()[:-50_000])
    ran = compare(older_server, b10434_server, broken, tmp_path / "records")
    assert ran.status == 3
    facts = ran.record["facts"]["canary"]
    assert facts["verdict"] == "hold"
    assert not facts["current"]["ready"]


def test_the_flags_in_use_come_from_a_unit(older_server: str, model: Path, tmp_path: Path) -> None:
    unit = tmp_path / "llama.service"
    start = f"{older_server} --model {model} --host 0.0.0.0 --port 80 --ctx-size 512 --metrics"
    unit.write_text(f"[Service]\nExecStart={start}\n")
    words = ["canary", "--current", older_server, "--candidate", older_server, "--unit", str(unit)]
    ran = command.run([*words, "--format", "json"], tmp_path / "records")
    facts = ran.record["facts"]["canary"]
    assert facts["verdict"] == "switch", (facts["reasons"], ran.err)
    assert "--metrics" in facts["candidate"]["argv"]
    assert "127.0.0.1" in facts["candidate"]["argv"]
    assert "0.0.0.0" not in facts["candidate"]["argv"]


@pytest.mark.fullengine
def test_a_build_half_a_year_newer_needs_another_flag(
    older_server: str, full_engine_server: str, model: Path, tmp_path: Path
) -> None:
    records = tmp_path / "records"
    held = compare(older_server, f"{full_engine_server}/llama-server", model, records, "--mlock")
    assert held.record["facts"]["canary"]["verdict"] == "hold"
    assert "upgrade.flags-still-there" in held.open_findings()
    free = compare(older_server, f"{full_engine_server}/llama-server", model, records)
    assert free.record["facts"]["canary"]["candidate"]["ready"]
