"""Real children, hostile ones too: none hangs us, fills memory, or outlives its run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.system import guard
from llamaops.system.process import Exited, NotStarted, Signalled, StoppedAtBound, run

ENV = {"PATH": os.environ["PATH"]}
SHORT = Bounds(wall_s=1.0, grace_s=0.2, keep_bytes=64 * KIB, total_bytes=4 * MIB)
LONG = Bounds(wall_s=30.0, grace_s=0.5, keep_bytes=64 * KIB, total_bytes=4 * MIB)


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def gone(pid: int) -> bool:
    for _try in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_both_streams_and_the_exit_status_are_kept() -> None:
    done = run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"), bounds=LONG, env=ENV
    )
    assert (done.end, done.stdout.text, done.stderr.text) == (Exited(7), "out\n", "err\n")
    assert not done.ok


def test_a_death_by_signal_is_named() -> None:
    done = run(python("import os; os.kill(os.getpid(), 11)"), bounds=LONG, env=ENV)
    assert done.end == Signalled(11)
    assert isinstance(done.end, Signalled)
    assert done.end.name == "SIGSEGV"


def test_a_program_that_is_not_there_is_a_value() -> None:
    done = run(["/nonexistent/llama-server"], bounds=LONG, env=ENV)
    assert isinstance(done.end, NotStarted)
    assert "No such file" in done.end.why


def test_a_file_that_is_no_program_is_a_value(tmp_path: Path) -> None:
    broken = tmp_path / "llama-server"
    broken.write_bytes(b"\x00\x01 not a program")
    broken.chmod(0o755)
    done = run([str(broken)], bounds=LONG, env=ENV)
    assert isinstance(done.end, NotStarted)


def test_standard_input_is_closed() -> None:
    done = run(python("import sys; print(repr(sys.stdin.read()))"), bounds=LONG, env=ENV)
    assert done.stdout.text == "''\n"


def test_a_hang_is_stopped_at_the_bound_and_what_it_said_is_kept() -> None:
    done = run(python("import time; print('before', flush=True); time.sleep(60)"), bounds=SHORT, env=ENV)
    assert done.end == StoppedAtBound("wall_s", killed=False)
    assert done.stdout.text == "before\n"


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print('x', flush=True); time.sleep(60)"
    done = run(python(code), bounds=SHORT, env=ENV)
    assert done.end == StoppedAtBound("wall_s", killed=True)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_stopped_and_memory_stays_bounded(stream: str) -> None:
    code = f"import sys\nwhile True: sys.{stream}.write('flood ' * 4096)"
    done = run(python(code), bounds=LONG, env=ENV)
    assert isinstance(done.end, StoppedAtBound)
    assert done.end.bound == "total_bytes"
    kept = done.stdout if stream == "stdout" else done.stderr
    assert kept.truncated
    assert len(kept.data) < 64 * KIB + 200


def test_start_and_end_of_a_long_output_are_kept() -> None:
    done = run(python("print('first'); print('x' * 300000); print('last')"), bounds=LONG, env=ENV)
    assert done.stdout.text.startswith("first\n")
    assert done.stdout.text.endswith("last\n")
    assert "bytes dropped" in done.stdout.text
    assert done.stdout.total_bytes == 300000 + 12


def test_a_grandchild_that_holds_the_pipes_does_not_hold_us() -> None:
    code = "import subprocess,sys; p=subprocess.Popen(['sleep','60']); print(p.pid, flush=True)"
    began = time.monotonic()
    done = run(python(code), bounds=LONG, env=ENV)
    assert done.end == Exited(0)
    assert time.monotonic() - began < 20
    assert gone(int(done.stdout.text))


def test_a_daemonised_grandchild_is_found_by_its_mark_and_killed() -> None:
    code = (
        "import os,sys,time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.close(1); os.close(2); time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(0.2)\n"
        "for name in os.listdir('/proc'):\n"
        "    if name.isdigit() and int(name) != os.getpid():\n"
        "        try: env = open(f'/proc/{name}/environ','rb').read()\n"
        "        except OSError: continue\n"
        "        if os.environ['LLAMAOPS_CHILD'].encode() in env: print(name, flush=True)\n"
    )
    done = run(python(code), bounds=LONG, env=ENV)
    pids = [int(line) for line in done.stdout.text.split()]
    assert pids, done.stderr.text
    assert all(gone(pid) for pid in pids)


def test_after_stop_run_nothing_starts_until_the_next_run_begins() -> None:
    try:
        guard.stop_run()
        assert isinstance(run(["true"], bounds=LONG, env=ENV).end, NotStarted)
    finally:
        guard.begin_run()
    assert run(["true"], bounds=LONG, env=ENV).end == Exited(0)


def test_a_killed_llamaops_leaves_no_child(tmp_path: Path) -> None:
    file = str(tmp_path / "pid")
    child_code = f"import os,time; open({file!r},'w').write(str(os.getpid())); time.sleep(60)"
    script = (
        "import os\n"
        "from llamaops.schema.bounds import Bounds\n"
        "from llamaops.system.process import run\n"
        f"run([{sys.executable!r}, '-c', {child_code!r}], bounds=Bounds(wall_s=50), env=dict(os.environ))\n"
    )
    outer = os.posix_spawn(sys.executable, [sys.executable, "-c", script], os.environ)
    pid_file = tmp_path / "pid"
    for _try in range(500):
        if pid_file.exists() and pid_file.read_text():
            break
        time.sleep(0.02)
    child = int(pid_file.read_text())
    os.kill(outer, 9)
    os.waitpid(outer, 0)
    assert gone(child)
