"""What redaction took out of a record."""

from __future__ import annotations

from llamaops.schema.shape import Shape


class Removal(Shape, frozen=True, kw_only=True):
    """One rule's removals at one place; never the text that was removed."""

    rule: str
    """Which rule: `given-value` for what the tool was told, else the form or the place that gave it away."""
    place: str
    """JSON pointer to the string, or the empty pointer for plain text."""
    count: int
    """How many pieces were replaced there."""
