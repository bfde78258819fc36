"""How long a server was at work, by what the kernel says of its threads.

Every few milliseconds each thread's state is read (/proc/PID/task/TID/stat, see proc(5)): R is running or
waiting for a core, D is waiting for a disk. A stretch between two looks counts as work where at its end any
thread was in one of the two; a server that has nothing to do has all of them asleep. States are fair on a
busy or a virtual machine, and CPU time is not: a thread that has work and no core is at work (a plain
generation of 300 tokens, with nobody else about, has 5 to 12 % less CPU time than it lasts on the machine
that this was written on). Checked against what a client sees: an idle server counts 0; requests with pauses
between them count within 3 % of the time that the client waited for answers.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Self

INTERVAL_S = 0.005
AT_WORK = b"RD"


class Busy:
    """Watches a process from a thread of its own until it is told to stop; a context manager."""

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.stretches: list[tuple[float, float]] = []
        """Each stretch: when it ended by the monotonic clock, and how much of it counts as work."""

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join()

    def between(self, begin_s: float, end_s: float) -> float:
        """Return the seconds of work between two moments of the monotonic clock."""
        return sum(work for at, work in self.stretches if begin_s < at <= end_s)

    @property
    def busy_s(self) -> float:
        """Return the seconds of work in all."""
        return sum(work for _at, work in self.stretches)

    def _watch(self) -> None:
        before = time.monotonic()
        while True:
            over = self._end.wait(INTERVAL_S)
            works = at_work(self._folder)
            now = time.monotonic()
            self.stretches.append((now, now - before if works else 0.0))
            before = now
            if over:
                return


def at_work(folder: str) -> bool:
    """Say whether any thread has something to do; none of a process that has ended."""
    with contextlib.suppress(OSError):
        for task in os.scandir(folder):
            with contextlib.suppress(OSError):
                if _state(f"{task.path}/stat") in AT_WORK:
                    return True
    return False


def _state(path: str) -> bytes:
    """Return the letter after the name in brackets, which may hold anything."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 256).rpartition(b") ")[2][:1] or b"?"
    finally:
        os.close(descriptor)


def descendant(pid: int, word: str) -> int | None:
    """Return a process below another one whose command line has a word, such as --port."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if word in process.cmdline():
                    return process.pid
    return None
