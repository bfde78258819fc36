"""`llamaops diagnose` from the command line to the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llamaops.cli.app import main
from llamaops.system import guard

FAULT = "CUDA error: an illegal memory access was encountered\n"
READY = "main: model loaded\nmain: server is listening on http://127.0.0.1:8080 - starting the main loop\n"


@pytest.fixture(autouse=True)
def _children_again() -> Iterator[None]:
    """Allow children again: a usage error stops the run, which in these tests is the whole process."""
    yield
    guard.begin_run()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLAMAOPS_RECORDS", str(tmp_path / "records"))
    path = tmp_path / "server.log"
    path.write_text(READY)
    return path


def record_of(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)["record"]
    return found


def test_a_watch_ends_with_a_record_of_each_verdict(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(READY + FAULT)
    status = main(["diagnose", "--watch", str(log), "--seconds", "1", "--format", "json"])
    record = record_of(capsys.readouterr().out)
    assert status == 3
    assert record["facts"]["diagnosis"]["slug"] == "cuda-illegal-access"
    [step] = record["steps"]
    assert step["id"] == "verdict"
    assert step["detail"].startswith("fault: cuda-illegal-access: ")
    assert record["ended"] == "watched for 1 s; 1 verdicts"


def test_a_watch_tells_its_verdicts(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--watch", str(log), "--seconds", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "no fault: no-fault-found: no fault found; the parts prove that the model was loaded"
    )
    assert "record: " in out


@pytest.mark.parametrize(
    "words",
    [
        ["--watch", "-"],
        ["--watch", "a", "b"],
        ["--watch", "LOG", "--pid", "1"],
        ["--watch", "LOG", "--seconds", "0"],
        [],
    ],
)
def test_mistakes(words: list[str], log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", *(str(log) if word == "LOG" else word for word in words)]) == 2
    assert capsys.readouterr().err


def test_the_exit_status_is_the_verdict(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statuses = {}
    for text in (READY, READY + FAULT, "nothing of note\n"):
        log.write_text(text)
        statuses[text] = main(["diagnose", str(log), "--format", "json"])
        assert record_of(capsys.readouterr().out)["facts"]["diagnosis"]["verdict"]
    assert list(statuses.values()) == [0, 3, 4]
