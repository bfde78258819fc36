"""Wall time of `llamaops preflight` against the slowest single program that it runs, as a ratio.

    python benchmarks/preflight.py [--bin-dir D] [--rounds 5] [--json]

First the collectors run once on a machine that notes every program they start. Then, round by round and
in turn: the whole command, the interpreter alone (`python -c pass`), and each of those programs alone, with
the same environment. The slowest program is the one with the largest median.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

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

    def run(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Completed:
        """Note and run."""
        self.started[tuple(argv)] = None
        return super().run(argv, bounds=bounds, env=env)

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
    """Return medians in seconds and the ratio."""
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
    medians = {" ".join(argv): statistics.median(times) for argv, times in alone.items()}
    slowest = max(medians, key=lambda name: medians[name], default="")
    preflight_s = statistics.median(whole)
    slowest_s = medians.get(slowest, 0.0)
    return {
        "programs": len(programs),
        "preflight_s": round(preflight_s, 4),
        "interpreter_s": round(statistics.median(bare), 4),
        "slowest": slowest,
        "slowest_s": round(slowest_s, 4),
        "sum_of_programs_s": round(sum(medians.values()), 4),
        "ratio": round(preflight_s / slowest_s, 3) if slowest_s else None,
        "aim": AIM,
        "rounds": rounds,
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--bin-dir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.bin_dir, options.rounds)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, figure in figures.items():
            print(f"{name:20} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
