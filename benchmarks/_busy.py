"""How long a server was at work, by the kernel's own account of its threads.

Read every few milliseconds: the CPU time of the whole process (its CPU clock, which counts nanoseconds), and
how long its threads waited for a core (the second figure of /proc/PID/task/TID/schedstat). A stretch counts
with what ran in it, at most with its own length, since threads at work at the same moment are one time of
work. Waiting for a core is the server's time too, so that a busy machine does not make llamaops look slow;
the kernel adds it when the wait is over, so it is counted back into the stretches before. Waiting for a disk
is not in it: fill the page cache first.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Self

INTERVAL_S = 0.005


class Busy:
    """Watches a process from a thread of its own until it is told to stop; a context manager."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.stretches: list[list[float]] = []
        """Each stretch: when it ended by the monotonic clock, its length, and how much of it was work."""

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
        return sum(work for at, _length, work in self.stretches if begin_s < at <= end_s)

    @property
    def busy_s(self) -> float:
        """Return the seconds of work in all."""
        return sum(work for _at, _length, work in self.stretches)

    def _watch(self) -> None:
        before, ran, waited = time.monotonic(), 0.0, 0.0
        while True:
            over = self._end.wait(INTERVAL_S)
            now = time.monotonic()
            ran_now, waited_now = max(ran, _cpu_s(self._pid)), max(waited, _waited_s(self._pid))
            length = now - before
            self.stretches.append([now, length, min(length, ran_now - ran)])
            self._count_back(now, waited_now - waited)
            before, ran, waited = now, ran_now, waited_now
            if over:
                return

    def _count_back(self, now: float, waited: float) -> None:
        """Put a wait that is over into the stretches that it lasted, where nothing else ran."""
        left = waited
        for stretch in reversed(self.stretches):
            if left <= 0 or stretch[0] < now - waited:
                return
            more = min(left, stretch[1] - stretch[2])
            stretch[2] += more
            left -= more


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process; 0 when it has ended. Source: clock_getcpuclockid(3), glibc."""
    with contextlib.suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0


def _waited_s(pid: int) -> float:
    """Return how long the threads of a process waited for a core; 0 when it has ended."""
    nanoseconds = 0
    with contextlib.suppress(OSError):
        for task in os.scandir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                nanoseconds += int(_read(f"{task.path}/schedstat").split()[1])
    return nanoseconds / 1e9


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 128).decode()
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
