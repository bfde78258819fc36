"""The answer of a diagnosis."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.boundary import BoundaryName
from llamaops.schema.shape import Shape

Place = BoundaryName | Literal["exposure"]
Verdict = Literal["fault", "no_fault", "unknown"]
Sure = Literal["certain", "likely", "possible"]


class EvidenceLine(Shape, frozen=True, kw_only=True):
    """A line that a conclusion rests on."""

    part: str
    """Name of the part it is in."""
    number: int
    """Line number in that part, counted from 1."""
    text: str
    """The line, cut, values of secrets replaced."""


class NextAction(Shape, frozen=True, kw_only=True):
    """The safest thing to do next."""

    do: str
    """What to do, as a sentence."""
    run: str | None = None
    """A command to run, where there is one."""
    changes_state: bool = False
    """Whether doing it changes the machine, a service or a file."""


class Cause(Shape, frozen=True, kw_only=True):
    """One thing that was concluded."""

    slug: str
    """Stable name; `llamaops explain SLUG` tells more."""
    says: str
    """The cause in one sentence, with the values of this situation."""
    boundary: Place
    """Where it shows; `exposure` for who can reach the server or read its secrets."""
    severity: Literal["fatal", "error", "warn", "info"]
    """`info` is for what looks like a fault and is none."""
    sure: Sure
    """How sure this is."""
    why_sure: str
    """Why it is that sure, and not more."""
    evidence: tuple[EvidenceLine, ...]
    """The lines that prove it."""
    rules_out: tuple[str, ...] = ()
    """What the same lines rule out."""
    next: NextAction
    """The safest next action."""
    do_not_conclude: tuple[str, ...] = ()
    """What a careless reader would conclude, and why not."""
    role: Literal["primary", "contributing", "symptom", "recovered", "harmless", "earlier"] = "primary"
    """Its part in the situation."""


class UnexplainedError(Shape, frozen=True, kw_only=True):
    """An error line that no rule explains, with its neighbourhood."""

    line: EvidenceLine
    """The line."""
    before: tuple[str, ...] = ()
    """The lines before it."""
    after: tuple[str, ...] = ()
    """The lines after it."""


class PartSeen(Shape, frozen=True, kw_only=True):
    """A part of the situation."""

    name: str
    """Its name: a file, or a number and a kind."""
    kind: str
    """What it was taken for."""
    lines: int
    """Lines read."""
    used: bool
    """Whether anything in it was understood."""
    note: str | None = None
    """What was cut or could not be read."""


class Diagnosis(Shape, frozen=True, kw_only=True):
    """What the parts of a situation mean, taken together."""

    verdict: Verdict
    """`unknown` is an answer: nothing known explains what the parts show."""
    slug: str
    """Slug of the primary cause, `no-fault-found`, or `unknown`."""
    summary: str
    """The answer in one sentence."""
    primary: Cause | None = None
    """The primary cause; none when there is none, or it is not known."""
    contributing: tuple[Cause, ...] = ()
    """What else was found: contributing causes, symptoms, and what was recovered from or is harmless."""
    proven: Place | None = None
    """The strongest boundary that the parts prove, on the way up."""
    proof: tuple[EvidenceLine, ...] = ()
    """The lines that prove it."""
    unexplained: tuple[UnexplainedError, ...] = ()
    """Error lines that no rule explains, the first ones."""
    unexplained_count: int = 0
    """How many there are."""
    exit_status: int | None = None
    """Exit status of the program, where the parts tell it."""
    parts: tuple[PartSeen, ...] = ()
    """What was read, and as what."""
