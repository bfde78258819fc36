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
        self._held = False
        self._pending: int | None = None

    def hold(self) -> None:
        """Put a request to stop off until `release`, so that what is being begun can be ended in order."""
        self._held = True

    def release(self) -> None:
        """Raise the request that was put off, if there was one.

        Raises: Interrupted.
        """
        self._held = False
        if self._pending is not None:
            self.stop(self._pending)

    def stop(self, number: int) -> None:
        """Take a request to stop.

        Raises: Interrupted for the first one, unless it is put off or shielded from.
        """
        if self.shielded:
            return
        if self._held:
            self._pending = number
            return
        self.shield()
        raise Interrupted(number)

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
        interrupts.stop(number)

    try:
        before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    except ValueError:  # not the main thread; asking threading which one it is would load it
        before = {}
    try:
        yield interrupts
    finally:
        for number, old in before.items():
            signal.signal(number, old)
