"""Looking at real children while they wait for us."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from llamaops.schema.bounds import Bounds
from llamaops.system.process import Exited, NotStarted, StoppedAtBound
from llamaops.system.watch import PAGE_BYTES, watch
from tests.fakes import programs

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="looks through /proc")
ENV = {"PATH": "/usr/bin:/bin"}
BOUNDS = Bounds(wall_s=10, grace_s=0.3, total_bytes=1 << 20)


def test_all_output_arrives_whatever_was_looked_at() -> None:
    text = "x" * (PAGE_BYTES * 40)
    code = f"import sys; sys.stdout.write('x' * {len(text)}); sys.stderr.write('e' * 9000)"
    watched = watch([sys.executable, "-ISc", code], bounds=BOUNDS, env=ENV)
    assert watched.completed.end == Exited(0)
    assert watched.completed.stdout.text == text
    assert watched.completed.stderr.total_bytes == 9000
    (program,) = watched.programs
    assert os.path.realpath(sys.executable) == program.executable
    assert program.executable in program.mapped


def test_a_whole_session_is_looked_at(tmp_path: Path) -> None:
    inner = programs.script(tmp_path / "inner", "#!/bin/sh\nexec yes\n")
    outer = programs.script(tmp_path / "outer", f"#!/bin/sh\n{inner}\nexit 3\n")
    watched = watch([str(outer)], bounds=BOUNDS, env=ENV)
    assert watched.completed.end == StoppedAtBound("total_bytes", killed=False)
    names = [os.path.basename(os.path.realpath(program.executable)) for program in watched.programs]
    assert len(names) == 2
    assert os.path.basename(os.path.realpath("/usr/bin/yes")) in names


def test_a_child_that_says_nothing_is_seen_while_it_lives() -> None:
    began = time.monotonic()
    watched = watch(["sleep", "0.2"], bounds=BOUNDS, env=ENV)
    assert time.monotonic() - began < 5
    assert watched.completed.end == Exited(0)
    assert [os.path.basename(program.executable) for program in watched.programs] == [
        os.path.basename(os.path.realpath("/usr/bin/sleep"))
    ]


def test_looking_never_outlasts_the_bound() -> None:
    began = time.monotonic()
    watched = watch(["sleep", "60"], bounds=Bounds(wall_s=0.3, grace_s=0.2), env=ENV)
    assert time.monotonic() - began < 5
    assert watched.completed.end == StoppedAtBound("wall_s", killed=False)


def test_what_does_not_start_says_so() -> None:
    watched = watch(["/nowhere/program"], bounds=BOUNDS, env=ENV)
    assert isinstance(watched.completed.end, NotStarted)
    assert watched.completed.end.errno == 2
    assert watched.programs == ()
