"""CPU time of `llamaops inspect --deep` beside `sha256sum`, which reads the same bytes once.

    python -m benchmarks.deep MODEL.gguf [--rounds 5]

Every command runs in turn, round by round; the least CPU time of each counts. Needs `llamaops[deep]`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import _children as children
from llamaops.facts.gguf_file import collect_gguf
from llamaops.system.machine import Machine

IMPORTS = "import of gguf"
DEEP, PLAIN, SUM = "inspect --deep", "inspect", "sha256sum"


def commands(model: str) -> dict[str, list[str]]:
    """Return what is measured."""
    python, inspect = sys.executable, ["-m", "llamaops", "inspect", model]
    found = {
        IMPORTS: [python, "-c", "import gguf"],
        PLAIN: [python, *inspect],
        DEEP: [python, *inspect, "--deep"],
    }
    digest = shutil.which("sha256sum")
    return found | ({SUM: [digest, model]} if digest else {})


def main() -> None:
    """Print CPU time, and the rate of what `--deep` adds to a plain inspection and the package's import."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as records:
        environment = children.environment(LLAMAOPS_RECORDS=records)
        costs = children.rounds(commands(asked.model), environment, asked.rounds)
    figures = {name: round(min(cost.cpu_ms for cost in found), 1) for name, found in costs.items()}
    with Machine() as machine:
        values = collect_gguf(machine, asked.model).parameter_count.need()
    own_s = max(0.001, (figures[DEEP] - figures[PLAIN] - figures[IMPORTS]) / 1000)
    size = Path(asked.model).stat().st_size
    for name, spent in figures.items():
        print(f"  {name:16} {spent:9.1f} ms CPU")
    print(f"  {values / own_s / 1e6:,.0f} million values per CPU second, {size / own_s / 2**20:,.0f} MiB")
    if SUM in figures:
        print(f"  {figures[DEEP] / figures[SUM]:.2f} x sha256sum")
    print(json.dumps({**figures, "values_per_cpu_s": round(values / own_s)}))


if __name__ == "__main__":
    main()
