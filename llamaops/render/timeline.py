"""When each of several requests waited, and when its text came: one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llamaops.render.highlights import lookup

COLUMNS = 60
WAITING, TEXT, QUIET = ".", "#", "-"


def timelines(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield a title and lines for each round of requests at once, and for the late request.

    A column is a stretch of time: `.` the request waits, `#` text of it came, `-` it ran and none came.
    """
    for number, done in enumerate(lookup(facts, "concurrency.rounds") or [], 1):
        title = (
            f"Round {number}: {len(done['requests'])} requests of at most {done['max_tokens']} tokens at once"
        )
        yield title, _lines([(f"request {r['number']}", r) for r in done["requests"]], done["samples"])
    late = lookup(facts, "concurrency.late")
    if late is not None:
        named = [("running", late["running"])] + ([("late", late["late"])] if late["late"] else [])
        yield "A late request beside a running one", _lines(named, late["samples"])


def _lines(named: list[tuple[str, Any]], samples: list[Any]) -> list[str]:
    end_s = max((request["ended_s"] or request["sent_s"] for _name, request in named), default=0.0)
    width = max(end_s / COLUMNS, 1e-6)
    lines = [f"{name:<11}|{_bar(request, width)}|" for name, request in named]
    lines.append(f"{'':<11} 0{'':<{COLUMNS - 9}}{end_s:6.2f} s")
    for sample in samples:
        busy = "no answer" if sample["busy"] is None else ", ".join(map(str, sample["busy"])) or "none"
        lines.append(f"/slots at {sample['at_s']:.2f} s: busy {busy}")
    return lines


def _bar(request: Any, width: float) -> str:  # noqa: ANN401 - plain data of a record
    sent, ended = request["sent_s"], request["ended_s"]
    first = request["times_s"][0] if request["times_s"] else ended
    text = {int(at / width) for at in request["times_s"]}
    cells = []
    for column in range(COLUMNS):
        at = (column + 1) * width
        if at < sent or ended is None or column * width > ended:
            cells.append(" ")
        elif column in text:
            cells.append(TEXT)
        else:
            cells.append(WAITING if first is None or at < first else QUIET)
    return "".join(cells)
