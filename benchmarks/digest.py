"""Seconds that `llamaops` takes for the SHA-256 of a model, beside `sha256sum`, and for one it remembers.

    python benchmarks/digest.py MODEL.gguf [--runs 5] [--copies 4]

The file is read once before, so that both find it in memory. Rounds alternate, so that a busy machine slows
both alike; the figures are medians.
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
from collections.abc import Callable, Sequence
from pathlib import Path

from llamaops.system.digest import Digester

OLD_S = 1_600_000_000


def seconds(call: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure(paths: Sequence[str], cache: str, runs: int) -> dict[str, float]:
    """Return the median seconds of each way to get the digests of some files."""
    environ = {"LLAMAOPS_CACHE": cache}
    ways: dict[str, Callable[[], object]] = {
        "llamaops": lambda: Digester(environ, remembered=False).digest_all(paths),
        "llamaops, remembered": lambda: Digester(environ, remembered=True).digest_all(paths),
    }
    if shutil.which("sha256sum"):
        ways["sha256sum"] = lambda: subprocess.run(["sha256sum", *paths], check=True, capture_output=True)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(runs + 1):
        for name, call in ways.items():
            spent = seconds(call)
            if number:
                times[name].append(spent)
    return {name: round(statistics.median(spent), 4) for name, spent in times.items()}


def main() -> int:
    """Measure one file, and several as the parts of a split model are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=4, help="files in the second measurement")
    asked = parser.parse_args()
    everything = {}
    with tempfile.TemporaryDirectory() as folder:
        copies = [str(Path(folder) / f"{number}.gguf") for number in range(asked.copies)]
        for copy in copies:
            shutil.copyfile(asked.model, copy)
            os.utime(copy, (OLD_S, OLD_S))
        for label, paths in (("one file", copies[:1]), (f"{len(copies)} files", copies)):
            figures = measure(paths, str(Path(folder) / "cache"), asked.runs)
            size = sum(Path(path).stat().st_size for path in paths)
            everything[label] = figures
            print(f"{label}, {size / 2**20:.0f} MiB, median of {asked.runs}")
            for name, spent in figures.items():
                rate = size / 2**20 / max(spent, 1e-6)
                ratio = f"  {spent / figures['sha256sum']:.2f} x sha256sum" if "sha256sum" in figures else ""
                print(f"  {name:22} {1000 * spent:8.1f} ms  {rate:8.0f} MiB/s{ratio}")
    print(json.dumps(everything))
    return 0


if __name__ == "__main__":
    sys.exit(main())
