"""The commands on real engines with a real model, as an operator types them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import jsonschema
import pytest

from llamaops.record.export import schema_of
from llamaops.record.groups import StoredDocument, StoredRecord
from tests.fakes import command

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(180)]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "records"


@pytest.fixture
def bin_dir(embedded_server: str) -> str:
    return str(Path(embedded_server).parent)


ONE_THREAD = ("--threads", "1")
"""Threads that spin for each other on a busy machine would make a decode take a hundred times as long."""
QUICKLY = ("--verify", "--level", "basic")


def serving(records: Path, bin_dir: str, model: str, *more: str) -> tuple[subprocess.Popen[str], str]:
    process = command.start(
        ["serve", "--bin-dir", bin_dir, "--model", model, "--ctx-size", "512", *ONE_THREAD, *more], records
    )
    line = command.wait_for_line(process, "serving on http")
    return process, line.split()[-1]


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def newest(records: Path) -> dict[str, object]:
    folder = max(records.iterdir())
    loaded = json.loads((folder / "record.json").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_smoke_by_the_server_path(records: Path, bin_dir: str, embedded_model: str) -> None:
    ran = command.run_json(
        ["smoke", "--bin-dir", bin_dir, "--model", embedded_model, "--max-tokens", "12"], records
    )
    assert ran.status == 0, ran.err
    assert ran.record["strongest"] == "generated_output"
    generation = ran.record["facts"]["generation"]
    assert generation["chosen_via"].startswith("server: llama-completion is not installed")
    assert 0 < generation["raw"]["generated_tokens"]["value"] <= 12
    assert generation["raw"]["text"]["value"].strip()
    assert generation["chat"]["text"]["value"].strip()
    assert ran.record["facts"]["load"]["weights_on_host_bytes"]["value"] > 90 * 2**20
    command.wait_none_left()


@pytest.mark.fullengine
def test_smoke_by_the_completion_path(records: Path, full_engine: str, embedded_model: str) -> None:
    words = ["smoke", "--bin-dir", full_engine, "--model", embedded_model, "--max-tokens", "12"]
    ran = command.run_json(words, records)
    assert ran.status == 0, ran.err
    generation = ran.record["facts"]["generation"]
    assert generation["chosen_via"].startswith("completion")
    assert generation["raw"]["via"] == "completion"
    assert not generation["raw"]["text"]["value"].strip().startswith("Once upon")
    assert generation["raw"]["generated_tokens"]["value"] == 12
    argv = ran.record["facts"]["launch"]["argv"]
    assert "--no-conversation" in argv or "-no-cnv" in argv
    assert not any(word.endswith("llama-cli") for word in argv)
    command.wait_none_left()


def test_own_prompt_and_its_text_are_recorded_nowhere(
    records: Path, bin_dir: str, embedded_model: str
) -> None:
    prompt = "My cat Balthazar hides below the veranda and then"
    words = [
        "smoke",
        "--bin-dir",
        bin_dir,
        "--model",
        embedded_model,
        "--max-tokens",
        "12",
        "--prompt",
        prompt,
    ]
    ran = command.run(words, records)
    assert ran.status == 0, ran.err
    everything = ran.out + ran.err
    for path in records.rglob("*"):
        everything += path.read_text() if path.is_file() else ""
    assert "Balthazar" not in everything
    assert newest(records)["facts"]["generation"]["raw"]["text"]["why"] == "refused"  # type: ignore[index]


def test_serve_verify_once(records: Path, bin_dir: str, embedded_model: str) -> None:
    words = [
        "serve",
        "--verify",
        "--once",
        "--bin-dir",
        bin_dir,
        "--model",
        embedded_model,
        "--ctx-size",
        "1024",
    ]
    ran = command.run_json([*words, "--parallel", "2", *ONE_THREAD], records)
    assert ran.status == 0, (ran.err, ran.open_findings())
    assert ran.record["strongest"] == "concurrency"
    assert ran.state("benchmark") == "not_tested"
    assert "parallel: 2 of 2 slots" in ran.finding("concurrency.slots-run-side-by-side")["summary"]
    assert "beside a running one" in ran.finding("concurrency.late-request-joins")["summary"]
    assert "runs as planned" in ran.finding("server.plan-is-what-runs")["summary"]
    facts = ran.record["facts"]
    assert facts["lifecycle"]["stop"] in {"first_sigterm", "second_sigterm"}
    assert facts["lifecycle"]["left"] == []
    assert facts["server"]["props"]["value"]["total_slots"] == 2
    assert facts["sockets"]["listeners"]["value"][0]["address"] == "127.0.0.1"
    jsonschema.validate(ran.document, schema_of(StoredDocument))
    jsonschema.validate(ran.record, schema_of(StoredRecord))
    command.wait_none_left()


def test_serve_keeps_serving_and_passes_a_stop_on(records: Path, bin_dir: str, embedded_model: str) -> None:
    process, url = serving(records, bin_dir, embedded_model, *QUICKLY)
    with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
        assert answer.status == 200
    verified = command.run_json(["verify", url], records)
    assert verified.status == 0, verified.open_findings()
    assert verified.record["facts"]["asked"]["via"] == "attached"
    status, _out, err = end(process, signal.SIGTERM)
    assert status == 130, err
    command.wait_none_left()
    record = max(records.glob("*-serve-*")) / "record.json"
    stored = json.loads(record.read_text())
    assert stored["outcome"] == "stopped"
    assert "interrupted" in stored["ended"]
    assert stored["facts"]["lifecycle"]["stop"] != "still_serving"


def test_a_model_cut_short_is_refused_before_anything_starts(
    records: Path, bin_dir: str, embedded_model: str, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    with open(embedded_model, "rb") as source:
        cut.write_bytes(source.read(60 << 20))
    ran = command.run_json(
        ["serve", "--verify", "--once", "--bin-dir", bin_dir, "--model", str(cut)], records
    )
    assert ran.status == 3
    assert ran.state("model_file") == "failed"
    assert ran.state("model_load") == "not_tested"
    assert "lifecycle" not in ran.record["facts"]
    assert ran.record["promised"][-1] == "concurrency"


def test_a_busy_port_is_named_and_nobody_is_mistaken_for_us(
    records: Path, bin_dir: str, embedded_model: str
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        words = ["serve", "--verify", "--once", "--bin-dir", bin_dir, "--model", embedded_model]
        ran = command.run_json([*words, "--port", str(port)], records)
    assert ran.status == 3
    assert f"127.0.0.1:{port} is held by" in ran.finding("lifecycle.port-was-free")["summary"]
    assert ran.state("api_response") == "failed"


def test_a_server_that_is_killed_while_serving(records: Path, bin_dir: str, embedded_model: str) -> None:
    process, _url = serving(records, bin_dir, embedded_model)
    pid = newest(records)["facts"]["lifecycle"]["pid"]["value"]  # type: ignore[index]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, out + err
    record = newest(records)
    findings = {f["check"]: f for f in record["findings"]}  # type: ignore[attr-defined]
    assert findings["lifecycle.stays-alive"]["status"] == "failed"
    assert "SIGKILL" in findings["lifecycle.stays-alive"]["summary"]


def test_a_killed_llamaops_leaves_a_readable_journal_and_no_server(
    records: Path, bin_dir: str, embedded_model: str
) -> None:
    process, _url = serving(records, bin_dir, embedded_model, *QUICKLY)
    folder = max(records.iterdir())
    process.kill()
    process.communicate()
    command.wait_none_left()
    (folder / "record.json").unlink()  # as if the kill had come before the first one was written
    shown = command.run(["record", "show", folder.name, "--format", "json"], records)
    assert shown.status == 0, shown.err
    record = json.loads(shown.out)
    assert record["outcome"] == "stopped"
    assert record["strongest"] == "api_response"
    assert record["finished_at"] is None


@pytest.mark.parametrize("when_s", [0.0, 0.15, 0.4, 0.8, 1.5])
def test_ctrl_c_at_any_moment(records: Path, bin_dir: str, embedded_model: str, when_s: float) -> None:
    words = ["serve", "--verify", "--once", "--bin-dir", bin_dir, "--model", embedded_model]
    process = command.start(words, records)
    while not (records.exists() and any(records.iterdir())):
        time.sleep(0.01)
    time.sleep(when_s)
    status, out, err = end(process, signal.SIGINT)
    assert status in {0, 130}, out + err
    command.wait_none_left()
    record = newest(records)
    assert record["outcome"] == ("stopped" if status == 130 else "passed")
    assert "Traceback" not in err


def test_a_flag_that_this_build_lacks_is_refused_with_the_nearest(
    records: Path, bin_dir: str, embedded_model: str
) -> None:
    words = ["serve", "--bin-dir", bin_dir, "--model", embedded_model, "--", "--ctx-sise", "512"]
    ran = command.run(words, records)
    assert ran.status == 2
    assert "--ctx-sise" in ran.err
    assert "--ctx-size" in ran.err


def test_a_key_is_required_and_never_shown(records: Path, bin_dir: str, embedded_model: str) -> None:
    key = "correct-horse-battery-staple-42"
    words = ["serve", *QUICKLY, "--once", "--bin-dir", bin_dir, "--model", embedded_model, *ONE_THREAD]
    ran = command.run([*words, "--format", "json"], records, {"LLAMAOPS_API_KEY": key})
    assert ran.status == 0, ran.err
    assert ran.finding("server.key-is-required")["status"] == "passed"
    stored = "".join(path.read_text() for path in records.rglob("*") if path.is_file())
    assert key not in ran.out + ran.err + stored


def test_preflight_records_what_each_program_supports(
    records: Path, bin_dir: str, embedded_model: str
) -> None:
    ran = command.run_json(["preflight", "--bin-dir", bin_dir, "--model", embedded_model], records)
    assert ran.status == 0, ran.open_findings()
    programs = {p["role"]: p for p in ran.record["facts"]["binaries"]["found"]["value"]}
    server = programs["llama-server"]
    assert len(server["capabilities"]["value"]["options"]) > 200
    assert server["version"]["commit"]["state"] == "known"
    assert ran.record["promised"] == ["host", "binary", "model_file"]


@pytest.mark.vulkan
def test_offload_to_a_software_vulkan_device_is_believed_from_the_log(
    records: Path, bin_dir: str, tmp_path: Path, vulkan: dict[str, str]
) -> None:
    from tests.fakes.tiny_model import write_tiny_model

    model = write_tiny_model(tmp_path / "tiny.gguf", type_name="F32")
    words = [
        "smoke",
        "--bin-dir",
        bin_dir,
        "--model",
        str(model),
        "--max-tokens",
        "8",
        "--n-gpu-layers",
        "all",
    ]
    ran = command.run_json([*words, "--expect-device", "Vulkan0"], records, vulkan)
    assert ran.status == 0, ran.open_findings()
    assert ran.finding("load.weights-on-expected-device")["status"] == "passed"
    assert ran.record["facts"]["load"]["weights_on_devices_bytes"]["value"] > 0
    assert ran.finding("load.device-is-hardware")["status"] == "failed"


def test_a_gpu_that_is_not_there_is_not_claimed(records: Path, bin_dir: str, embedded_model: str) -> None:
    words = [
        "smoke",
        "--bin-dir",
        bin_dir,
        "--model",
        embedded_model,
        "--max-tokens",
        "4",
        "--n-gpu-layers",
        "99",
    ]
    ran = command.run_json(words, records)
    assert ran.status in {3, 4}
    assert ran.record["strongest"] not in {"model_load", "generated_output"}
