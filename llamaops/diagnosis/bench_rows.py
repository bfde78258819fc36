"""Rows of llama-bench's table: how many threads a run had, and what it reached."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LINES = 400
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)")


def bench_facts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the most threads of any row, and those of the fastest row, where rows differ in threads.

    Only rows of the same test are compared (the first that is of generation, or else the first).
    """
    rows = [row for row in _rows(text) if row.get("threads", "").isdigit() and _rate(row) is not None]
    tests = [row.get("test", "") for row in rows]
    test = next((name for name in tests if name.startswith("tg")), tests[0] if tests else "")
    same = [(int(row["threads"]), _rate(row) or 0.0) for row in rows if row.get("test", "") == test]
    if len({threads for threads, _ in same}) > 1:
        yield "bench_threads_most", max(threads for threads, _ in same)
        yield "bench_threads_best", max(same, key=lambda pair: pair[1])[0]


def _rows(text: str) -> Iterator[dict[str, str]]:
    names: list[str] = []
    for line in text.splitlines()[:MAX_LINES]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.count("|") < 4:  # noqa: PLR2004 - no row of a table
            continue
        if "t/s" in cells:
            names = cells
        elif names and len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _rate(row: dict[str, str]) -> float | None:
    found = _RATE.match(row.get("t/s", ""))
    return float(found[1]) if found else None
