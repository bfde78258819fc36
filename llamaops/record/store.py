"""The folder of records: write one, list them, read one back.

A record is a folder, named by time, command and a few random digits, mode 0700. It holds `journal.jsonl`
from the first moment and, at the end, `record.json` and `record.md`, each written in one atomic step,
mode 0600.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from llamaops.errors import InputFileError, RecordWriteError, UsageError
from llamaops.schema.bounds import MIB
from llamaops.schema.shape import Shape
from llamaops.system import paths
from llamaops.system.files import PRIVATE_FOLDER, make_private_folder, read_limited, write_atomic
from llamaops.system.paths import AnyPath

if TYPE_CHECKING:
    from llamaops.record.groups import StoredRecord

RECORD_NAME = "record.json"
MARKDOWN_NAME = "record.md"
JOURNAL_NAME = "journal.jsonl"
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


def records_folder(environ: Mapping[str, str]) -> str:
    """Return the folder records live in: LLAMAOPS_RECORDS, else the user's state directory."""
    if named := environ.get("LLAMAOPS_RECORDS"):
        return paths.expanded(named)
    if os.name == "posix" and sys.platform != "darwin":
        # What platformdirs answers here, without loading it and pathlib: 8 ms.
        state = environ.get("XDG_STATE_HOME", "").strip() or paths.expanded("~/.local/state")
        return paths.joined(state, "llamaops", "records")
    import platformdirs

    return paths.joined(platformdirs.user_state_dir("llamaops"), "records")


def new_folder(records: AnyPath, command: str, moment: datetime) -> str:
    """Make the folder of a new record.

    Raises: RecordWriteError.
    """
    name = f"{moment:%Y%m%dT%H%M%SZ}-{command}-{os.urandom(3).hex()}"
    folder = paths.joined(records, name)
    try:
        make_private_folder(records)
        os.mkdir(folder, mode=PRIVATE_FOLDER)
    except OSError as error:
        raise RecordWriteError(
            f"cannot make the record folder {folder}: {error.strerror}",
            hint="choose another one with --records or LLAMAOPS_RECORDS",
        ) from error
    return folder


def write(folder: AnyPath, record_json: bytes, markdown: str) -> None:
    """Write the final files of a record.

    Raises: RecordWriteError.
    """
    try:
        write_atomic(paths.joined(folder, MARKDOWN_NAME), markdown.encode())
        write_atomic(paths.joined(folder, RECORD_NAME), record_json)
    except OSError as error:
        raise RecordWriteError(
            f"cannot write the record in {folder}: {error.strerror}",
            hint=f"free space there; the journal {paths.joined(folder, JOURNAL_NAME)} holds what was found",
        ) from error


def headlines(records: AnyPath) -> Iterator[Headline]:
    """Yield a headline for each record, oldest first; a folder that holds none is passed over."""
    decoder = msgspec.json.Decoder(Headline)
    try:
        folders = paths.folders_in(records)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputFileError(f"cannot list {records}: {error.strerror}") from error
    for folder in folders:
        try:
            yield decoder.decode(
                read_limited(paths.joined(folder, RECORD_NAME), limit_bytes=MAX_RECORD_BYTES)
            )
        except (OSError, msgspec.DecodeError):
            if paths.is_file(paths.joined(folder, JOURNAL_NAME)):
                yield _journal_headline(folder)


def find(records: AnyPath, name: str) -> str:
    """Return the folder of a record named by path, id, a unique start of the id, or `latest`.

    Raises: UsageError with the candidates.
    """
    given = paths.expanded(name)
    if paths.is_file(given):
        return (
            paths.parent(given) if paths.name(given) in {RECORD_NAME, JOURNAL_NAME, MARKDOWN_NAME} else given
        )
    if paths.is_folder(given):
        return given
    try:
        names = [paths.name(folder) for folder in paths.folders_in(records)]
    except OSError:
        names = []
    if name == "latest" and names:
        return paths.joined(records, names[-1])
    matches = [candidate for candidate in names if candidate.startswith(name)] or [
        candidate for candidate in names if name and name in candidate
    ]
    if len(matches) == 1:
        return paths.joined(records, matches[0])
    if matches:
        raise UsageError(
            f"{name} fits {len(matches)} records", hint="give more of: " + ", ".join(matches[-5:])
        )
    raise UsageError(f"no record {name} in {records}", hint="`llamaops record list` shows what is there")


def read(folder: AnyPath) -> StoredRecord:
    """Read a record back, validated; a run that was killed is read from its journal.

    Raises: InputFileError that names the file and the place in it.
    """
    from llamaops.record.groups import StoredRecord as Stored

    path = os.fspath(folder) if paths.is_file(folder) else paths.joined(folder, RECORD_NAME)
    if not paths.is_there(path) and paths.is_file(paths.joined(folder, JOURNAL_NAME)):
        from llamaops.record.replay import read_journal

        return msgspec.convert(read_journal(folder), Stored)
    try:
        return msgspec.json.decode(read_limited(path, limit_bytes=MAX_RECORD_BYTES), type=Stored)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise InputFileError(f"{path} is not a valid record: {error}") from error
    except msgspec.DecodeError as error:
        raise InputFileError(f"{path} is not JSON: {error}") from error


def _journal_headline(folder: str) -> Headline:
    from llamaops.record.replay import read_journal

    try:
        record = read_journal(folder)
    except InputFileError:
        return Headline(id=paths.name(folder), command="?", started_at="?", outcome="stopped")
    return msgspec.convert(
        {key: record[key] for key in ("id", "command", "started_at", "outcome", "strongest")}, Headline
    )
