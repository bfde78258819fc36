"""Run a bounded child and see which program really runs: through scripts, launchers and symlinks.

A file name proves nothing about what executes: peers have taken the digest of a 253-byte shell script.
While a child is alive the kernel knows, but a help text is printed and gone in ten milliseconds. So its
output pipes are made one page small and are not read at first: a program that says more than a page
stops in the middle of it, and is looked at while it waits. One that says less is looked at as long as
it lives. What was not seen is not guessed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence

import msgspec

from llamaops.schema.bounds import Bounds
from llamaops.system import guard, process
from llamaops.system.process import Completed

PAGE_BYTES = 4096
PIPE_BYTES = 65536
LOOK_EVERY_S = 0.002
LOOK_S = 5.0
_MAX_MAPS_BYTES = 4 << 20


class Program(msgspec.Struct, frozen=True):
    """A process as it was seen."""

    pid: int
    executable: str
    """The file that the kernel runs."""
    mapped: tuple[str, ...] = ()
    """Files it has mapped as code: its libraries, and itself."""


class Watched(msgspec.Struct, frozen=True):
    """A child that has ended, and the programs that were seen running in it."""

    completed: Completed
    programs: tuple[Program, ...] = ()
    """Empty when nothing was seen: it ended too soon, or this system has no /proc."""


def watch(argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str]) -> Watched:
    """Run a bounded child as `process.run` does, and look at what runs.

    Raises: nothing for a state of the machine.
    """
    seen: dict[int, Program] = {}

    def look(child: subprocess.Popen[bytes]) -> None:
        for program in _look(child, time.monotonic() + min(LOOK_S, bounds.wall_s)):
            seen[program.pid] = program

    if not _can_look():
        return Watched(process.run(argv, bounds=bounds, env=env))
    # Small from the start: a child may have said all before a pipe could be made smaller.
    completed = process.run(argv, bounds=bounds, env=env, on_started=look, pipe_bytes=PAGE_BYTES)
    if isinstance(completed.end, process.NotStarted):
        # The program, or a kernel that does not let pipes be resized: only the second tells.
        completed = process.run(argv, bounds=bounds, env=env)
    return Watched(completed, tuple(seen[pid] for pid in sorted(seen)))


def _can_look() -> bool:
    return os.path.exists("/proc/self/maps")


def _look(child: subprocess.Popen[bytes], until: float) -> list[Program]:
    """Return the programs of the child's session once it waits for us, or what was seen before it ended."""
    import fcntl

    pipes = [pipe.fileno() for pipe in (child.stdout, child.stderr) if pipe is not None]
    glimpsed: list[Program] = []
    try:
        while time.monotonic() < until and child.poll() is None:
            if any(_waiting(pipe) >= PAGE_BYTES for pipe in pipes):
                return _family(child.pid) or glimpsed
            glimpsed = _glimpse(child.pid) or glimpsed
            time.sleep(LOOK_EVERY_S)
        return glimpsed
    finally:
        for pipe in pipes:
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _waiting(pipe: int) -> int:
    """Return the bytes that lie in a pipe."""
    import fcntl
    import struct
    import termios

    try:
        return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return 0


def _glimpse(pid: int) -> list[Program]:
    """Look at one process only: the program may have taken the script's place."""
    try:
        return [Program(pid, os.readlink(f"/proc/{pid}/exe"))]
    except OSError:
        return []


def _family(leader: int) -> list[Program]:
    """Return the programs of every process in the leader's session, or with its mark: one may have left."""
    pids = set(guard.marked(mark)) if (mark := _mark(leader)) else set()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(name)) == leader:
                pids.add(int(name))
    programs = []
    for pid in sorted(pids):
        with contextlib.suppress(OSError):
            programs.append(Program(pid, os.readlink(f"/proc/{pid}/exe"), _mapped(f"/proc/{pid}/maps")))
    return programs


def _mark(leader: int) -> str | None:
    """Return the mark in a process's environment; None when it has dropped it."""
    try:
        with open(f"/proc/{leader}/environ", "rb") as file:
            variables = file.read(1 << 20).split(b"\0")
    except OSError:
        return None
    start = process.MARK_VARIABLE.encode() + b"="
    return next((item[len(start) :].decode() for item in variables if item.startswith(start)), None)


def _mapped(path: str) -> tuple[str, ...]:
    with open(path, "rb") as file:
        content = file.read(_MAX_MAPS_BYTES).decode("utf-8", "replace")
    found: dict[str, None] = {}
    for line in content.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):  # noqa: PLR2004 - as proc(5) says
            found[fields[5]] = None
    return tuple(found)
