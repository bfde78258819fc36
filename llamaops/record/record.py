"""The record of one run."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from llamaops.schema.boundary import Boundary, BoundaryName, Gap
from llamaops.schema.evidence import Evidence
from llamaops.schema.finding import Finding
from llamaops.schema.removal import Removal
from llamaops.schema.shape import Shape
from llamaops.schema.step import StepResult

RECORD_VERSION = 1

Outcome = Literal["passed", "failed", "incomplete", "stopped"]
F = TypeVar("F")


class Tool(Shape, frozen=True, kw_only=True):
    """The program that wrote the record."""

    name: str
    """llamaops."""
    version: str
    """Its version."""
    python: str
    """The Python that ran it."""


class Record(Shape, Generic[F], frozen=True, kw_only=True):
    """Everything one run saw, judged and could not see.

    Generic in its facts: `Record[Facts]` reads and validates a file, `Record[dict[str, Shape]]` is what
    a run writes, so that a command need not import the fact groups that it does not use.
    """

    schema: Literal["llamaops.record"] = "llamaops.record"
    """What this document is."""
    schema_version: int = RECORD_VERSION
    """Changes when a reader of the old version would misread the file."""
    id: str
    """Name of the record's folder."""
    command: str
    """The llamaops command."""
    argv: tuple[str, ...]
    """The command line as given, secrets replaced."""
    started_at: str
    """UTC, ISO 8601."""
    finished_at: str | None
    """UTC, ISO 8601; none when llamaops was killed before it could write the end."""
    tool: Tool
    """The program that wrote the record."""
    outcome: Outcome
    """Computed from the findings and the boundaries that the command promises; never set."""
    exit_status: int | None
    """The command's exit status; none when it was killed."""
    ended: str
    """How the run ended, in one sentence."""
    promised: tuple[BoundaryName, ...]
    """The boundaries this command has to reach for the outcome `passed`."""
    strongest: BoundaryName | None
    """The highest boundary reached with none failed or unknown below it."""
    boundaries: tuple[Boundary, ...]
    """Every rung of the ladder, in order."""
    gaps: tuple[Gap, ...]
    """What this record does not show."""
    findings: tuple[Finding, ...]
    """The judgements, in order of the ladder, then by id."""
    steps: tuple[StepResult, ...]
    """What was done, in order."""
    facts: F
    """What was observed, by group."""
    evidence: tuple[Evidence, ...]
    """The raw output that facts and findings point to."""
    removed: tuple[Removal, ...] = ()
    """What redaction took out: rule, place and count, never the text."""


class Document(Shape, Generic[F], frozen=True, kw_only=True):
    """What `--format json` prints: one document, also when there is no record."""

    schema: Literal["llamaops.document"] = "llamaops.document"
    """What this document is."""
    schema_version: int = 1
    """Version of the document."""
    command: str
    """The llamaops command."""
    exit_status: int
    """The command's exit status."""
    record: Record[F] | None = None
    """The record; none when the command ended before one was begun."""
    error: str | None = None
    """One line that names what was wrong and the next step; none when a record says it."""
    path: str | None = None
    """Folder of the record."""
