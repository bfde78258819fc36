"""Make a record of what a killed run had journalled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from llamaops.errors import InputFileError
from llamaops.record.boundaries import derive, strongest
from llamaops.record.record import Record, Tool
from llamaops.record.store import JOURNAL_NAME, MAX_RECORD_BYTES
from llamaops.schema.finding import Finding
from llamaops.schema.step import StepResult
from llamaops.system import paths
from llamaops.system.files import read_limited
from llamaops.system.paths import AnyPath


def read_journal(folder: AnyPath) -> dict[str, Any]:
    """Make a record, as plain data, of what a killed run had journalled.

    Raises: InputFileError.
    """
    path = paths.joined(folder, JOURNAL_NAME)
    try:
        return _assembled(paths.name(folder), path)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise InputFileError(f"{path} is not a journal of llamaops: {error}") from error


def _assembled(name: str, path: str) -> dict[str, Any]:
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


def _entries(path: str) -> Iterator[dict[str, Any]]:
    try:
        data = read_limited(path, limit_bytes=MAX_RECORD_BYTES)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    for line in data.splitlines():
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue  # the last line of a killed run may be cut
        if isinstance(entry, dict) and "kind" in entry:
            yield entry
