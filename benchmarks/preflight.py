"""Wall time of `llamaops preflight` against the slowest single program that it runs, as a ratio.

    python -m benchmarks.preflight [--bin-dir D] [--rounds 5] [--slow 1.0] [--json]

First the collectors run once on a machine that notes every program they start. Then, round by round and
in turn: the whole command, the interpreter alone (`python -c pass`), and each of those programs alone, with
the same environment. The slowest program is the one that takes longest at its quickest; the ratio compares it
with the command in the same round, and the least of all rounds counts.

With `--slow`, a stand-in for a program that takes so many seconds (a driver that wakes its cards, a folder on
the network) lies beside the others: what preflight adds does not grow with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from llamaops.facts.accelerator import collect_accelerators
from llamaops.facts.binaries import collect_binaries
from llamaops.facts.host import collect_host
from llamaops.schema.bounds import Bounds
from llamaops.system.machine import Machine
from llamaops.system.process import Completed
from llamaops.system.watch import Watched

LIMIT_S = 60.0
AIM = 1.3


class NotingMachine(Machine):
    """A machine that notes the command line of every program it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.started: dict[tuple[str, ...], None] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        bounds: Bounds,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Note and run."""
        self.started[tuple(argv)] = None
        return super().run(argv, bounds=bounds, env=env, cwd=cwd)

    def watch(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Watched:
        """Note and watch."""
        self.started[tuple(argv)] = None
        return super().watch(argv, bounds=bounds, env=env)


def programs_of(bin_dir: str | None) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    """Return the command lines that a preflight runs here, and the environment it gives them."""
    with NotingMachine() as machine:
        collect_binaries(machine, bin_dir=bin_dir)
        collect_accelerators(machine)
        collect_host(machine, model_path=None)
        environment = {**machine.child_environment(), "XDG_CONFIG_HOME": "/nonexistent"}
        return list(machine.started), environment


def wall(argv: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the seconds from start to end of a command, whatever its status; 0 when it cannot start."""
    began = time.monotonic()
    try:
        subprocess.run(
            list(argv),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except OSError:
        return 0.0
    except subprocess.TimeoutExpired:
        return LIMIT_S
    return time.monotonic() - began


def measure(bin_dir: str | None, rounds: int) -> dict[str, object]:
    """Return the least times in seconds and the ratio."""
    programs, environment = programs_of(bin_dir)
    whole: list[float] = []
    bare: list[float] = []
    alone: dict[tuple[str, ...], list[float]] = {argv: [] for argv in programs}
    with tempfile.TemporaryDirectory() as records:
        command = [sys.executable, "-m", "llamaops", "preflight", "--format", "json", "--records", records]
        command += ["--bin-dir", bin_dir] if bin_dir else []
        for number in range(rounds + 1):
            times = [
                (whole, wall(command, os.environ)),
                (bare, wall([sys.executable, "-c", "pass"], os.environ)),
                *((alone[argv], wall(argv, environment)) for argv in programs),
            ]
            if number > 0:  # the first round fills caches
                for kept, seconds in times:
                    kept.append(seconds)
    least = {" ".join(argv): min(times) for argv, times in alone.items()}
    slowest = max(least, key=lambda name: least[name], default="")
    preflight_s = min(whole)
    slowest_s = least.get(slowest, 0.0)
    # Both sides of a ratio from one round: what else the machine did then slowed both.
    beside = next((times for argv, times in alone.items() if " ".join(argv) == slowest), [])
    ratios = [total / single for total, single in zip(whole, beside, strict=False) if single]
    return {
        "programs": len(programs),
        "preflight_s": round(preflight_s, 4),
        "preflight_median_s": round(statistics.median(whole), 4),
        "interpreter_s": round(min(bare), 4),
        "slowest": slowest,
        "slowest_s": round(slowest_s, 4),
        "sum_of_programs_s": round(sum(least.values()), 4),
        "added_s": round(preflight_s - slowest_s, 4),
        "ratio": round(min(ratios), 3) if ratios else None,
        "ratio_median": round(statistics.median(ratios), 3) if ratios else None,
        "aim": AIM,
        "rounds": rounds,
    }


def with_slow_program(bin_dir: str | None, folder: str, seconds: float) -> str:
    """Make a folder of links to all programs, and one more that takes long to answer."""
    for path in Path(bin_dir).iterdir() if bin_dir else ():
        (Path(folder) / path.name).symlink_to(path.resolve())
    slow = Path(folder) / "llama-bench"
    slow.unlink(missing_ok=True)
    sleep = shutil.which("sleep") or "sleep"
    slow.write_text(f"#!/bin/sh\n{sleep} {seconds}\necho 'usage: llama-bench [options]'\n")
    slow.chmod(0o755)
    return folder


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--bin-dir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--slow", type=float, help="seconds that a stand-in beside the programs takes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bin_dir = options.bin_dir
        if options.slow:
            bin_dir = with_slow_program(bin_dir, folder, options.slow)
        figures = measure(bin_dir, options.rounds)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, figure in figures.items():
            print(f"{name:20} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
