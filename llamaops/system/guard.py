"""Leave no child behind, also when llamaops itself is killed with SIGKILL.

Each child carries a mark in its environment (LLAMAOPS_CHILD=<run>.<number>), which its descendants
inherit. Stopping a child kills whatever still carries its mark. For the case that llamaops is killed,
one small watcher process per run waits on a pipe that only llamaops holds; when the pipe closes
without a farewell, it stops everything that carries the run's mark. On a system without /proc only
the process group protects, and the watcher is not started.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from _thread import allocate_lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_FAREWELL = b"."

# The watcher is passed as text, so that it needs no import of llamaops and starts in ten milliseconds.
_WATCHER = r"""
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.read(0, 1) == b".":
    sys.exit(0)
mark = b"LLAMAOPS_CHILD=" + sys.argv[1].encode() + b"."
def marked():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/" + name + "/environ", "rb") as file:
                    if any(item.startswith(mark) for item in file.read().split(b"\0")):
                        yield int(name)
            except OSError:
                pass
for number, wait in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0), (signal.SIGKILL, 1.0)):
    found = list(marked())
    for pid in found:
        try:
            os.kill(pid, number)
        except OSError:
            pass
    end = time.monotonic() + wait
    while found and time.monotonic() < end:
        time.sleep(0.05)
        found = list(marked())
"""

_lock = allocate_lock()  # threading itself is loaded by whoever starts a thread
_numbers = itertools.count(1)
_run = os.urandom(8).hex()
_watcher: subprocess.Popen[bytes] | None = None
_stopping = False


class StoppingError(OSError):
    """No child may be started any more: this run is being stopped."""


def new_mark() -> str:
    """Return a mark for one more child, and see that the watcher of this run is there.

    Raises: StoppingError after `stop_run`.
    """
    if _stopping:
        raise StoppingError("llamaops is stopping")
    _ensure_watcher()
    return f"{_run}.{next(_numbers)}"


def kill_marked(mark: str, *, prefix: bool = False) -> list[int]:
    """Kill every process that carries the mark, or one that starts so; return their pids.

    Only processes whose environment we may read are looked at, which is those of our own user.
    """
    killed: list[int] = []
    for _round in range(3):  # a forking process may slip through one pass
        found = marked(mark, prefix=prefix)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed += found
        if not found:
            break
    return killed


def stop_run() -> list[int]:
    """Kill every child of this run, wherever it is, and start no more; return what was killed."""
    global _stopping  # noqa: PLW0603 - one run at a time in a process
    _stopping = True
    return kill_marked(f"{_run}.", prefix=True)


def begin_run() -> None:
    """Allow children again; for a process that performs one operation after another."""
    global _stopping  # noqa: PLW0603 - one run at a time in a process
    _stopping = False


def marked(mark: str, *, prefix: bool = False) -> list[int]:
    """Return the pids of live processes whose environment holds the mark, or one that starts so."""
    wanted = b"LLAMAOPS_CHILD=" + mark.encode()
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                content = file.read(1 << 20)
        except OSError:
            continue
        if wanted in content and any(
            item == wanted or (prefix and item.startswith(wanted)) for item in content.split(b"\0")
        ):
            found.append(int(name))
    return found


def farewell() -> None:
    """Tell the watcher that this run ended well; call after everything was stopped.

    A process that goes on to another run (the tests) may start children again.
    """
    global _watcher
    begin_run()
    with _lock:
        watcher, _watcher = _watcher, None
    if watcher is None or watcher.stdin is None:
        return
    import subprocess

    with contextlib.suppress(OSError):
        watcher.stdin.write(_FAREWELL)
        watcher.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        watcher.wait(1)


def _ensure_watcher() -> None:
    global _watcher  # noqa: PLW0603 - one watcher per process
    with _lock:
        if _watcher is not None or not os.path.isdir("/proc/self"):
            return
        import subprocess

        with contextlib.suppress(OSError):
            _watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _WATCHER, _run],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
                close_fds=True,
                bufsize=0,
            )
