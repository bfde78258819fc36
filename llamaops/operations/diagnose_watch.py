"""Follow a growing log and say when the verdict changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from llamaops.diagnosis.judge import judge
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import rule_set
from llamaops.diagnosis.scan import Scanner
from llamaops.errors import InputFileError
from llamaops.schema.diagnosis import Diagnosis

PAUSE_S = 0.5
CHUNK_BYTES = 1 << 20


def watch(path: str, *, wait: Callable[[], bool] | None = None) -> Iterator[Diagnosis]:
    """Yield a diagnosis whenever its slug changes, as the file grows.

    Args:
        path: The log; a file that is replaced or shortened is read from its start.
        wait: Waits for more and says whether to go on; by default for ever, half a second each time.

    Raises: InputFileError.
    """
    wait = wait or _pause
    rules = rule_set()
    said: str | None = None
    scanner, position, identity = _fresh(path), 0, None
    while True:
        try:
            with Path(path).open("rb") as source:
                now = _identity(source)
                source.seek(0, 2)
                if source.tell() < position or (identity is not None and now != identity):
                    scanner, position = _fresh(path), 0
                identity = now
                source.seek(position)
                while chunk := source.read(CHUNK_BYTES):
                    position += len(chunk)
                    scanner.feed(chunk)
        except OSError as error:
            if identity is None:
                raise InputFileError(f"cannot read {path}: {error.strerror}") from error
        found = judge([scanner.snapshot()], rules)
        if found.slug != said:
            said = found.slug
            yield found
        if not wait():
            return


def _fresh(path: str) -> Scanner:
    return Scanner(0, Part("log", Path(path).name), rule_set().signals, many_lines=True)


def _identity(source: object) -> tuple[int, int]:
    import os

    status = os.fstat(source.fileno())  # type: ignore[attr-defined]  # a file opened above
    return status.st_dev, status.st_ino


def _pause() -> bool:
    time.sleep(PAUSE_S)
    return True
