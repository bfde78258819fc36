"""One changing line on a terminal for what takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

EVERY_S = 0.1


def meter(label: str) -> Callable[[int, int], None] | None:
    """Return what shows bytes done of all on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None
    began = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        ended = done >= total
        if now - shown < EVERY_S and not ended:
            return
        shown = now
        rate = done / max(now - began, 1e-3) / 2**20
        percent = 100 * done // total if total else 100
        end = "\n" if ended else ""
        sys.stderr.write(f"\r\x1b[K{label}: {percent} % of {total / 2**20:,.0f} MiB, {rate:,.0f} MiB/s{end}")
        sys.stderr.flush()

    return show
