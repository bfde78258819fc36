"""The command line: one-line errors with the next step, exit statuses, one JSON document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llamaops import __version__
from llamaops.cli.app import COMMANDS, EPILOG, main
from llamaops.errors import ExitStatus
from tests.fakes.gguf_files import FakeGguf


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMAOPS_RECORDS", str(tmp_path / "records"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "m.gguf"
    path.write_bytes(FakeGguf().to_bytes())
    return str(path)


def status_of(*words: str) -> int:
    try:
        return main(list(words))
    except SystemExit as stop:
        return int(stop.code or 0)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--version") == 0
    assert capsys.readouterr().out == f"llamaops {__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("--help") == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^    {name}\b", out, re.MULTILINE) for name in COMMANDS)


def test_every_exit_status_is_in_the_help() -> None:
    assert {str(int(status)) for status in ExitStatus} <= set(re.findall(r"\d+", EPILOG))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], ""),
        (["nonsense"], "nonsense"),
        (["smoke", "--max-tokens", "8k", "--model", "m.gguf"], "--max-tokens"),
        (["smoke", "--no-such-flag"], "--no-such-flag"),
        (["smoke", "--max", "5"], "--max"),
        (["serve", "--port", "99999"], "--port"),
        (["serve", "--host", "0.0.0.0", "--model", "m.gguf"], "--decisions"),
        (["serve", "--host", "0.0.0.0", "--decisions", "/none", "--model", "m.gguf"], "cannot read /none"),
        (["inspect"], "MODEL"),
        (["inspect", "m.gguf", "--", "-c", "5"], "--"),
        (["inspect", "m.gguf", "--accept", "model.x"], "--accept"),
        (["verify", "ftp://x"], "http"),
        (["verify", "http://127.0.0.1:1", "--api-key-file", "/nonexistent"], "/nonexistent"),
        (["record", "show", "nothing"], "nothing"),
        (["record"], "VERB"),
        (["preflight", "--bin-dir", "/nonexistent"], "/nonexistent"),
    ],
)
def test_a_mistake_is_one_clear_line_with_status_2(
    words: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(*words) == ExitStatus.USAGE
    err = capsys.readouterr().err
    assert wanted in err
    assert "Traceback" not in err
    if words:
        assert len(err.strip().splitlines()) == 1
        assert err.startswith("llamaops: ")


def test_a_wrong_configuration_file_lists_every_error(capsys: pytest.CaptureFixture[str], model: str) -> None:
    Path("llamaops.yaml").write_text("sed: 1\nport: x\n")
    assert status_of("smoke", "--model", model) == ExitStatus.USAGE
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line.split(":")[2] for line in lines] == ["1", "2"]


def test_an_error_with_format_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("verify", "ftp://x", "--format", "json") == ExitStatus.USAGE
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["exit_status"], document["record"]) == ("llamaops.document", 2, None)
    assert "http" in document["error"]


def test_inspect_prints_one_document_and_writes_a_record(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    assert status_of("inspect", model, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["record"]["strongest"] == "model_file"
    folders = list((tmp_path / "records").iterdir())
    assert [path.name for path in sorted(folders[0].iterdir())] == [
        "journal.jsonl",
        "record.json",
        "record.md",
    ]


def test_a_failed_check_is_status_3_and_an_accepted_one_is_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = tmp_path / "page.gguf"
    text.write_text("<!doctype html><html></html>")
    assert status_of("inspect", str(text), "--format", "json") == ExitStatus.FAILED
    record = json.loads(capsys.readouterr().out)["record"]
    failed = [
        f["check"] for f in record["findings"] if f["status"] == "failed" and f["severity"] == "required"
    ]
    accepts = [word for check in failed for word in ("--accept", f"{check}=known and wanted")]
    status = status_of("inspect", str(text), "--format", "json", *accepts)
    record = json.loads(capsys.readouterr().out)["record"]
    assert status in {ExitStatus.PASSED, ExitStatus.INCOMPLETE}
    assert {f["accepted"] for f in record["findings"] if f["check"] in failed} == {"known and wanted"}
    assert all(f["status"] == "failed" for f in record["findings"] if f["check"] in failed)


def test_a_refusal_after_the_record_was_begun_is_in_it(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    """The record and the process agree on the exit status of a mistake that was found on the way."""
    status = status_of("verify", "http://127.0.0.1:1", "--only", "nonsense")
    assert status == ExitStatus.USAGE
    for path in (tmp_path / "records").glob("*/record.json"):
        assert json.loads(path.read_text())["exit_status"] == status


def test_a_record_folder_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert status_of("inspect", model, "--records", str(tmp_path / "file" / "x")) == ExitStatus.BROKE
    assert "--records" in capsys.readouterr().err


def test_records_are_listed_shown_and_validated(capsys: pytest.CaptureFixture[str], model: str) -> None:
    assert status_of("record", "list") == 0
    assert "no records" in capsys.readouterr().out
    status_of("inspect", model)
    capsys.readouterr()
    for words in (
        ["list"],
        ["show", "latest"],
        ["show", "latest", "--format", "markdown"],
        ["validate", "latest"],
    ):
        assert status_of("record", *words) == 0
        assert "inspect" in capsys.readouterr().out
    assert status_of("record", "list", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["records"][0]["command"] == "inspect"


def test_a_broken_record_fails_validation_with_its_place(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    status_of("inspect", model)
    path = next((tmp_path / "records").iterdir()) / "record.json"
    path.write_text(path.read_text().replace('"outcome": "passed"', '"outcome": "great"'))
    capsys.readouterr()
    assert status_of("record", "validate", "latest") == ExitStatus.FAILED
    assert "$.outcome" in capsys.readouterr().out


def test_settings_are_listed_with_their_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMAOPS_SEED", "7")
    assert status_of("settings") == 0
    assert "now: 7 (LLAMAOPS_SEED)" in capsys.readouterr().out
