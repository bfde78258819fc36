"""Append each result, redacted and flushed, as soon as it is known.

One JSON object a line: `at` (UTC), `kind` (`begin`, `step`, `facts`, `finding`, `boundary`, `end`) and
`data`. A llamaops that is killed leaves this file; `replay` makes a record of it, outcome `stopped`.
"""

from __future__ import annotations

import os

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
        entry = {
            "at": iso(self._clock.now_utc()),
            "kind": kind,
            **({"name": name} if name is not None else {}),
            "data": msgspec.to_builtins(data),
        }
        line = msgspec.json.encode(self._redactor.clean(entry)) + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise RecordWriteError(
                f"cannot write {self.path}: {error.strerror}", hint="free space, or choose --records"
            ) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
