"""Every exception class of llamaops, each with its exit status.

An exception is for a mistake of the operator or a defect of ours. A state of the machine is data: a
missing driver, a server that dies or a model that does not fit never raises past the layer that saw it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitStatus(IntEnum):
    """What a script learns from the exit status."""

    PASSED = 0
    """Every required check passed, and there was at least one."""
    BROKE = 1
    """llamaops itself broke: a defect of ours, or a record that could not be written."""
    USAGE = 2
    """The command line or an input file is wrong."""
    FAILED = 3
    """A required check failed and was not accepted."""
    INCOMPLETE = 4
    """Nothing failed, but a required check is unknown, did not run or ended in error."""
    BOUND = 5
    """A bound on time, bytes or tokens stopped the run."""
    INTERRUPTED = 130
    """Interrupted; what was started is stopped and the record was still written."""


class LlamaopsError(Exception):
    """Base of all errors an operator sees: what happened, on what, and what to do next."""

    status: ClassVar[ExitStatus] = ExitStatus.BROKE

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """Return the one-line message, next step included."""
        return f"{self.what}; {self.hint}" if self.hint else self.what


class UsageError(LlamaopsError):
    """The command line or an environment variable is wrong."""

    status = ExitStatus.USAGE


class InputFileError(LlamaopsError):
    """A file that was named as input cannot be used (configuration, record, key file)."""

    status = ExitStatus.USAGE


class FetchError(LlamaopsError):
    """The embedded engine or model could not be fetched; nothing half-done was left."""

    status = ExitStatus.FAILED


class RecordWriteError(LlamaopsError):
    """The record could not be written where it was asked for."""

    status = ExitStatus.BROKE


class NotKnownError(Exception):
    """A check asked an unknown fact for its value; only `run_check` catches it."""

    def __init__(self, why: str, detail: str) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail


class ParseError(Exception):
    """Text was read but does not have the form its parser knows; `observe` turns it into Unknown."""


class Interrupted(BaseException):
    """A signal asked us to stop; raised in the main thread so that context managers clean up."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"signal {signal_number}")
        self.signal_number = signal_number
