"""One thing an operation did, and how it ended."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.shape import Shape


class StepResult(Shape, frozen=True, kw_only=True):
    """A step of an operation: what was done, when, and how it ended."""

    id: str
    """Short stable name, such as `collect-host` or `start-server`."""
    end: Literal["done", "failed", "stopped_at_bound", "interrupted", "skipped"]
    """How it ended; `stopped_at_bound` decides the exit status."""
    started_at: str
    """UTC, ISO 8601."""
    elapsed_s: float
    """Seconds."""
    detail: str = ""
    """One sentence: the command that ran, or why it was skipped."""
    evidence: tuple[str, ...] = ()
    """Ids of the raw output."""
