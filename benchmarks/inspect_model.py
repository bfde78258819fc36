"""CPU time and peak memory of `llamaops inspect` against the `gguf` package's reader, side by side.

    python benchmarks/inspect_model.py SMALL.gguf BIG.gguf [--runs 5]

Every command runs in turn, round by round, so that a busy machine slows all of them alike; the figures
are medians of user and system time from the kernel's own account of each child (wait4).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

BARE = "pass"
COLLECT = (
    "import sys; from llamaops.facts.gguf_file import collect_gguf;"
    " from llamaops.system.machine import Machine; collect_gguf(Machine(), sys.argv[1])"
)
READER = "import sys; from gguf import GGUFReader; GGUFReader(sys.argv[1])"
# Compiled modules are cached as after an installation; the first round fills the cache and is not counted.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(model: str) -> dict[str, list[str]]:
    """Return what is measured on one file."""
    python = sys.executable
    return {
        "python -c pass": [python, "-c", BARE],
        "facts only": [python, "-c", COLLECT, model],
        "llamaops inspect": [python, "-m", "llamaops", "inspect", model],
        "gguf GGUFReader": [python, "-c", READER, model],
    }


def measure(argv: Sequence[str]) -> tuple[float, float, int] | None:
    """Run a command once; return CPU milliseconds, peak MiB and exit status, None when it cannot start."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in (0, 1, 2)]
        child = os.posix_spawn(argv[0], list(argv), ENVIRONMENT, file_actions=actions)
    finally:
        os.close(null)
    _, status, usage = os.wait4(child, 0)
    cpu_ms = 1000 * (usage.ru_utime + usage.ru_stime)
    return cpu_ms, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def compare(model: str, runs: int) -> dict[str, dict[str, float]]:
    """Measure every command on one file, round by round."""
    found: dict[str, list[tuple[float, float]]] = {}
    skipped: set[str] = set()
    for number in range(runs + 1):
        for name, argv in commands(model).items():
            one = None if name in skipped else measure(argv)
            if one is None or one[2] in {1, 2}:  # broke, or the command does not exist yet
                skipped.add(name)
                continue
            if number:
                found.setdefault(name, []).append(one[:2])
    figures = {
        name: {
            "cpu_ms": round(statistics.median(cpu for cpu, _ in values), 1),
            "peak_mib": round(statistics.median(peak for _, peak in values), 1),
        }
        for name, values in found.items()
        if name not in skipped
    }
    bare = figures["python -c pass"]["cpu_ms"]
    reader = figures.get("gguf GGUFReader", {}).get("cpu_ms")
    for row in figures.values():
        row["times_bare_python"] = round(row["cpu_ms"] / bare, 2)
        if reader:
            row["part_of_gguf_reader"] = round(row["cpu_ms"] / reader, 4)
    return figures


def main() -> None:
    """Print a table for each file, and the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    everything = {}
    for model in asked.models:
        with tempfile.TemporaryDirectory() as records:
            ENVIRONMENT["LLAMAOPS_RECORDS"] = records
            figures = compare(model, asked.runs)
        everything[Path(model).name] = figures
        print(f"\n{Path(model).name} ({Path(model).stat().st_size} bytes), median of {asked.runs}")
        for name, row in figures.items():
            ratios = f"{row['times_bare_python']:6.2f} x python"
            part = row.get("part_of_gguf_reader")
            print(
                f"  {name:18} {row['cpu_ms']:9.1f} ms CPU {row['peak_mib']:8.1f} MiB  {ratios}"
                + (f"  {100 * part:6.2f} % of GGUFReader" if part else "")
            )
    print(json.dumps(everything))


if __name__ == "__main__":
    main()
