"""Time from the server's own listening line to the moment llamaops calls it ready.

    python -m benchmarks.ready --model MODEL.gguf [--bin-dir D] [--rounds 5]

The lag is what each record says (`lifecycle.ready_lag_s`): from the arrival of the line in our log reader
to the first 200 of /health.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

AIM_MS = 50.0
LIMIT_S = 120.0


def start_once(model: str, bin_dir: str | None, records: str) -> tuple[float, float]:
    """Start a server, wait until it is ready and stop it; return the lag and the whole wait, in milliseconds.

    Raises: SystemExit when it did not become ready or its record does not say when.
    """
    argv = [sys.executable, "-m", "llamaops", "serve", "--once", "--quiet", "--format", "json"]
    argv += ["--model", model, "--records", records, *(["--bin-dir", bin_dir] if bin_dir else [])]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=LIMIT_S)
    lifecycle = json.loads(done.stdout)["record"]["facts"].get("lifecycle", {})
    lag, ready = lifecycle.get("ready_lag_s", {}), lifecycle.get("ready_s", {})
    if lag.get("state") != "known" or ready.get("state") != "known":
        raise SystemExit(
            f"ready: no lag in the record (exit status {done.returncode}): {lag or done.stderr!r}"
        )
    return 1000 * lag["value"], 1000 * ready["value"]


def main() -> int:
    """Measure and print; the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bin-dir")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as records:
        found = [start_once(asked.model, asked.bin_dir, records) for _ in range(asked.rounds)]
    lags = sorted(lag for lag, _ in found)
    waits = sorted(wait for _, wait in found)
    figures = {
        "starts": len(found),
        "lag_ms_median": round(statistics.median(lags), 2),
        "lag_ms_worst": round(lags[-1], 2),
        "ready_ms_median": round(statistics.median(waits), 1),
        "lag_part_of_wait": round(statistics.median(lags) / statistics.median(waits), 5),
        "aim_ms": AIM_MS,
    }
    for name, figure in figures.items():
        print(f"  {name:18} {figure}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
