"""The folder of records: write one, list them, read one back.

A record is a folder, named by time, command and a few random digits, mode 0700. It holds `journal.jsonl`
from the first moment and, at the end, `record.json` and `record.md`, each written in one atomic step,
mode 0600.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from llamaops.errors import InputFileError, RecordWriteError, UsageError
from llamaops.record.boundaries import derive, strongest
from llamaops.record.journal import JOURNAL_NAME
from llamaops.record.record import Record, Tool
from llamaops.schema.bounds import MIB
from llamaops.schema.finding import Finding
from llamaops.schema.shape import Shape
from llamaops.schema.step import StepResult
from llamaops.system.files import make_private_folder, read_limited, write_atomic

if TYPE_CHECKING:
    from llamaops.record.groups import StoredRecord

RECORD_NAME = "record.json"
MARKDOWN_NAME = "record.md"
MAX_RECORD_BYTES = 64 * MIB


class Headline(Shape, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What a list of records shows; everything else in the file is passed over."""

    id: str
    """Name of the folder."""
    command: str
    """The command."""
    started_at: str
    """UTC."""
    outcome: str
    """The outcome."""
    strongest: str | None = None
    """The strongest boundary reached."""


def records_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder records live in: LLAMAOPS_RECORDS, else the user's state directory."""
    if named := environ.get("LLAMAOPS_RECORDS"):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_state_dir("llamaops")) / "records"


def new_folder(records: Path, command: str, moment: datetime) -> Path:
    """Make the folder of a new record.

    Raises: RecordWriteError.
    """
    name = f"{moment:%Y%m%dT%H%M%SZ}-{command}-{secrets.token_hex(3)}"
    folder = records / name
    try:
        make_private_folder(records)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise RecordWriteError(
            f"cannot make the record folder {folder}: {error.strerror}",
            hint="choose another one with --records or LLAMAOPS_RECORDS",
        ) from error
    return folder


def write(folder: Path, record_json: bytes, markdown: str) -> None:
    """Write the final files of a record.

    Raises: RecordWriteError.
    """
    try:
        write_atomic(folder / MARKDOWN_NAME, markdown.encode())
        write_atomic(folder / RECORD_NAME, record_json)
    except OSError as error:
        raise RecordWriteError(
            f"cannot write the record in {folder}: {error.strerror}",
            hint=f"free space there; the journal {folder / JOURNAL_NAME} holds what was found",
        ) from error


def headlines(records: Path) -> Iterator[Headline]:
    """Yield a headline for each record, oldest first; a folder that holds none is passed over."""
    decoder = msgspec.json.Decoder(Headline)
    try:
        folders = sorted(entry for entry in records.iterdir() if entry.is_dir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputFileError(f"cannot list {records}: {error.strerror}") from error
    for folder in folders:
        try:
            yield decoder.decode(read_limited(str(folder / RECORD_NAME), limit_bytes=MAX_RECORD_BYTES))
        except (OSError, msgspec.DecodeError):
            if (folder / JOURNAL_NAME).is_file():
                yield _journal_headline(folder)


def find(records: Path, name: str) -> Path:
    """Return the folder of a record named by path, id, a unique start of the id, or `latest`.

    Raises: UsageError with the candidates.
    """
    given = Path(name).expanduser()
    if given.is_file():
        return given.parent if given.name in {RECORD_NAME, JOURNAL_NAME, MARKDOWN_NAME} else given
    if given.is_dir():
        return given
    try:
        names = sorted(entry.name for entry in records.iterdir() if entry.is_dir())
    except OSError:
        names = []
    if name == "latest" and names:
        return records / names[-1]
    matches = [candidate for candidate in names if candidate.startswith(name)] or [
        candidate for candidate in names if name and name in candidate
    ]
    if len(matches) == 1:
        return records / matches[0]
    if matches:
        raise UsageError(
            f"{name} fits {len(matches)} records", hint="give more of: " + ", ".join(matches[-5:])
        )
    raise UsageError(f"no record {name} in {records}", hint="`llamaops record list` shows what is there")


def read(folder: Path) -> StoredRecord:
    """Read a record back, validated; a run that was killed is read from its journal.

    Raises: InputFileError that names the file and the place in it.
    """
    from llamaops.record.groups import StoredRecord as Stored

    path = folder if folder.is_file() else folder / RECORD_NAME
    if not path.exists() and (folder / JOURNAL_NAME).is_file():
        return msgspec.convert(read_journal(folder), Stored)
    try:
        return msgspec.json.decode(read_limited(str(path), limit_bytes=MAX_RECORD_BYTES), type=Stored)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path} is not a valid record: {error}") from error
    except msgspec.DecodeError as error:
        raise InputFileError(f"{path} is not JSON: {error}") from error


def read_journal(folder: Path) -> dict[str, Any]:
    """Make a record, as plain data, of what a killed run had journalled.

    Raises: InputFileError.
    """
    path = folder / JOURNAL_NAME
    try:
        return _assembled(folder.name, path)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise InputFileError(f"{path} is not a journal of llamaops: {error}") from error


def _assembled(name: str, path: Path) -> dict[str, Any]:
    begin: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    findings: dict[str, Finding] = {}
    steps: list[Any] = []
    elapsed: dict[str, float] = {}
    for entry in _entries(path):
        match entry["kind"]:
            case "begin":
                begin = entry["data"]
            case "facts":
                facts[entry["name"]] = entry["data"]
            case "finding":
                finding = msgspec.convert(entry["data"], Finding)
                findings[finding.check] = finding
            case "step":
                steps.append(msgspec.to_builtins(msgspec.convert(entry["data"], StepResult)))
            case "boundary" if entry["data"].get("elapsed_s") is not None:
                elapsed[entry["data"]["name"]] = entry["data"]["elapsed_s"]
            case _:
                continue
    if not begin:
        raise InputFileError(f"{path} has no beginning, so it is not a journal of llamaops")
    boundaries = derive(findings.values(), elapsed)
    record: Record[dict[str, Any]] = Record(
        id=name,
        command=begin["command"],
        argv=tuple(begin["argv"]),
        started_at=begin["started_at"],
        finished_at=None,
        tool=msgspec.convert(begin["tool"], Tool),
        outcome="stopped",
        exit_status=None,
        ended="llamaops was killed; this was read from its journal",
        promised=tuple(begin["promised"]),
        strongest=strongest(boundaries),
        boundaries=boundaries,
        gaps=(),
        findings=tuple(findings.values()),
        steps=(),
        facts=facts,
        evidence=(),
    )
    built: dict[str, Any] = msgspec.to_builtins(record)
    return {**built, "steps": steps}


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        data = read_limited(str(path), limit_bytes=MAX_RECORD_BYTES)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # the last line of a killed run may be cut
        if isinstance(entry, dict) and "kind" in entry:
            yield entry


def _journal_headline(folder: Path) -> Headline:
    try:
        record = read_journal(folder)
    except InputFileError:
        return Headline(id=folder.name, command="?", started_at="?", outcome="stopped")
    return msgspec.convert(
        {key: record[key] for key in ("id", "command", "started_at", "outcome", "strongest")}, Headline
    )
