"""The timings that llama-completion (and its predecessors) and llama-server print.

Two rates, and their names matter: prompt processing (tokens of the prompt per second) and token
generation (tokens generated per second). Neither says when the first token arrived.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from llamaops.facts.load_log_lines import lines_of
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape

# `prompt eval time`, `eval time`, `generation eval time` (2024), `load time`, `total time`.
_ROW = re.compile(
    r"\s*(prompt eval|generation eval|eval|load|total|sampling|sample) time\s*=\s*([\d.]{1,20}) ms"
    r"(?:\s*/\s*(\d{1,12})\s*(?:tokens|runs)?)?"
    r"(?:\s*\([^()]{0,60}?([\d.]{1,20}|inf|-?nan) tokens per second\))?"
)
# Newest first; the tag also tells the era of the build.
_PRINTERS = frozenset({"common_perf_print", "llama_perf_context_print", "llama_print_timings"})


NO_RATE = 1e6
"""What old builds print for no tokens in no time."""


class Row(NamedTuple):
    """One timing line."""

    what: str
    ms: float
    number: int | None
    per_s: float | None


class CompletionTimings(Shape, frozen=True, kw_only=True):
    """The last block of timings of a one-shot generation."""

    prompt_tokens: Fact[int]
    """Tokens of the prompt that were evaluated."""
    prompt_ms: Fact[float]
    """Milliseconds spent on them."""
    prompt_processing_per_s: Fact[float]
    """Prompt processing rate in tokens per second; not a time to first token."""
    generated_runs: Fact[int]
    """Decode runs of one token; the first generated token comes from the prompt and is not one."""
    generation_ms: Fact[float]
    """Milliseconds spent on them."""
    token_generation_per_s: Fact[float]
    """Token generation rate in tokens per second."""
    load_ms: Fact[float]
    """Milliseconds that the program counts as loading."""
    total_ms: Fact[float]
    """Milliseconds in all, without loading."""
    printed_by: Fact[str]
    """The function that printed the block; it tells the era of the build."""


def timing_row(message: str) -> Row | None:
    """Read one timing line without its tag, or None."""
    if " time" not in message:
        return None
    found = _ROW.match(message)
    if found is None:
        return None
    what, ms, count, per_s = found.groups()
    try:
        milliseconds = float(ms)
    except ValueError:
        return None
    what = {"generation eval": "eval", "sample": "sampling"}.get(what, what)
    return Row(what, milliseconds, int(count) if count else None, _rate(per_s))


def _rate(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < NO_RATE else None


def parse_completion_timings(text: str, source: Source) -> CompletionTimings:
    """Read the last timing block of a one-shot generation's standard error."""
    printed_by, rows = _last_block(text.splitlines())

    def unknown(what: str) -> Unknown:
        return Unknown(why="absent", detail=f"the log has no line with {what}", source=source)

    def count(what: str) -> Fact[int]:
        row = rows.get(what)
        return (
            unknown(f"{what} tokens")
            if row is None or row.number is None
            else Known(value=row.number, source=source)
        )

    def ms(what: str) -> Fact[float]:
        row = rows.get(what)
        return unknown(f"{what} time") if row is None else Known(value=row.ms, source=source)

    def rate(what: str) -> Fact[float]:
        row = rows.get(what)
        if row is None or row.per_s is None or not row.number:
            return unknown(f"a usable {what} rate")
        return Known(value=row.per_s, source=source)

    return CompletionTimings(
        prompt_tokens=count("prompt eval"),
        prompt_ms=ms("prompt eval"),
        prompt_processing_per_s=rate("prompt eval"),
        generated_runs=count("eval"),
        generation_ms=ms("eval"),
        token_generation_per_s=rate("eval"),
        load_ms=ms("load"),
        total_ms=ms("total"),
        printed_by=Known(value=printed_by, source=source) if printed_by else unknown("timings"),
    )


def _last_block(lines: Iterable[str]) -> tuple[str, dict[str, Row]]:
    """Return who printed the last block, and its rows; a repeated row begins a new block."""
    printed_by, rows = "", dict[str, Row]()
    for tag, message in _tagged_lines(lines):
        row = timing_row(message)
        if row is None:
            continue
        if tag != printed_by or row.what in rows:
            printed_by, rows = tag, {}
        rows[row.what] = row
    return printed_by, rows


def _tagged_lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for raw in lines:
        if " time" not in raw:
            continue
        for line in lines_of(raw):
            if line.tag in _PRINTERS and not line.output:
                yield line.tag, line.message
