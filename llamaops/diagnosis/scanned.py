"""What one pass over one part finds."""

from __future__ import annotations

import msgspec

from llamaops.diagnosis.parts import Part
from llamaops.facts.load_log import LoadFacts

LOG_KINDS = ("log", "text")
SHOWN_CHARS = 600


class Hit(msgspec.Struct, frozen=True):
    """A signal in a line."""

    signal: int
    part: int
    number: int
    text: str
    """The line as patterns see it: without time stamp and level."""
    shown: str
    """The line as it stands in the part, cut."""
    kind: str


class ErrorSeen(msgspec.Struct):
    """A line that looks like an error and that no rule looks for."""

    part: int
    number: int
    text: str
    before: tuple[str, ...]
    after: list[str]


class Scanned(msgspec.Struct):
    """What one pass over a part found."""

    part: Part
    lines: int = 0
    hits: dict[int, list[Hit]] = {}
    counts: dict[int, int] = {}
    errors: list[ErrorSeen] = []
    error_count: int = 0
    load: LoadFacts | None = None
    cut_lines: int = 0
    ready: list[tuple[int, str]] = []
    starts: list[tuple[int, str]] = []
    generated: list[tuple[int, str]] = []
