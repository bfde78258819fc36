"""How a run of a runbook went, step by step."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.boundary import BoundaryName
from llamaops.schema.shape import Shape

StepEnd = Literal["done", "failed", "stopped_at_bound", "declined", "skipped", "earlier", "not_run"]
Consent = Literal["not_needed", "given", "by_option", "declined", "not_asked"]


class RunbookInput(Shape, frozen=True, kw_only=True):
    """An input of the run."""

    name: str
    """Its name."""
    value: str | None
    """Its value; none where it was left out."""
    given: bool
    """Whether the operator gave it; else it is the default."""


class RunbookStep(Shape, frozen=True, kw_only=True):
    """How one step went."""

    id: str
    """Its id in the runbook."""
    title: str
    """What it does."""
    do: str
    """What it calls."""
    command: tuple[str, ...]
    """The command line as run."""
    end: StepEnd
    """How it ended: `earlier` in the run that this one resumed, `skipped` is left to be done by hand."""
    consent: Consent
    """What the operator said to what it changes."""
    changes: str | None = None
    """Target, scope and rollback, as they were shown."""
    ended: str = ""
    """How its program ended, in a few words."""
    expected: tuple[str, ...] = ()
    """What it had to give."""
    unmet: tuple[str, ...] = ()
    """What it did not give."""
    reached: tuple[BoundaryName, ...] = ()
    """Rungs that the step's own record reached."""
    not_reached: tuple[BoundaryName, ...] = ()
    """Rungs that failed in the step's own record."""
    record: str | None = None
    """The id of the step's own record."""
    evidence: tuple[str, ...] = ()
    """Ids of the raw output."""
    elapsed_s: float = 0.0
    """Seconds."""
    fell_back_from: str | None = None
    """The step that failed, where this is an earlier step run once more."""


class RunbookFacts(Shape, frozen=True, kw_only=True):
    """One run of one runbook."""

    id: str
    """The runbook's id."""
    title: str
    """What it is for."""
    sha256: str
    """Digest of its file."""
    inputs: tuple[RunbookInput, ...]
    """What was given."""
    steps: tuple[RunbookStep, ...]
    """The steps, in order, one that was run once more at its place in time."""
    resumed: str | None = None
    """The id of the record that this run goes on from."""
