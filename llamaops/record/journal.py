"""Append each result, redacted and flushed, as soon as it is known.

One JSON object a line: `at` (UTC), `kind` (`begin`, `step`, `facts`, `finding`, `boundary`, `end`) and
`data`. A llamaops that is killed leaves this file; `replay` makes a record of it, outcome `stopped`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from llamaops.errors import RecordWriteError
from llamaops.record.redact import Redactor
from llamaops.record.store import JOURNAL_NAME
from llamaops.system.clock import Clock, iso
from llamaops.system.files import PRIVATE_FILE
from llamaops.system.paths import AnyPath, joined


class Journal:
    """The journal of one run."""

    def __init__(self, folder: AnyPath, redactor: Redactor, clock: Clock) -> None:
        """Create the file.

        Raises: RecordWriteError.
        """
        self.path = joined(folder, JOURNAL_NAME)
        self._redactor = redactor
        self._clock = clock
        try:
            self._descriptor = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE
            )
        except OSError as error:
            raise RecordWriteError(
                f"cannot write {self.path}: {error.strerror}", hint="choose another folder with --records"
            ) from error

    def append(self, kind: str, data: object, *, name: str | None = None) -> None:
        """Append one entry; it is in the file when this returns.

        Raises: RecordWriteError.
        """
        self._write([self._entry(kind, data, name)])

    def append_all(self, kind: str, items: Iterable[object]) -> None:
        """Append several entries of a kind, searched for secrets together.

        Raises: RecordWriteError.
        """
        if entries := [self._entry(kind, data, None) for data in items]:
            self._write(entries)

    def _entry(self, kind: str, data: object, name: str | None) -> dict[str, object]:
        return {
            "at": iso(self._clock.now_utc()),
            "kind": kind,
            **({"name": name} if name is not None else {}),
            "data": msgspec.to_builtins(data),
        }

    def _write(self, entries: list[dict[str, object]]) -> None:
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in self._redactor.clean(entries))
        try:
            while lines:
                lines = lines[os.write(self._descriptor, lines) :]
        except OSError as error:
            raise RecordWriteError(
                f"cannot write {self.path}: {error.strerror}", hint="free space, or choose --records"
            ) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
