# ruff: noqa: E501 - lines of logs stay whole
"""CPU time that a diagnosis takes for a large log, beside `grep -cE` of its patterns of failures.

    python -m benchmarks.diagnose [--mib 256] [--log FILE]

The log is made of what servers write while they serve, with a failure at its end. grep searches for the
catalogue of failure messages (the patterns of rules that end a program), as one alternation.
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
from llamaops.diagnosis.rule import Condition, rule_set

CHUNK = 1 << 20
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


def write_log(path: Path, mib: int) -> None:
    """Write a log of a busy server that ends with a failure."""
    block, size = [], 0
    number = 0
    while size < CHUNK:
        number += 1
        line = LINES[number % len(LINES)].format(slot=number % 4, n=number % 4000)
        stamp = f"{number // 60}.{number % 60:02d}.{number % 1000:03d}.{(7 * number) % 1000:03d} I "
        block.append(f"{stamp}{line}\n")
        size += len(block[-1])
    data = "".join(block).encode()
    with path.open("wb") as target:
        for _ in range(mib):
            target.write(data)
        target.write(LAST.encode())


def alternation() -> str:
    """Return the patterns of failures as one alternation that grep understands."""
    rules = rule_set()
    wanted = {
        signal
        for rule in rules.rules
        if rule.severity == "fatal" and rule.tier != "cause"
        for signal in _signals(rule.match)
    }
    texts = (rules.signals[index].regex for index in sorted(wanted) if not rules.signals[index].fold)
    plain = (
        re.sub(r"\(\?P<\w+>|\(\?:", "(", text).replace(r"\d", "[0-9]").replace("+?", "+").replace("*?", "*")
        for text in texts
    )
    return "|".join(f"({text})" for text in plain)


def _signals(condition: Condition) -> Iterator[int]:
    if condition.op == "line":
        yield condition.signal
    for inner in condition.of:
        yield from _signals(inner)


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


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--log", type=Path)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = words.log or Path(folder) / "server.log"
        if words.log is None:
            write_log(path, words.mib)
        mib = path.stat().st_size / 2**20
        pattern = alternation()
        began = time.process_time()
        found = diagnose_parts([Part("log", path.name, chunks=chunks(path))])
        ours = time.process_time() - began
        grep = min(grep_seconds(path, pattern) for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{mib:,.0f} MiB, {found.parts[0].lines:,} lines: {found.slug}\n"
        f"llamaops diagnose {ours:7.2f} s  {mib / ours:7.0f} MiB/s  peak {peak:.0f} MiB\n"
        f"grep -cE          {grep:7.2f} s  {mib / grep:7.0f} MiB/s\n"
        f"ratio to grep     {grep / ours:7.2f} (aim: at least 0.5)\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
