"""Run the real command line in a process of its own, as an operator or a script would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document

    @property
    def record(self) -> dict[str, Any]:
        record = self.document["record"]
        assert isinstance(record, dict), self.err
        return record

    def finding(self, check: str) -> dict[str, Any]:
        found = [finding for finding in self.record["findings"] if finding["check"] == check]
        assert found, f"{check} is not among {[f['check'] for f in self.record['findings']]}"
        return dict(found[0])

    def state(self, boundary: str) -> str:
        return next(str(b["state"]) for b in self.record["boundaries"] if b["name"] == boundary)

    def open_findings(self) -> dict[str, str]:
        return {f["check"]: f["summary"] for f in self.record["findings"] if f["status"] != "passed"}


def environment(records: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "LLAMAOPS_RECORDS": str(records), **(more or {})}


def start(
    words: Sequence[str], records: Path, more: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "llamaops", *words],
        env=environment(records, more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(
    words: Sequence[str], records: Path, more: Mapping[str, str] | None = None, timeout: float = 110
) -> Ran:
    """Run llamaops to its end."""
    process = start(words, records, more)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Ran(process.returncode, out, err)


def run_json(words: Sequence[str], records: Path, more: Mapping[str, str] | None = None) -> Ran:
    """Run llamaops with --format json."""
    return run([*words, "--format", "json"], records, more)


def wait_for_line(process: subprocess.Popen[str], text: str, seconds: float = 60) -> str:
    """Read standard output until a line holds a text, and return that line."""
    assert process.stdout is not None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line = process.stdout.readline()
        if text in line:
            return line
        if not line and process.poll() is not None:
            break
    raise AssertionError(f"no line with {text!r}; stderr: {process.stderr.read() if process.stderr else ''}")


def servers_left() -> list[str]:
    """Return the command lines of live llama-* programs that this test started: each has its own HOME."""
    ours = {f"HOME={os.environ['HOME']}".encode()}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue
            name = Path(os.fsdecode(words[0])).name
            if name.startswith("llama-") and ours <= set(environ.split(b"\0")):
                found.append(b" ".join(words).decode())
    return found


def wait_none_left(seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while servers_left() and time.monotonic() < end:
        time.sleep(0.05)
    assert servers_left() == []
