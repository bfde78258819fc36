"""CPU time that we take to look at /slots and /metrics while requests run, as part of one core.

    python -m benchmarks.sampling --model MODEL.gguf --bin-dir D [--seconds 12]

A server generates two long answers, which other processes ask for; meanwhile this process does nothing but
what the probes of level standard do beside their requests: it samples both endpoints at the probes' own
pace. Its CPU time by its own clock, over the wall time of the same stretch, is the part of a core. Then the
same without a pause, which gives the cost of one sample.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from typing import Any

from llamaops.probes.concurrency import SAMPLE_EVERY_S
from llamaops.probes.endpoint import QUICK
from llamaops.probes.metrics import probe_metrics
from llamaops.probes.slots import probe_slots
from llamaops.schema.fact import Known
from llamaops.system.free_port import free_port
from llamaops.system.http import Exchange, HttpClient
from llamaops.system.origin import Origin

AIM_PERCENT = 2.0
READY_S = 120.0
DENSE_SAMPLES = 200
_QUIET: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
ASK = """
import http.client, json, sys
body = {"prompt": "Once upon a time", "n_predict": 100000, "ignore_eos": True, "stream": True}
while True:
    link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=600)
    link.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    answer = link.getresponse()
    while answer.read1(4096):
        pass
"""


def sample(client: HttpClient) -> int:
    """Look at both endpoints once, as the probes do, and return how many slots were busy.

    Raises: SystemExit when one of them does not answer.
    """
    _answer, slots = probe_slots(client, bounds=QUICK)
    _answer, metrics = probe_metrics(client, bounds=QUICK)
    if not isinstance(slots, Known) or not isinstance(metrics, Known):
        raise SystemExit("sampling: /slots or /metrics did not answer")
    return sum(1 for slot in slots.value.slots if slot.is_processing)


def paced(client: HttpClient, seconds: float) -> tuple[float, float, int, int]:
    """Sample at the probes' pace; return CPU and wall seconds, the samples, and the most slots seen busy."""
    pause, busy, count = threading.Event(), 0, 0
    cpu, wall = time.process_time(), time.monotonic()
    while time.monotonic() - wall < seconds:
        busy = max(busy, sample(client))
        count += 1
        pause.wait(SAMPLE_EVERY_S)
    return time.process_time() - cpu, time.monotonic() - wall, count, busy


def dense(client: HttpClient) -> float:
    """Sample without a pause and return the CPU milliseconds of one sample."""
    cpu = time.process_time()
    for _ in range(DENSE_SAMPLES):
        sample(client)
    return 1000 * (time.process_time() - cpu) / DENSE_SAMPLES


def wait_until_ready(client: HttpClient, server: subprocess.Popen[bytes]) -> None:
    """Wait for /health. Raises: SystemExit."""
    end = time.monotonic() + READY_S
    while server.poll() is None and time.monotonic() < end:
        answer = client.fast_get("/health")
        if isinstance(answer, Exchange) and answer.status == 200:  # noqa: PLR2004 - HTTP's own number
            return
        time.sleep(0.02)
    raise SystemExit("sampling: the server did not become ready")


def main() -> int:
    """Measure and print; the figures as JSON at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--seconds", type=float, default=12.0)
    asked = parser.parse_args()
    port = free_port("127.0.0.1")
    argv = [
        f"{asked.bin_dir}/llama-server",
        "--model",
        asked.model,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    argv += ["--parallel", "2", "--ctx-size", "4096", "--threads", "1", "--metrics", "--slots"]
    children = [subprocess.Popen(argv, **_QUIET)]
    try:
        client = HttpClient(Origin("http", "127.0.0.1", port))
        wait_until_ready(client, children[0])
        children += [subprocess.Popen([sys.executable, "-c", ASK, str(port)], **_QUIET) for _ in range(2)]
        while sample(client) < 2:  # noqa: PLR2004 - both requests are at work
            time.sleep(0.05)
        cpu_s, wall_s, count, busy = paced(client, asked.seconds)
        each_ms = dense(client)
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait(60)
    figures = {
        "samples": count,
        "every_s": SAMPLE_EVERY_S,
        "most_slots_busy": busy,
        "cpu_ms_of_a_sample": round(each_ms, 2),
        "percent_of_a_core": round(100 * cpu_s / wall_s, 3),
        "samples_per_s_within_aim": round(AIM_PERCENT * 10 / each_ms, 1),
        "aim_percent": AIM_PERCENT,
    }
    for name, figure in figures.items():
        print(f"  {name:24} {figure}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
