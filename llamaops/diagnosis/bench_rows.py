"""Rows of llama-bench's tables: what the runs were given, and what they reached."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LINES = 400
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)")
_NO_SETTING = frozenset(("model", "size", "params", "backend", "test", "t/s"))
_NOTABLE = 1.15
"""How many times faster one of two figures is before their settings matter."""

Row = dict[str, str]


def bench_facts(text: str) -> Iterator[tuple[str, str | int]]:
    """Yield the threads of the fastest row and of the one with most, and settings that two tables differ in.

    Rows of one test are compared. Within a table settings differ on purpose (a series); two tables are
    there to compare something else, such as builds.
    """
    tables = list(_tables(text))
    yield from _threads([row for table in tables for row in table])
    if len(tables) > 1:
        differ = _differing(tables[0], tables[-1])
        if differ:
            yield "bench_differs", "; ".join(differ)


def _threads(rows: list[Row]) -> Iterator[tuple[str, int]]:
    rows = [row for row in rows if row.get("threads", "").isdigit() and _rate(row)]
    tests = [row.get("test", "") for row in rows]
    test = next((name for name in tests if name.startswith("tg")), tests[0] if tests else "")
    same = [(int(row["threads"]), _rate(row)) for row in rows if row.get("test", "") == test]
    if len({threads for threads, _ in same}) > 1:
        yield "bench_threads_most", max(threads for threads, _ in same)
        yield "bench_threads_best", max(same, key=lambda pair: pair[1])[0]


def _differing(one: list[Row], other: list[Row]) -> list[str]:
    """Return each setting in which rows of one model and test differ, with both values."""
    for a in one:
        for b in other:
            same = all(a.get(name) == b.get(name) for name in ("model", "test", "backend"))
            low, high = sorted((_rate(a), _rate(b)))
            if same and low and high > low * _NOTABLE:
                names = [name for name in (a | b) if name not in _NO_SETTING]
                pairs = [(name, a.get(name, "not given"), b.get(name, "not given")) for name in names]
                return [f"{name}: {x} and {y}" for name, x, y in pairs if x != y]
    return []


def _tables(text: str) -> Iterator[list[Row]]:
    names: list[str] = []
    rows: list[Row] = []
    for line in text.splitlines()[:MAX_LINES]:
        if line.count("|") < 4:  # noqa: PLR2004 - no row of a table
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "t/s" in cells:
            if rows:
                yield rows
            names, rows = cells, []
        elif len(cells) == len(names):
            row = dict(zip(names, cells, strict=True))
            rows += [row] if _rate(row) else []
    if rows:
        yield rows


def _rate(row: Row) -> float:
    """Return tokens per second of a row; 0 where it has none, as the line below the head."""
    found = _RATE.match(row.get("t/s", ""))
    return float(found[1]) if found else 0.0
