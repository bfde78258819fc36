"""CPU time and peak memory of `llamaops inspect` against bare header walks and the `gguf` package's reader.

    python -m benchmarks.inspect_model SMALL.gguf BIG.gguf [--rounds 5]

Every command runs in turn, round by round, so that a busy machine slows all of them alike. The least CPU
time of each counts, from the kernel's own account of each child (wait4): everything else can only add to it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import _children as children

OURS = "llamaops inspect"
BARE = "python -c pass"
WALK = "any bare walk"
OUR_WALK = "our walk alone"
READER = "gguf GGUFReader"
BROKEN = {1, 2}
COLLECT = (
    "import sys; from llamaops.facts.gguf_file import collect_gguf;"
    " from llamaops.system.machine import Machine; collect_gguf(Machine(), sys.argv[1])"
)
STEP = (
    "import sys; from llamaops.facts.gguf_header import read_header;"
    " from llamaops.system.files import RegularFile; read_header(RegularFile(sys.argv[1]), '')"
)
READ = "import sys; from gguf import GGUFReader; GGUFReader(sys.argv[1])"


def commands(model: str) -> dict[str, list[str]]:
    """Return what is measured on one file."""
    python = sys.executable
    return {
        BARE: [python, "-c", "pass"],
        WALK: [python, str(Path(__file__).with_name("_bare_walk.py")), model],
        OUR_WALK: [python, "-c", STEP, model],
        "facts only": [python, "-c", COLLECT, model],
        OURS: [python, "-m", "llamaops", "inspect", model],
        READER: [python, "-c", READ, model],
    }


def compare(model: str, rounds: int, environment: dict[str, str]) -> dict[str, dict[str, float]]:
    """Measure every command on one file, round by round; one that cannot run here is left out."""
    costs = children.rounds(commands(model), environment, rounds)
    figures = {
        name: {
            "cpu_ms": round(min(cost.cpu_ms for cost in found), 1),
            "median_cpu_ms": round(statistics.median(cost.cpu_ms for cost in found), 1),
            "peak_mib": round(statistics.median(cost.peak_mib for cost in found), 1),
        }
        for name, found in costs.items()
        if all(cost.status not in BROKEN for cost in found)
    }
    if OURS not in figures:
        raise SystemExit(f"inspect_model: llamaops cannot inspect {model}")
    bare, walk = figures[BARE]["cpu_ms"], figures[WALK]["cpu_ms"]
    reader = figures.get(READER, {}).get("cpu_ms")
    for row in figures.values():
        row["times_bare_python"] = round(row["cpu_ms"] / bare, 2)
        row["times_bare_walk"] = round(row["cpu_ms"] / walk, 2)
        if reader:
            row["part_of_gguf_reader"] = round(row["cpu_ms"] / reader, 4)
    return figures


def main() -> None:
    """Print a table for each file, and the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    everything = {}
    for model in asked.models:
        with tempfile.TemporaryDirectory() as records:
            figures = compare(model, asked.rounds, children.environment(LLAMAOPS_RECORDS=records))
        everything[Path(model).name] = figures
        print(f"\n{Path(model).name} ({Path(model).stat().st_size} bytes), least of {asked.rounds}")
        for name, row in figures.items():
            ratios = f"{row['times_bare_python']:6.2f} x python  {row['times_bare_walk']:6.2f} x walk"
            part = row.get("part_of_gguf_reader")
            print(
                f"  {name:18} {row['cpu_ms']:9.1f} ms CPU {row['peak_mib']:8.1f} MiB  {ratios}"
                + (f"  {100 * part:6.2f} % of GGUFReader" if part else "")
            )
    print(json.dumps(everything))


if __name__ == "__main__":
    main()
