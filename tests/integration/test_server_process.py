"""A managed process that comes up, misbehaves, and is always stopped."""

from __future__ import annotations

import contextlib
import os
import time

from llamaops.system.process import Exited, NotStarted, Signalled
from llamaops.system.server_process import ServerProcess, StopPolicy
from tests.integration.test_process import gone, python

ENV = {"PATH": os.environ["PATH"]}
QUICK = StopPolicy(first_s=0.3, second_s=0.3, kill_s=5.0)
READY = "print('ready', flush=True)"


def started(code: str) -> tuple[ServerProcess, list[str]]:
    lines: list[str] = []
    server = ServerProcess(python(code), env=ENV, on_line=lines.append, policy=QUICK)
    assert server.start() is None
    for _try in range(500):
        if "ready" in lines or server.poll() is not None:
            break
        time.sleep(0.01)
    return server, lines


def test_a_willing_server_leaves_on_the_first_sigterm() -> None:
    server, _lines = started(f"import time; {READY}; time.sleep(60)")
    report = server.stop()
    assert (report.how, report.end, report.left) == ("first_sigterm", Signalled(15), ())
    assert server.state == "stopped"


def test_a_server_that_ignores_the_first_sigterm_gets_a_second() -> None:
    code = (
        "import signal,sys,time\nseen=[]\n"
        "def stop(*_):\n    seen.append(1)\n    if len(seen) > 1: sys.exit(1)\n"
        f"signal.signal(15, stop)\n{READY}\nwhile True: time.sleep(0.1)"
    )
    server, _lines = started(code)
    report = server.stop()
    assert (report.how, report.end) == ("second_sigterm", Exited(1))


def test_a_server_that_ignores_every_sigterm_is_killed() -> None:
    server, _lines = started(
        f"import signal,time; signal.signal(15, signal.SIG_IGN); {READY}; time.sleep(60)"
    )
    report = server.stop()
    assert (report.how, report.end) == ("sigkill", Signalled(9))


def test_no_signal_is_sent_in_the_instant_after_ready() -> None:
    code = (
        "import signal,sys,time\nt=time.monotonic()\n"
        "def stop(*_):\n    print('after', time.monotonic()-t, flush=True); sys.exit(0)\n"
        f"signal.signal(15, stop)\n{READY}\nt=time.monotonic()\nwhile True: time.sleep(0.1)"
    )
    server, lines = started(code)
    server.mark_ready()
    server.stop()
    after = next(float(line.split()[1]) for line in lines if line.startswith("after"))
    assert after > 0.05


def test_a_descendant_that_left_the_group_is_killed_and_reported() -> None:
    code = (
        "import os,subprocess,sys,time\n"
        "p = subprocess.Popen([sys.executable,'-I','-S','-c','import time; time.sleep(60)'],"
        " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        f"print('pid', p.pid, flush=True)\n{READY}\ntime.sleep(60)"
    )
    server, lines = started(code)
    pid = next(int(line.split()[1]) for line in lines if line.startswith("pid"))
    report = server.stop()
    assert pid in report.left
    assert gone(pid)


def test_the_context_manager_stops_the_server_also_on_an_exception() -> None:
    server, _lines = started(f"import time; {READY}; time.sleep(60)")
    pid = server.pid
    assert pid is not None
    with contextlib.suppress(ZeroDivisionError), server:
        _ = 1 // (pid - pid)
    assert gone(pid)


def test_a_program_that_cannot_start_is_a_value() -> None:
    server = ServerProcess(["/nonexistent/llama-server"], env=ENV)
    assert isinstance(server.start(), NotStarted)
    assert server.stop().how == "not_started"


def test_an_early_end_wakes_the_waiter_and_is_reported() -> None:
    server = ServerProcess(
        python("import sys; print('error: no model', file=sys.stderr); sys.exit(1)"), env=ENV
    )
    server.start()
    began = time.monotonic()
    while server.poll() is None and time.monotonic() - began < 20:
        server.wait_change(20)
    assert server.poll() == Exited(1)
    report = server.stop()
    assert report.how == "ended_by_itself"
    assert "error: no model" in server.log()


def test_an_endless_line_is_cut_and_memory_stays_bounded() -> None:
    lengths: list[int] = []
    server = ServerProcess(
        python("import sys\nfor _ in range(64): sys.stdout.write('x' * 65536)"),
        env=ENV,
        keep_bytes=65536,
        on_line=lambda line: lengths.append(len(line)),
    )
    server.start()
    while server.poll() is None:
        server.wait_change(5)
    server.stop()
    assert max(lengths) <= 64 * 1024
    assert sum(lengths) == 64 * 65536
    assert len(server.stdout.data) < 65536 + 200


def test_two_stops_are_one() -> None:
    server, _lines = started(f"import time; {READY}; time.sleep(60)")
    assert server.stop() is server.stop()
