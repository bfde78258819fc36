"""Wall time of verifying a server, beside the time that the server itself was loading or busy.

    python -m benchmarks.verify_overhead --model MODEL.gguf --bin-dir D [--level standard] [--rounds 3]

Each round runs `llamaops serve --verify --once` and looks at the server that it starts, by the states of its
threads (see `_busy`). Wall time and busy time are those of the same run, so a busy machine
lengthens both. `start and verify` is from the start of the server to the last answer, by the steps of the
record; `whole command` also has what comes before (the host, the binary's own --help, the model file) and
after (stopping the server, judging, writing the record). Then the same level on a server that already runs,
by `llamaops verify URL`, as a whole command from the start of its interpreter to its end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import datetime
from typing import Any, NamedTuple

from benchmarks._busy import Busy, descendant
from llamaops.system.free_port import free_port

AIM = 1.15
LIMIT_S = 300.0
STEPS = ("start-server", "verify")
_QUIET: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Round(NamedTuple):
    """One run, in seconds."""

    start_and_verify_s: float
    """From the start of the server to the last answer."""
    busy_s: float
    """How much of that the server was loading or at work."""
    whole_s: float
    """The whole command."""
    busy_whole_s: float
    """How much of that the server was loading or at work."""
    before_s: float
    """From the start of our interpreter to the start of the server."""
    after_s: float
    """From the last answer to the end of the command."""
    steps: dict[str, float]
    """Each step of the record."""
    idle: tuple[tuple[float, float], ...]
    """The longest stretches in which the server had nothing to do: from when, by the start, and how long."""

    @property
    def ratio(self) -> float:
        """Wall to busy."""
        return self.start_and_verify_s / self.busy_s

    @property
    def ratio_whole(self) -> float:
        """The same for the whole command."""
        return self.whole_s / self.busy_whole_s


def run_once(words: list[str]) -> Round:
    """Run one verification and watch its server.

    Raises: SystemExit when no server was seen or it was not verified.
    """
    with tempfile.TemporaryDirectory() as records, tempfile.TemporaryFile() as output:
        argv = [sys.executable, "-m", "llamaops", "serve", "--verify", "--once", "--quiet", *words]
        argv += ["--format", "json", "--records", records]
        began = time.monotonic()
        offset_s = time.time() - began
        child = subprocess.Popen(argv, stdout=output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            server = _wait_for_server(child)
            with Busy(server) as busy:
                child.wait(LIMIT_S)
        finally:
            child.kill()
            child.wait()
        ended = time.monotonic()
        output.seek(0)
        record = json.loads(output.read())["record"]
    steps = {step["id"]: step for step in record["steps"]}
    if child.returncode != 0 or not set(STEPS) <= set(steps):
        raise SystemExit(f"verify_overhead: not verified (exit status {child.returncode}): {list(steps)}")
    first = _moment(steps["start-server"]["started_at"]) - offset_s
    last = _moment(steps["verify"]["started_at"]) - offset_s + steps["verify"]["elapsed_s"]
    return Round(
        start_and_verify_s=last - first,
        busy_s=busy.between(first, last),
        whole_s=ended - began,
        busy_whole_s=busy.busy_s,
        before_s=first - began,
        after_s=ended - last,
        steps={name: step["elapsed_s"] for name, step in steps.items()},
        idle=longest_idle([item for item in busy.stretches if first < item[0] <= last], first),
    )


def attached(server: list[str], level: str, rounds: int) -> list[tuple[float, float]]:
    """Start a server, verify it by its URL, and return wall and busy seconds of each round but the first.

    Raises: SystemExit when it does not become ready or is not verified.
    """
    port = free_port("127.0.0.1")
    url = f"http://127.0.0.1:{port}"
    child = subprocess.Popen([*server, "--host", "127.0.0.1", "--port", str(port)], **_QUIET)
    try:
        _wait_until_ready(url, child)
        return [_verify_url(url, level, child.pid) for _ in range(rounds + 1)][1:]
    finally:
        child.terminate()
        child.wait(LIMIT_S)


def _verify_url(url: str, level: str, pid: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as records, Busy(pid) as busy:
        began = time.monotonic()
        argv = [sys.executable, "-m", "llamaops", "verify", url, "--level", level, "--quiet"]
        done = subprocess.run([*argv, "--records", records], check=False, timeout=LIMIT_S, **_QUIET)
        wall_s = time.monotonic() - began
    if done.returncode != 0:
        raise SystemExit(f"verify_overhead: {url} was not verified (exit status {done.returncode})")
    return wall_s, busy.busy_s


def _wait_until_ready(url: str, child: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + LIMIT_S
    while child.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
            return
        time.sleep(0.02)
    raise SystemExit("verify_overhead: the server did not become ready")


def _wait_for_server(child: subprocess.Popen[bytes]) -> int:
    while child.poll() is None:
        if (pid := descendant(child.pid, "--port")) is not None:
            return pid
        time.sleep(0.005)
    raise SystemExit(f"verify_overhead: no server was started (exit status {child.returncode})")


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def longest_idle(
    stretches: list[tuple[float, float]], first: float, count: int = 5
) -> tuple[tuple[float, float], ...]:
    """Return the longest runs of stretches with less than a tenth of work, longest first."""
    found: list[tuple[float, float]] = []
    before, since = first, first
    for at, work in stretches:
        if work > (at - before) / 10:
            found.append((since - first, before - since))
            since = at
        before = at
    found.append((since - first, before - since))
    return tuple(sorted(found, key=lambda item: -item[1])[:count])


def main() -> int:
    """Measure and print; the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--level", default="standard")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", action="store_true", help="show when the server had nothing to do")
    asked = parser.parse_args()
    size = ["--parallel", "2", "--ctx-size", "1024", "--threads", "1"]
    words = ["--model", asked.model, "--level", asked.level, "--bin-dir", asked.bin_dir, *size]
    run_once(words)  # fills caches and is not counted
    found = [run_once(words) for _ in range(asked.rounds)]
    for one in found:
        print(
            f"  start and verify {one.start_and_verify_s:6.2f} s, busy {one.busy_s:6.2f} s: {one.ratio:5.3f};"
            f" whole command {one.whole_s:6.2f} s: {one.ratio_whole:5.3f}"
            f" ({one.before_s:.2f} s before, {one.after_s:.2f} s after)"
        )
        if asked.idle:
            print("    steps " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in one.steps.items()))
            print("    idle " + ", ".join(f"{long:.3f} s at {at:.2f} s" for at, long in one.idle))
    server = [f"{asked.bin_dir}/llama-server", "--model", asked.model, *size, "--metrics", "--slots"]
    running = attached(server, asked.level, asked.rounds)
    for wall_s, busy_s in running:
        print(f"  verify URL, whole {wall_s:6.2f} s, busy {busy_s:6.2f} s: {wall_s / busy_s:5.3f}")
    figures = {
        "level": asked.level,
        "rounds": len(found),
        "busy_s": round(statistics.median(one.busy_s for one in found), 3),
        "wall_to_busy": round(statistics.median(one.ratio for one in found), 3),
        "wall_to_busy_worst": round(max(one.ratio for one in found), 3),
        "whole_to_busy": round(statistics.median(one.ratio_whole for one in found), 3),
        "attached_whole_to_busy": round(statistics.median(wall / busy for wall, busy in running), 3),
        "aim": AIM,
    }
    for name, figure in figures.items():
        print(f"  {name:22} {figure}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
