"""Print what inspections of damaged files came to: whole commands on mutated headers, and made-up files.

    python -m tests.figures.fuzz [--files 10000] [--examples 10000] [--seed 1] [--model FILE.gguf ...]

Every file goes through the whole command, record included, in a child with 1 GiB of address space and ten
seconds of processor time. The files are real models whose headers were damaged (the embedded model, and
those named with --model), and small made ones of every kind. Examples are what hypothesis makes of any
bytes and of any value at any key; they go through facts and checks in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamaops.cli.app import main
from llamaops.facts.gguf_header import Header, read_header
from llamaops.operations import fetch
from llamaops.system.machine import Machine
from tests.fakes import gguf_files as g
from tests.unit.checks.test_identity import LORA, VISION, WHOLE
from tests.unit.facts.test_gguf_fuzz import INTERESTING, KEYS, SCALARS, examine, mutate

MEMORY_BYTES = 2**30
CPU_S = 10
STARTS = [
    b"",
    b"GGUF",
    b"GGUF\x03\0\0\0",
    b"GGUF\x02\0\0\0\1",
    b"GGUF\x03\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0",
]


class Outcome(NamedTuple):
    """What one inspection came to."""

    status: int
    """The exit status; negative for a signal."""
    words: tuple[str, ...]
    """The kinds of problems that it named."""
    errors: str
    cpu_s: float
    peak_mib: float


class Target:
    """A real model of which only the header is damaged, over and over in the same copy."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.path = folder / source.name
        shutil.copyfile(source, self.path)
        with Machine() as machine, machine.open_regular(str(source)) as file:
            parsed = read_header(file, str(source))
            assert parsed.data_start is not None, f"{source} is damaged already"
            self.size = file.size_bytes
            self.header = file.read_at(0, parsed.data_start)
        self.places = places(parsed, len(self.header))

    @contextlib.contextmanager
    def damaged(self, dice: random.Random) -> Iterator[Path]:
        """Yield a damaged file, and mend it."""
        changed = self._mutated(dice)
        cut = dice.random() < 0.1
        if cut or len(changed) < len(self.header) // 2:
            short = self.path.with_suffix(".short.gguf")
            with short.open("wb") as file:
                file.write(changed)
                if cut and dice.random() < 0.8:
                    file.truncate(dice.randrange(self.size))
            yield short
            return
        with self.path.open("r+b") as file:
            kept = file.read(max(len(changed), len(self.header)))
            file.seek(0)
            file.write(changed)
        try:
            yield self.path
        finally:
            with self.path.open("r+b") as file:
                file.write(kept)

    def _mutated(self, dice: random.Random) -> bytes:
        if dice.random() < 0.3:
            return mutate(self.header, dice)
        out = bytearray(self.header)
        for _ in range(dice.choice([1, 1, 2, 4])):
            at = dice.choice(self.places) + dice.choice([0, 0, 0, 1, 4, 8])
            form, number = dice.choice([("<Q", 8), ("<I", 4), ("<B", 1)])
            wanted = dice.choice([*INTERESTING, self.size]) if dice.random() < 0.6 else dice.randrange(256)
            wanted %= 2 ** (8 * number)
            out[at : at + number] = struct.pack(form, wanted)
        return bytes(out)


def places(header: Header, size: int) -> list[int]:
    """Return where lengths, counts, types, shapes and offsets of a header lie, in bytes from its start."""
    found = [0, 4, 8, 16]
    for key, entry in header.entries.items():
        offset = getattr(entry.value, "offset", None)
        if offset is not None:
            found += [offset - back for back in (8, 12, 16, 16 + len(key))]
            found += list(getattr(entry.value, "marks", ()))
    table = size - sum(len(one.name) + 24 + 8 * len(one.dimensions) for one in header.tensors) - 32
    found += [table + step for step in range(0, size - table, 4)] if len(header.tensors) < 1000 else []
    return [at for at in found if 0 <= at < size - 16]


def small_files() -> list[bytes]:
    """Return small files of many kinds."""
    shapes = [g.FakeTensor("blk.0.attn_q.weight", (256, 2), 12, data=bytes(range(144)) * 2)]
    made = [g.FakeGguf(), WHOLE, LORA, VISION, g.FakeGguf(tensors=shapes)]
    return [*(file.to_bytes() for file in made), *g.shards(count=2)]


def inspect(path: Path, records: Path) -> Outcome:
    """Run the whole command in a child with bounds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no thread
            child = os.fork()
        if child == 0:
            _in_child(path, records, out.fileno(), errors.fileno())
        _, raw, usage = os.wait4(child, 0)
        out.seek(0)
        errors.seek(0)
        text, said = out.read(), errors.read().decode("utf-8", "replace")
    shutil.rmtree(records, ignore_errors=True)
    return Outcome(
        os.waitstatus_to_exitcode(raw),
        _words(text),
        said,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
    )


def _in_child(path: Path, records: Path, out: int, errors: int) -> None:
    status = 99
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        os.dup2(out, 1)
        os.dup2(errors, 2)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - the child ends with it
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        status = main(["inspect", str(path), "--format", "json", "--records", str(records)])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # noqa: BLE001 - what escapes is what this is here to find
        os.write(2, f"Traceback {type(error).__name__}: {error}".encode())
    finally:
        os._exit(status)


def _words(text: bytes) -> tuple[str, ...]:
    try:
        record = json.loads(text)["record"]
        model = record["facts"]["model"]
        failed = [
            f"{one['check']} ({one['status']})" if one["status"] == "unknown" else one["check"]
            for one in record["findings"]
            if one["status"] in ("failed", "error")
            or (one["status"], one["severity"]) == ("unknown", "required")
        ]
    except (ValueError, KeyError, TypeError):
        return ("no record",)
    problems = model["problems"]["value"] if model["problems"]["state"] == "known" else []
    named = {f"`{problem['slug']}`" for problem in problems}
    return tuple(sorted(named or {f"only a check: {name}" for name in failed} or {"nothing wrong"}))


def run_files(count: int, seed: int, models: list[Path], folder: Path) -> list[Outcome]:
    """Inspect damaged files, a quarter of them small ones."""
    dice = random.Random(seed)
    targets = [Target(model, folder) for model in models]
    small, found = small_files(), []
    records = folder / "records"
    for number in range(count):
        if number % 4 == 0 or not targets:
            path = folder / dice.choice(["small.gguf", "small-00001-of-00002.gguf"])
            path.write_bytes(mutate(dice.choice(small), dice))
            found.append(inspect(path, records))
        else:
            with dice.choice(targets).damaged(dice) as damaged:
                found.append(inspect(damaged, records))
        if number % 500 == 499:
            print(f"{number + 1} files", file=sys.stderr)
    return found


def run_examples(count: int) -> Counter[str]:
    """Let hypothesis make files of any bytes, and of any value at any key; count what was named."""
    counts: Counter[str] = Counter()

    def count_of(data: bytes) -> None:
        problems = examine(data, None).problems.need()
        counts["files"] += 1
        counts.update({f"`{problem.slug}`" for problem in problems} or {"nothing wrong"})

    usual = settings(
        max_examples=count // 2, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    @usual
    @given(st.binary(max_size=300), st.sampled_from(STARTS))
    def any_bytes(data: bytes, start: bytes) -> None:
        count_of(start + data)

    @usual
    @given(st.lists(st.tuples(KEYS, SCALARS), max_size=6))
    def any_value(changes: list[tuple[str, object]]) -> None:
        file = g.FakeGguf()
        for key, value in changes:
            file = file.with_key(key, value)
        count_of(file.to_bytes())

    any_bytes()
    any_value()
    return counts


def table(counts: Counter[str], least: int = 1) -> str:
    """Return counts as rows of Markdown, the most frequent first."""
    return "\n".join(f"| {name} | {count:,} |" for name, count in counts.most_common() if count >= least)


def report(found: list[Outcome], examples: Counter[str]) -> str:
    """Return everything that was counted, as Markdown."""
    out = io.StringIO()
    statuses = Counter(f"exit status {outcome.status}" for outcome in found)
    traces = sum("Traceback" in outcome.errors or "itself broke" in outcome.errors for outcome in found)
    kinds: Counter[str] = Counter(word for outcome in found for word in outcome.words)
    print(f"{len(found):,} damaged files through the whole command:\n", file=out)
    print("| outcome | files |\n| --- | --- |", file=out)
    print(table(statuses), file=out)
    print(f"| traceback, or a defect reported as one | {traces} |", file=out)
    print(f"| ended by a bound | {sum(outcome.status < 0 for outcome in found)} |", file=out)
    print(f"\nmost processor time {max(outcome.cpu_s for outcome in found):.2f} s,", file=out, end=" ")
    print(f"most memory {max(outcome.peak_mib for outcome in found):.0f} MiB\n", file=out)
    print("| named | files |\n| --- | --- |", file=out)
    print(table(kinds), file=out)
    if examples:
        print(f"\n{examples.pop('files'):,} examples of hypothesis:\n", file=out)
        print("| named | examples |\n| --- | --- |", file=out)
        print(table(examples), file=out)
    return out.getvalue()


def fuzz() -> None:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=Path, action="append", default=[])
    asked = parser.parse_args()
    there = fetch.embedded(fetch.cache_folder(os.environ))
    models = [*asked.model, *([Path(there.model)] if there and there.model else [])]
    with tempfile.TemporaryDirectory() as folder:
        found = run_files(asked.files, asked.seed, models, Path(folder))
    print(report(found, run_examples(asked.examples) if asked.examples else Counter()))


if __name__ == "__main__":
    fuzz()
