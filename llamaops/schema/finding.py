"""The judgement of one check."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.boundary import BoundaryName
from llamaops.schema.fact import Why
from llamaops.schema.shape import Shape

Status = Literal["passed", "failed", "unknown", "not_run", "error"]
Severity = Literal["required", "advisory"]


class Finding(Shape, frozen=True, kw_only=True):
    """What was expected, what was observed, and what to do about the difference."""

    check: str
    """Stable id, `area.what-should-hold`."""
    title: str
    """What should hold, as a sentence."""
    boundary: BoundaryName | None
    """The rung of the ladder that this check belongs to; none for a judgement about no rung."""
    status: Status
    """Decided by `run_check` and nowhere later."""
    severity: Severity
    """A required check decides the exit status; an advisory one informs."""
    summary: str
    """One sentence with both sides of the comparison and their units."""
    expected: str | None = None
    """What the check asked for."""
    observed: str | None = None
    """What was there; none when it is unknown."""
    remedy: str | None = None
    """The next action; none when passed."""
    why: Why | None = None
    """For status `unknown`: the reason, as in the fact that was not known."""
    evidence: tuple[str, ...] = ()
    """Ids of the raw output that it rests on."""
    accepted: str | None = None
    """The operator's reason for going on; the status stays `failed`."""
