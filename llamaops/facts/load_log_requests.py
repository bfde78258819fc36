"""Timings of requests in a server's log, from one message each or from lines without a tag."""

from __future__ import annotations

from collections import deque

from llamaops.facts.load_log_lines import Line
from llamaops.facts.load_log_types import RequestTiming
from llamaops.facts.timings import timing_row

MAX_REQUESTS = 50
MAX_DIGITS = 19


class Requests:
    """The last requests, in the order they ended."""

    def __init__(self) -> None:
        self._kept: deque[RequestTiming] = deque(maxlen=MAX_REQUESTS)
        self._open = False

    def kept(self) -> tuple[RequestTiming, ...]:
        """Return them."""
        return tuple(self._kept)

    def take(self, line: Line) -> None:
        """Take a line of the engine: a timing, or the end of a block of timings."""
        if line.function in {"print_timing", "print_timings"}:
            self._open = True
            slot, task = number_of(line.fields.get("id_slot")), number_of(line.fields.get("id_task"))
            last = self._kept[-1] if self._kept else None
            if slot is not None and (last is None or (last.slot, last.task) != (slot, task)):
                self._kept.append(RequestTiming(slot=slot, task=task))
        elif line.prefixed or line.tag:
            self._open = False
        self.take_bare(line)

    def take_bare(self, line: Line) -> None:
        """Take a line that belongs to the message before it (2024 to early 2026)."""
        row = timing_row(line.message) if self._open else None
        if row is None or row.what not in {"prompt eval", "eval"}:
            return
        prompt = row.what == "prompt eval"
        last = self._kept.pop() if self._kept else RequestTiming(slot=None, task=None)
        if (last.prompt_tokens if prompt else last.generated_tokens) is not None:
            self._kept.append(last)
            last = RequestTiming(slot=last.slot, task=last.task)
        self._kept.append(with_row(last, prompt, row.number, row.ms, row.per_s))


def number_of(text: str | None) -> int | None:
    """Read an id, or None for what is none."""
    try:
        return int(text) if text is not None and len(text) <= MAX_DIGITS else None
    except ValueError:
        return None


def with_row(
    last: RequestTiming, prompt: bool, count: int | None, ms: float, per_s: float | None
) -> RequestTiming:
    """Return a request's timings with one more row."""
    return RequestTiming(
        slot=last.slot,
        task=last.task,
        prompt_tokens=count if prompt else last.prompt_tokens,
        prompt_ms=ms if prompt else last.prompt_ms,
        prompt_processing_per_s=per_s if prompt else last.prompt_processing_per_s,
        generated_tokens=last.generated_tokens if prompt else count,
        generation_ms=last.generation_ms if prompt else ms,
        token_generation_per_s=last.token_generation_per_s if prompt else per_s,
    )
