"""Run one child process within bounds; how it ended is a value.

The contract, for hostile children too:

- argv is a sequence, never a shell; standard input is the null device; the environment is passed whole.
- The child leads its own session, so that its whole group can be stopped, and carries a one-time mark
  in its environment, so that a descendant which left the group is still found and stopped.
- Both pipes are drained from the start, keeping the first and the last half of `keep_bytes`. A child
  that floods can neither block nor fill memory, and is stopped at `total_bytes`.
- At `wall_s`: SIGTERM to the group, `grace_s`, SIGKILL. What was captured is kept.
- After a normal exit the group is killed too, so that a grandchild holding a pipe cannot hold us.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO

import msgspec

from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence, EvidenceKind, evidence_of
from llamaops.system import guard

READ_BYTES = 64 * 1024
POLL_S = 0.02
MARK_VARIABLE = "LLAMAOPS_CHILD"


class Exited(msgspec.Struct, frozen=True):
    """The child ended by itself."""

    code: int


class Signalled(msgspec.Struct, frozen=True):
    """The child was ended by a signal that we did not send."""

    number: int

    @property
    def name(self) -> str:
        """Return the signal's name, such as SIGILL."""
        try:
            return signal.Signals(self.number).name
        except ValueError:
            return f"signal {self.number}"


class StoppedAtBound(msgspec.Struct, frozen=True):
    """We stopped the child because it reached a bound."""

    bound: str
    """`wall_s` or `total_bytes`."""
    killed: bool
    """Whether SIGKILL was needed."""


class NotStarted(msgspec.Struct, frozen=True):
    """The operating system refused to start it."""

    why: str
    errno: int | None = None


End = Exited | Signalled | StoppedAtBound | NotStarted


class Stream(msgspec.Struct):
    """What is kept of one stream: its start, its end, its length and its digest."""

    keep_bytes: int
    total_bytes: int = 0
    _head: bytearray = msgspec.field(default_factory=bytearray)
    _tail: deque[bytes] = msgspec.field(default_factory=deque)
    _tail_bytes: int = 0
    _digest: hashlib._Hash = msgspec.field(default_factory=hashlib.sha256)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(chunk)
        self._digest.update(chunk)
        half = max(1, self.keep_bytes // 2)
        room = half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_bytes += len(chunk)
        while self._tail_bytes - len(self._tail[0]) >= half:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        """Whether something between start and end was dropped."""
        return self.total_bytes > len(self._head) + min(self._tail_bytes, self._half)

    @property
    def _half(self) -> int:
        return max(1, self.keep_bytes // 2)

    @property
    def data(self) -> bytes:
        """Return what was kept, with a marker line where something was dropped."""
        tail = b"".join(self._tail)[-self._half :]
        if not self.truncated:
            return bytes(self._head) + tail
        dropped = self.total_bytes - len(self._head) - len(tail)
        return bytes(self._head) + b"\n[... %d bytes dropped ...]\n" % dropped + tail

    @property
    def text(self) -> str:
        """Return what was kept, invalid UTF-8 replaced."""
        return self.data.decode("utf-8", "replace")

    def evidence(self, kind: EvidenceKind, label: str) -> Evidence:
        """Return what was kept as evidence, with the digest of the whole stream."""
        return evidence_of(
            kind,
            label,
            self.data,
            total_bytes=self.total_bytes,
            sha256=self._digest.hexdigest(),
            truncated=self.truncated,
        )


class Completed(msgspec.Struct, frozen=True):
    """A child that has ended, with what it said."""

    argv: tuple[str, ...]
    end: End
    stdout: Stream
    stderr: Stream
    elapsed_s: float

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.end == Exited(0)


def describe(end: End) -> str:
    """Say in a few words how a child ended."""
    match end:
        case Exited(code):
            return f"exit status {code}"
        case Signalled() as signalled:
            return f"ended by {signalled.name}"
        case StoppedAtBound(bound, killed):
            how = "killed" if killed else "stopped"
            return f"{how} at the bound {bound}"
        case NotStarted(why):
            return f"not started: {why}"


def end_of(returncode: int) -> End:
    """Translate what `Popen.returncode` holds."""
    return Signalled(-returncode) if returncode < 0 else Exited(returncode)


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    pipe_bytes: int = -1,
) -> tuple[subprocess.Popen[bytes], str] | NotStarted:
    """Start a child in its own session with piped output; return it and its mark.

    The mark is the value of LLAMAOPS_CHILD in the environment of the child and of whatever it starts.
    """
    try:
        mark = guard.new_mark()
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**env, MARK_VARIABLE: mark},
            cwd=cwd,
            start_new_session=True,
            close_fds=True,
            pipesize=pipe_bytes,
        )
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return NotStarted(why=f"{argv[0]}: {what}", errno=number)
    return process, mark


def stop_tree(process: subprocess.Popen[bytes], mark: str, *, grace_s: float) -> bool:
    """Stop a child, its group and every descendant with its mark; say whether SIGKILL was needed.

    The order matters: the group gets SIGTERM and `grace_s` seconds; then SIGKILL; then whatever left
    the group and still carries the mark is killed too.
    """
    killed = False
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            killed = True
    _signal_group(process.pid, signal.SIGKILL)
    guard.kill_marked(mark)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    return killed


def run(
    argv: Sequence[str],
    *,
    bounds: Bounds,
    env: Mapping[str, str],
    cwd: str | None = None,
    on_stdout: Callable[[bytes], None] | None = None,
    on_started: Callable[[subprocess.Popen[bytes]], None] | None = None,
    pipe_bytes: int = -1,
) -> Completed:
    """Run a child to its end or to a bound, and return how it ended and what it said.

    Args:
        argv: The program (a path, or a name looked up in `env`'s PATH) and its arguments.
        bounds: Limits; see `Bounds`.
        env: The child's whole environment.
        cwd: Its working directory.
        on_stdout: Called with each chunk of standard output as it arrives.
        on_started: Called once before its output is read; the time it takes counts.
        pipe_bytes: Size of each pipe, so that a child waits before it has said more; -1 is the system's.

    Units: seconds and bytes. Raises: nothing for a state of the machine.
    """
    began = time.monotonic()
    stdout, stderr = Stream(bounds.keep_bytes), Stream(bounds.keep_bytes)
    started = start(argv, env=env, cwd=cwd, pipe_bytes=pipe_bytes)
    if isinstance(started, NotStarted):
        return Completed(tuple(argv), started, stdout, stderr, time.monotonic() - began)
    process, mark = started
    bound: str | None = None
    killed = False
    try:
        if on_started is not None:
            on_started(process)
        bound = _drain(process, stdout, stderr, began + bounds.wall_s, bounds, on_stdout)
    finally:
        # Also on an interrupt: the child is stopped before the exception goes on.
        killed = stop_tree(process, mark, grace_s=bounds.grace_s)
        _drain_rest(process, stdout, stderr)
    elapsed_s = time.monotonic() - began
    if bound is not None:
        return Completed(tuple(argv), StoppedAtBound(bound, killed), stdout, stderr, elapsed_s)
    return Completed(tuple(argv), end_of(process.returncode), stdout, stderr, elapsed_s)


def _drain(
    process: subprocess.Popen[bytes],
    stdout: Stream,
    stderr: Stream,
    deadline: float,
    bounds: Bounds,
    on_stdout: Callable[[bytes], None] | None,
) -> str | None:
    """Read both pipes until the child has ended or a bound is reached; return the bound's name."""
    exited = _watch_exit(process)
    with selectors.DefaultSelector() as selector:
        for pipe, stream in ((process.stdout, stdout), (process.stderr, stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, stream)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return "wall_s"
            ready = selector.select(min(left, POLL_S if exited.is_set() else 0.1))
            if not ready and exited.is_set():
                return None
            for key, _events in ready:
                chunk = _read(key.fileobj)  # type: ignore[arg-type]  # registered above as pipes
                if chunk is None:
                    continue
                if chunk == b"":
                    selector.unregister(key.fileobj)
                    continue
                key.data.feed(chunk)
                if on_stdout is not None and key.data is stdout:
                    on_stdout(chunk)
                if stdout.total_bytes + stderr.total_bytes > bounds.total_bytes:
                    return "total_bytes"
    # Both pipes are closed; the child may still run without them.
    if not exited.wait(max(0.0, deadline - time.monotonic())):
        return "wall_s"
    return None


def _watch_exit(process: subprocess.Popen[bytes]) -> threading.Event:
    """Return an event that is set when the child ends; a grandchild may hold its pipes for longer."""
    exited = threading.Event()

    def watch() -> None:
        process.wait()
        exited.set()

    threading.Thread(target=watch, daemon=True).start()
    return exited


def _drain_rest(process: subprocess.Popen[bytes], stdout: Stream, stderr: Stream) -> None:
    """Take what is left in the pipes of a child that has ended, without waiting, and close them."""
    for pipe, stream in ((process.stdout, stdout), (process.stderr, stderr)):
        if pipe is None:
            continue
        with contextlib.suppress(OSError, ValueError):
            os.set_blocking(pipe.fileno(), False)
            while chunk := _read(pipe):
                stream.feed(chunk)
                if stream.total_bytes > 2**30:
                    break
        with contextlib.suppress(OSError):
            pipe.close()


def _read(pipe: IO[bytes]) -> bytes | None:
    """Read what is there; None when nothing is, empty at the end of the stream."""
    try:
        return os.read(pipe.fileno(), READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
