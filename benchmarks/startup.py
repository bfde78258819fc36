"""CPU time of commands that do next to nothing, against `python -c pass`, as ratios.

    python -m benchmarks.startup [--rounds 9] [--records 50]

The least of some rounds counts: everything else on the machine can only add to a figure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import _children as children

BARE = "python -c pass"
AIMS_MS = {"--version": 100.0, "record list": 60.0}
"""CPU time with the interpreter; see docs/performance.md."""


def commands() -> dict[str, list[str]]:
    """Return what is measured."""
    python = sys.executable
    ours = [python, "-m", "llamaops"]
    return {
        BARE: [python, "-c", "pass"],
        "--version": [*ours, "--version"],
        "--help": [*ours, "--help"],
        "record list": [*ours, "record", "list"],
    }


def fill(records: Path, count: int) -> None:
    """Write one record (of a model file that is none) and copy it."""
    subprocess.run(
        [sys.executable, "-m", "llamaops", "inspect", __file__, "--records", str(records)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    first = next(records.iterdir())
    for number in range(1, count):
        shutil.copytree(first, records / f"{first.name}{number}")


def main() -> int:
    """Measure and print; the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=50, help="records in the folder that is listed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), asked.records)
        costs = children.rounds(commands(), children.environment(LLAMAOPS_RECORDS=folder), asked.rounds)
    least = {name: min(found) for name, found in costs.items()}
    bare = least[BARE].cpu_ms
    print(f"least of {asked.rounds}; {asked.records} records")
    for name, cost in least.items():
        aim = f"  aim {AIMS_MS[name]:g} ms" if name in AIMS_MS else ""
        print(f"  {name:16} {cost.cpu_ms:6.1f} ms CPU {cost.cpu_ms / bare:6.2f} x python{aim}")
    print(json.dumps({name: round(cost.cpu_ms / bare, 2) for name, cost in least.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
