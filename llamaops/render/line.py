"""A line of text with a style, and the style of each word for a state."""

from __future__ import annotations

import msgspec

STYLES = {
    "reached": "green",
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "unknown": "yellow",
    "incomplete": "yellow",
    "stopped": "yellow",
    "not_tested": "dim",
    "not_run": "dim",
}


class Line(msgspec.Struct, frozen=True):
    """One line of a summary."""

    text: str
    style: str = ""
