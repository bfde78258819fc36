"""A line of text with a style, and the style of each word for a state."""

from __future__ import annotations

from typing import NamedTuple

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


class Line(NamedTuple):
    """One line of a summary."""

    text: str
    style: str = ""
