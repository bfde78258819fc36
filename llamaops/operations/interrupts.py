"""Turn the first request to stop into an exception in the main thread, so that everything cleans up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from llamaops.errors import Interrupted

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Whether a request to stop is still turned into an exception."""

    def __init__(self) -> None:
        self.shielded = False

    def shield(self) -> None:
        """Let the work at hand (stopping, writing the record) end undisturbed; it is bounded."""
        self.shielded = True


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Raise Interrupted at the first SIGINT, SIGTERM or SIGHUP; later ones are ignored.

    Cleaning up is bounded (a stop takes at most some seconds), so a second Ctrl-C need not cut it short
    and leave a server behind. Outside the main thread, where Python allows no handlers, it does nothing.
    """
    interrupts = Interrupts()

    def handler(number: int, _frame: FrameType | None) -> None:
        if not interrupts.shielded:
            interrupts.shield()
            raise Interrupted(number)

    try:
        before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    except ValueError:  # not the main thread; asking threading which one it is would load it
        before = {}
    try:
        yield interrupts
    finally:
        for number, old in before.items():
            signal.signal(number, old)
