"""Keep one server process alive, watch its log, and stop all of it, whatever way it goes.

States: `starting`, `running`, `stopping`, `stopped`, changed in one place each. Use it as a context
manager: leaving it always stops the server.

Stopping follows what was measured on real servers: SIGTERM can be lost in the instant of the first 200,
and a server with a waiting client never leaves on one SIGTERM, but does on the second. So: no signal in
the first 100 ms after ready, SIGTERM, 5 s, SIGTERM again, 2 s, SIGKILL; then whatever still carries the
mark of this server, wherever it went.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from llamaops.schema.bounds import MIB
from llamaops.schema.evidence import Evidence
from llamaops.system import guard, process
from llamaops.system.process import End, NotStarted, Stream

MAX_LINE_BYTES = 64 * 1024
SIGNAL_SAFE_AFTER_READY_S = 0.1

StopHow = Literal["ended_by_itself", "first_sigterm", "second_sigterm", "sigkill", "not_started"]


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a server ended and what it took."""

    end: End
    how: StopHow
    elapsed_s: float
    left: tuple[int, ...]
    """Pids that carried our mark after the server had gone; they were killed."""


@dataclass(frozen=True, slots=True)
class StopPolicy:
    """How long each stage of stopping may take, in seconds."""

    first_s: float = 5.0
    second_s: float = 2.0
    kill_s: float = 5.0


class ServerProcess:
    """A server that llamaops started and will stop."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        keep_bytes: int = 4 * MIB,
        on_line: Callable[[str], None] | None = None,
        policy: StopPolicy | None = None,
    ) -> None:
        """Prepare a server; nothing starts before `start`.

        Args:
            argv: The program and its arguments.
            env: The whole environment of the child.
            keep_bytes: How much of each of its two streams is kept.
            on_line: Called in the log thread with each complete line of either stream.
            policy: How long stopping may take.
        """
        self.argv = tuple(argv)
        self.state: Literal["new", "starting", "running", "stopping", "stopped"] = "new"
        self.stdout = Stream(keep_bytes)
        self.stderr = Stream(keep_bytes)
        self.changed = threading.Event()
        """Set when the process ends; `on_line` may set it too. A waiter clears it."""
        self.report: StopReport | None = None
        self._env = dict(env)
        self._on_line = on_line
        self._policy = policy or StopPolicy()
        self._child: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._ready_at: float | None = None
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """Return itself; `start` is called apart, because it can fail."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the server."""
        self.stop()

    @property
    def pid(self) -> int | None:
        """Return the pid of the process we started (a wrapper's, where it is one)."""
        return None if self._child is None else self._child.pid

    def start(self) -> NotStarted | None:
        """Start the process; return why not where the system refused."""
        started = process.start(self.argv, env=self._env)
        if isinstance(started, NotStarted):
            self.state = "stopped"
            self.report = StopReport(started, "not_started", 0.0, ())
            return started
        self._child, self._mark = started
        self.state = "starting"
        for target in (self._drain, self._watch):
            thread = threading.Thread(target=target, daemon=True)
            thread.start()
            self._threads.append(thread)
        return None

    def mark_ready(self) -> None:
        """Note that the server answered as ready."""
        self._ready_at = time.monotonic()
        self.state = "running"

    def poll(self) -> End | None:
        """Return how the process ended, or None while it lives."""
        if self._child is None:
            return self.report.end if self.report else None
        code = self._child.poll()
        return None if code is None else process.end_of(code)

    def wait_change(self, seconds: float) -> None:
        """Wait for the end of the process or for `changed` to be set, at most some seconds."""
        self.changed.wait(seconds)
        self.changed.clear()

    def log(self) -> str:
        """Return what was kept of the log: standard error, then standard output."""
        return self.stderr.text + self.stdout.text

    def evidence(self) -> tuple[Evidence, ...]:
        """Return what was kept of both streams."""
        label = " ".join(self.argv)
        kept = [self.stderr.evidence("stderr", label)] if self.stderr.total_bytes else []
        return tuple(kept + ([self.stdout.evidence("stdout", label)] if self.stdout.total_bytes else []))

    def signal(self, number: int) -> None:
        """Pass a signal on to the server's process group."""
        if self._child is not None and self._child.poll() is None:
            self._respect_ready_instant()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)

    def stop(self) -> StopReport:
        """Stop the server and everything that descends from it; safe to call again.

        Close your own requests first: a server with a waiting client ignores the first SIGTERM.
        """
        if self.report is not None:
            return self.report
        if self._child is None:
            self.report = StopReport(NotStarted("never started"), "not_started", 0.0, ())
            return self.report
        began = time.monotonic()
        self.state = "stopping"
        how = self._stop_child(self._child)
        left = tuple(guard.kill_marked(self._mark))
        for thread in self._threads:
            thread.join(2.0)
        self.state = "stopped"
        code = self._child.poll()
        end: End = process.end_of(code) if code is not None else process.StoppedAtBound("wall_s", killed=True)
        self.report = StopReport(end, how, time.monotonic() - began, left)
        return self.report

    def _stop_child(self, child: subprocess.Popen[bytes]) -> StopHow:
        if child.poll() is not None:
            how: StopHow = "ended_by_itself"
        else:
            how = "first_sigterm"
            self.signal(signal.SIGTERM)
            if not _gone(child, self._policy.first_s):
                how = "second_sigterm"
                self.signal(signal.SIGTERM)
                if not _gone(child, self._policy.second_s):
                    how = "sigkill"
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        _gone(child, self._policy.kill_s)
        return how

    def _respect_ready_instant(self) -> None:
        if self._ready_at is not None:
            left = self._ready_at + SIGNAL_SAFE_AFTER_READY_S - time.monotonic()
            if left > 0:
                time.sleep(left)

    def _watch(self) -> None:
        if self._child is not None:
            self._child.wait()
            self.changed.set()

    def _drain(self) -> None:
        child = self._child
        if child is None or child.stdout is None or child.stderr is None:
            return
        pending = {child.stdout: bytearray(), child.stderr: bytearray()}
        streams = {child.stdout: self.stdout, child.stderr: self.stderr}
        with selectors.DefaultSelector() as selector:
            for pipe in streams:
                selector.register(pipe, selectors.EVENT_READ, pipe)
            while selector.get_map():
                ready = selector.select(0.5)
                if not ready and child.poll() is not None:
                    break  # a descendant that left the group may hold the pipe open
                for key, _events in ready:
                    chunk = os.read(key.fd, process.READ_BYTES)
                    streams[key.data].feed(chunk)
                    self._lines(pending[key.data], chunk)
                    if not chunk:
                        selector.unregister(key.data)
        for pipe in streams:
            with contextlib.suppress(OSError):
                pipe.close()

    def _lines(self, pending: bytearray, chunk: bytes) -> None:
        """Hand complete lines on; an endless line is cut, so that it cannot fill memory."""
        pending += chunk
        *lines, rest = pending.split(b"\n")
        if not chunk and rest:
            lines.append(rest)
            rest = bytearray()
        while len(rest) >= MAX_LINE_BYTES:
            lines.append(rest[:MAX_LINE_BYTES])
            rest = rest[MAX_LINE_BYTES:]
        pending[:] = rest
        if self._on_line is not None:
            for line in lines:
                self._on_line(line[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r"))


def _gone(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
