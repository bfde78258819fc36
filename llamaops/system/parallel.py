"""Run independent probes side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Pending(Generic[T]):
    """A call that runs in a thread of its own; `result` waits for it.

    The thread is a daemon: after an interrupt nobody waits for it. What it started is bounded, and
    `guard` stops it when llamaops ends.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._values.append(self._call())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            self._error = error

    def result(self) -> T:
        """Wait for the call and return what it returned, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._values[0]


def start(call: Callable[[], T]) -> Pending[T]:
    """Start a call in its own thread."""
    return Pending(call)
