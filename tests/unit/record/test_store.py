"""Records are folders of their owner, found by a part of their name, readable also when we were killed."""

from __future__ import annotations

import json
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from llamaops.errors import InputFileError, RecordWriteError, UsageError
from llamaops.record import store
from llamaops.record.journal import Journal
from llamaops.record.record import Tool
from llamaops.record.redact import Redactor
from llamaops.record.replay import read_journal
from llamaops.schema.boundary import Boundary
from llamaops.schema.finding import Finding
from llamaops.schema.step import StepResult
from tests.fakes.system import FakeClock
from tests.unit.render.test_renderers import record

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BEGIN = {
    "command": "serve",
    "argv": ["serve", "--verify"],
    "started_at": "2026-01-02T03:04:05.000Z",
    "tool": Tool(name="llamaops", version="0.1.0", python="3.11.0"),
    "promised": ["host", "api_response"],
}
FINDING = Finding(
    check="host.memory-is-known",
    title="t",
    boundary="host",
    status="passed",
    severity="required",
    summary="8 GiB",
)
STEP = StepResult(id="look", end="done", started_at="2026-01-02T03:04:05.000Z", elapsed_s=0.1)
HOST = Boundary(name="host", state="reached", claim="c", elapsed_s=1.5)


def stored(records: Path) -> Path:
    folder = Path(store.new_folder(records, "smoke", MOMENT))
    written = {**msgspec.to_builtins(record()), "id": folder.name, "facts": {}}
    store.write(folder, json.dumps(written).encode(), "# md\n")
    return folder


def killed(records: Path) -> Path:
    folder = Path(store.new_folder(records, "serve", MOMENT))
    journal = Journal(folder, Redactor(), FakeClock())
    journal.append("begin", BEGIN)
    journal.append("step", STEP)
    journal.append("finding", FINDING)
    journal.append("boundary", HOST)
    journal.close()
    return folder


def test_a_record_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = stored(tmp_path / "records")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize("state", ["", "/somewhere/state"])
def test_records_lie_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    import platformdirs

    monkeypatch.setenv("XDG_STATE_HOME", state)
    expected = platformdirs.user_state_path("llamaops") / "records"
    assert store.records_folder({"XDG_STATE_HOME": state}) == str(expected)


def test_what_is_written_reads_back_validated(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    assert store.read(folder).id == folder.name


def test_a_killed_run_is_read_from_its_journal_as_stopped(tmp_path: Path) -> None:
    read = store.read(killed(tmp_path))
    assert (read.outcome, read.exit_status, read.finished_at) == ("stopped", None, None)
    assert read.strongest == "host"
    assert read.boundaries[0].elapsed_s == 1.5
    assert [step.id for step in read.steps] == ["look"]


def test_a_last_line_that_was_cut_is_passed_over(tmp_path: Path) -> None:
    folder = killed(tmp_path)
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write('{"at": "2026", "kind": "find')
    assert store.read(folder).strongest == "host"


def test_a_journal_without_a_beginning_is_an_error(tmp_path: Path) -> None:
    for content, wanted in (('{"kind": "step"}\n', "not a journal"), ('{"kind": "end"}\n', "no beginning")):
        (tmp_path / "journal.jsonl").write_text(content)
        with pytest.raises(InputFileError, match=wanted):
            read_journal(tmp_path)


def test_a_journal_holds_no_secret(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Redactor(), FakeClock())
    journal.append("note", {"line": "Authorization: Bearer abcdefghijklmnop0123456789"})
    journal.close()
    assert "abcdefghijklmnop" not in (tmp_path / "journal.jsonl").read_text()


def test_headlines_are_oldest_first_and_include_killed_runs(tmp_path: Path) -> None:
    stored(tmp_path)
    killed(tmp_path)
    (tmp_path / "not-a-record").mkdir()
    found = list(store.headlines(tmp_path))
    assert sorted((item.command, item.outcome, item.strongest) for item in found) == [
        ("serve", "stopped", "host"),
        ("smoke", "failed", "host"),
    ]


def test_no_folder_means_no_records(tmp_path: Path) -> None:
    assert list(store.headlines(tmp_path / "nothing")) == []


def test_a_record_is_found_by_path_id_part_and_latest(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    for name in (str(folder), folder.name, folder.name[:-3], "latest", str(folder / "record.json"), "smoke"):
        assert store.find(tmp_path, name) == str(folder)


def test_an_ambiguous_or_unknown_name_lists_what_is_there(tmp_path: Path) -> None:
    stored(tmp_path)
    stored(tmp_path)
    with pytest.raises(UsageError, match="fits 2 records"):
        store.find(tmp_path, "20260102")
    with pytest.raises(UsageError, match="record list"):
        store.find(tmp_path, "no-such-record")


@pytest.mark.parametrize(
    ("content", "wanted"),
    [("{", "not JSON"), ("{}", "not a valid record"), ('{"schema": "other"}', "not a valid record")],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: str, wanted: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(InputFileError, match=wanted):
        store.read(path)


def test_an_unknown_member_is_refused(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    path = folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "surprise": 1}))
    with pytest.raises(InputFileError, match="surprise"):
        store.read(folder)


def test_a_folder_that_cannot_be_made_names_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordWriteError, match="--records"):
        store.new_folder(tmp_path / "file" / "records", "smoke", MOMENT)


def test_a_failed_write_leaves_no_half_file(tmp_path: Path) -> None:
    folder = Path(store.new_folder(tmp_path, "smoke", MOMENT))
    (folder / "record.json").mkdir()
    with pytest.raises(RecordWriteError, match="journal"):
        store.write(folder, b"{}", "")
    assert sorted(entry.name for entry in folder.iterdir()) == ["record.json", "record.md"]
