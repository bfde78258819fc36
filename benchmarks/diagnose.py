# ruff: noqa: E501 - lines of logs stay whole
"""CPU time that a diagnosis takes for a large log, beside `grep -cE` of the catalogue of failure messages.

    python -m benchmarks.diagnose [--mib 256] [--log FILE]

Two logs are made: one of what a server writes while it serves, one of its loads at the highest verbosity
over and over; each ends with a failure. grep searches for the 163 patterns of the catalogue, as one
alternation; the diagnosis searches for those and for everything else that its rules know.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from llamaops.diagnosis.judge import diagnose_parts
from llamaops.diagnosis.parts import Part

CHUNK = 1 << 20
DATA = Path(__file__).parents[1] / "tests" / "data"
CATALOGUE = DATA / "diagnose" / "catalogue.yaml"
LOAD = DATA / "load_log" / "b10434-cpu-claims-offload.log"
LINES = (
    "srv  params_from_: Chat format: Hermes 2 Pro",
    "slot get_availabl: id  {slot} | task -1 | selected slot by LCP similarity, sim_best = 0.87{n} (> 0.100 thold)",
    "slot launch_slot_: id  {slot} | task {n} | processing task, is_child = 0",
    "slot update_slots: id  {slot} | task {n} | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = {n}",
    "slot update_slots: id  {slot} | task {n} | n_tokens = {n}, memory_seq_rm [{n}, end)",
    "slot print_timing: id  {slot} | task {n} | prompt eval time =     900.10 ms /   {n} tokens",
    "slot      release: id  {slot} | task {n} | stop processing: n_tokens = {n}, truncated = 0",
    "srv  update_slots: all slots are idle",
    "srv  log_server_r: done request: POST /v1/chat/completions 127.0.0.1 200",
)
LAST = "CUDA error: an illegal memory access was encountered\n"


def serving() -> bytes:
    """Return a MiB of what a busy server writes."""
    block, size = [], 0
    number = 0
    while size < CHUNK:
        number += 1
        line = LINES[number % len(LINES)].format(slot=number % 4, n=number % 4000)
        stamp = f"{number // 60}.{number % 60:02d}.{number % 1000:03d}.{(7 * number) % 1000:03d} I "
        block.append(f"{stamp}{line}\n")
        size += len(block[-1])
    return "".join(block).encode()


def loading() -> bytes:
    """Return a MiB of loads at the highest verbosity, as they were captured."""
    load = LOAD.read_bytes().rstrip(b"\n") + b"\n"
    return load * (CHUNK // len(load))


def write_log(path: Path, block: bytes, mib: int) -> None:
    """Write a log of a block over and over that ends with a failure."""
    with path.open("wb") as target:
        for _ in range(mib * CHUNK // len(block)):
            target.write(block)
        target.write(LAST.encode())


def alternation() -> str:
    """Return the patterns of the catalogue as one alternation that grep understands."""
    import yaml

    entries = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    return "|".join(f"({_for_grep(entry['pattern'])})" for entry in entries)


def _for_grep(text: str) -> str:
    text = re.sub(r"\(\?P<\w+>|\(\?:", "(", text.removeprefix("(?i)"))
    for ours, theirs in ((r"\d", "[0-9]"), (r"\S", r"[^ \t]"), (r"\s", r"[ \t]"), ("+?", "+"), ("*?", "*")):
        text = text.replace(ours, theirs)
    return text


def grep_seconds(path: Path, pattern: str) -> float:
    """Return the CPU seconds of grep."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile("w") as patterns:
        patterns.write(pattern)
        patterns.flush()
        subprocess.run(
            ["grep", "-cEf", patterns.name, str(path)],
            env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
            check=False,
            capture_output=True,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the file in pieces."""
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            yield chunk


def measure(path: Path, name: str, pattern: str) -> None:
    """Measure both on one log and print."""
    mib = path.stat().st_size / 2**20
    began = time.process_time()
    found = diagnose_parts([Part("log", path.name, chunks=chunks(path))])
    ours = time.process_time() - began
    grep = min(grep_seconds(path, pattern) for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{name}: {mib:,.0f} MiB, {found.parts[0].lines:,} lines: {found.slug}\n"
        f"  llamaops diagnose {ours:7.2f} s  {mib / ours:7.0f} MiB/s  peak {peak:.0f} MiB\n"
        f"  grep -cE          {grep:7.2f} s  {mib / grep:7.0f} MiB/s\n"
        f"  ratio to grep     {grep / ours:7.2f} (aim: at least 0.5)\n"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--log", type=Path)
    words = parser.parse_args()
    pattern = alternation()
    if words.log is not None:
        measure(words.log, words.log.name, pattern)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        for name, block in (("serving", serving()), ("loading", loading())):
            write_log(path, block, words.mib)
            measure(path, name, pattern)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
