"""Follow a growing log and say when the verdict changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llamaops.diagnosis.judge import judge
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import rule_set
from llamaops.diagnosis.scan import Scanner
from llamaops.errors import InputFileError, Interrupted
from llamaops.schema.diagnosis import Diagnosis

if TYPE_CHECKING:
    from llamaops.operations.session import Session

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


def watch_in_session(
    session: Session, path: str, tell: Callable[[Diagnosis], None], seconds: float | None
) -> str:
    """Follow a log until it is interrupted or the time is over; the record holds each change of the verdict.

    Args:
        session: Where the verdicts go: each is a step, the last one is the record's diagnosis.
        path: The log.
        tell: Is told each verdict as it is reached.
        seconds: How long to follow it; None for until an interrupt, which is its usual end.

    Returns: how it ended, in a sentence.

    Raises: InputFileError.
    """
    from llamaops.checks.diagnosis import boundary_of
    from llamaops.operations.diagnose import NOT_COVERED

    session.begin((), (*NOT_COVERED, "what was written to the log after the end of the watch"))
    ended = f"watched for {seconds} s"
    changes = 0
    try:
        for found in watch(path, wait=None if seconds is None else _until(time.monotonic() + seconds)):
            with session.step("verdict", f"{found.verdict}: {found.slug}: {found.summary}"[:500]):
                changes += 1
                session.add("diagnosis", found)
            session.promised = (boundary_of(found),)
            tell(found)
    except Interrupted as stop:
        ended = f"watched until {stop}"
    session.judge("diagnosis")
    return f"{ended}; {changes} verdicts"


def _until(end: float) -> Callable[[], bool]:
    def wait() -> bool:
        left = end - time.monotonic()
        time.sleep(max(0.0, min(PAUSE_S, left)))
        return left > 0

    return wait


def _fresh(path: str) -> Scanner:
    return Scanner(0, Part("log", Path(path).name), rule_set().signals, many_lines=True)


def _identity(source: object) -> tuple[int, int]:
    import os

    status = os.fstat(source.fileno())  # type: ignore[attr-defined]  # a file opened above
    return status.st_dev, status.st_ino


def _pause() -> bool:
    time.sleep(PAUSE_S)
    return True
