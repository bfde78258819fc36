"""A real server that is stopped while a request runs: the request ends in the grace time, nothing is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import command

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(120)]


@pytest.mark.parametrize("build", ["engine", "engine-b10068"])
def test_a_request_that_runs_at_the_stop_ends(
    fetched: Callable[[str], str], build: str, embedded_model: str, tmp_path: Path
) -> None:
    words = ["serve", "--verify", "--once", "--level", "full", "--only", "drain"]
    words += ["--bin-dir", os.path.dirname(fetched(build)), "--model", embedded_model]
    words += ["--ctx-size", "1024", "--parallel", "1", "--threads", "1"]
    ran = command.run_json(words, tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    drain = ran.record["facts"]["drain"]
    assert drain["ended"] in {"done", "error_event", "closed", "cut"}
    assert drain["pieces_before"] >= 1  # it ran when the stop began
    assert drain["left"] == []
    assert ran.finding("drain.running-request-ends")["status"] == "passed"
    command.wait_none_left()
