"""Load real models and write what was predicted beside what the engine's log reported, into docs/memory.md.

    python -m tools.load_table --model FILE.gguf [--model ...] --bin-dir DIR [--bin-dir ...]

Each row is a real load: `llamaops serve --verify --once` asks the server for its health only, or, in a folder
without a server, `llamaops smoke` generates one token. Prediction and log come from its record.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from llamaops.system.catalogue import catalogue

PAGE = Path(__file__).resolve().parent.parent / "docs" / "memory.md"
BEGIN, END = "<!-- loads: begin -->", "<!-- loads: end -->"
MIB = 2**20
WINDOWED = ("gemma",)

SERVED: tuple[tuple[str, ...], ...] = (
    ("--ctx-size", "512", "--parallel", "1"),
    ("--ctx-size", "8192", "--parallel", "1"),
    ("--ctx-size", "8192", "--parallel", "4", "--no-kv-unified"),
    ("--ctx-size", "8192", "--parallel", "4", "--kv-unified"),
    ("--ctx-size", "8192", "--parallel", "2", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0"),
    ("--ctx-size", "4096", "--parallel", "1", "--flash-attn", "off", "--ubatch-size", "256"),
)
WITH_WINDOW: tuple[tuple[str, ...], ...] = (
    ("--ctx-size", "32768", "--parallel", "1"),
    ("--ctx-size", "8192", "--parallel", "1", "--", "--swa-full"),
    ("--ctx-size", "8192", "--parallel", "4", "--kv-unified", "--", "--swa-full"),
    ("--ctx-size", "8192", "--parallel", "4", "--no-kv-unified", "--", "--swa-full"),
)
SMOKED: tuple[tuple[str, ...], ...] = (("--ctx-size", "512"), ("--ctx-size", "8192"))

PARTS = (
    ("KV cache", ("KV cache", "windowed KV cache", "indexer cache"), "kv_buffers"),
    ("compute", ("compute",), "compute_buffers"),
    ("output", ("output",), "output_buffers"),
)


class Row(NamedTuple):
    """One part of one load."""

    model: str
    build: str
    asked: str
    part: str
    predicted: int | None
    """None for what no prediction is made of."""
    reported: int

    @property
    def difference(self) -> str:
        """Return the difference; none where the log prints what the prediction rounds to."""
        if self.predicted is None:
            return "-"
        if round(self.predicted / MIB, 2) == round(self.reported / MIB, 2):
            return "0"
        return f"{self.reported - self.predicted:+,}"


def load(model: Path, bin_dir: Path, words: tuple[str, ...]) -> dict[str, Any]:
    """Load a model once and return the record.

    Raises: SystemExit when no record came of it.
    """
    served = (bin_dir / "llama-server").exists()
    verb = ["serve", "--verify", "--once", "--only", "health"] if served else ["smoke", "--max-tokens", "1"]
    cut = words.index("--") if "--" in words else len(words)
    own = ["--model", str(model), "--bin-dir", str(bin_dir), "--threads", "1", "--format", "json", "--quiet"]
    with tempfile.TemporaryDirectory() as records:
        argv = [*verb, *own, "--records", records, *words[:cut], *words[cut:]]
        done = subprocess.run(
            [sys.executable, "-m", "llamaops", *argv],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    document = json.loads(done.stdout)
    if "load" not in (document.get("record") or {}).get("facts", {}):
        raise SystemExit(f"load_table: nothing was loaded by {' '.join(argv)}\n{done.stderr}")
    return dict(document["record"])


def short(word: str) -> str:
    """Return a flag as an engine knows it in short, so that a row stays a line."""
    known = {"--ctx-size": "-c", "--parallel": "-np", "--kv-unified": "-kvu", "--no-kv-unified": "-no-kvu"}
    more = {"--cache-type-k": "-ctk", "--cache-type-v": "-ctv", "--flash-attn": "-fa", "--ubatch-size": "-ub"}
    return (known | more).get(word, word)


def value(fact: dict[str, Any]) -> Any:  # noqa: ANN401 - plain data, as JSON has it
    """Return the value of a fact, None where it is not known."""
    return fact.get("value") if fact.get("state") == "known" else None


def rows_of(record: dict[str, Any], model: str, words: tuple[str, ...]) -> Iterator[Row]:
    """Yield the parts of a load; weights and what is copied for the processor's kernels apart."""
    fit, seen = record["facts"]["fit"], record["facts"]["load"]
    version = record["facts"]["binary"]["version"]
    commit = value(version["commit"]) or "?"
    ours = (item.build for item in catalogue().values() if item.build and item.commit == commit)
    build = next(ours, None) or value(version["semver"]) or commit
    asked = " ".join(short(word) for word in words if word != "--") or "as trained"
    buffers = value(seen["weight_buffers"]) or []
    weights = sum(part["high_bytes"] for part in fit["parts"] if part["name"] == "weights")
    mapped = sum(one["size_bytes"] for one in buffers if "REPACK" not in one["name"])
    yield Row(model, build, asked, "weights", weights, mapped)
    for name, parts, group in PARTS:
        predicted = sum(part["high_bytes"] for part in fit["parts"] if part["name"] in parts)
        reported = sum(one["size_bytes"] for one in value(seen[group]) or [])
        yield Row(model, build, asked, name, predicted, reported)
    copied = sum(one["size_bytes"] for one in buffers if "REPACK" in one["name"])
    if copied:
        yield Row(model, build, asked, "repacked weights", None, copied)


def cell(row: Row) -> str:
    """Return what was predicted, and in brackets what the log says; a difference is bold."""
    reported = f"{row.reported / MIB:,.2f}"
    if row.predicted is None:
        return f"({reported})"
    more = "" if row.difference == "0" else f" **{row.difference}**"
    return f"{row.predicted:,} ({reported}){more}"


def table(rows: list[Row]) -> str:
    """Return one line for each load, those of several builds that are equal as one."""
    parts = list(dict.fromkeys(row.part for row in rows))
    loads: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        loads.setdefault((row.model, row.asked, row.build), {})[row.part] = cell(row)
    builds: dict[tuple[str, ...], list[str]] = {}
    for (model, asked, build), cells in loads.items():
        line = (model, f"`{asked}`", *(cells.get(part, "") for part in parts))
        builds.setdefault(line, []).append(build)
    head = ["model", "asked", *parts, "builds"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    lines += [f"| {' | '.join(line)} | {', '.join(names)} |" for line, names in builds.items()]
    predicted = [row for row in rows if row.predicted is not None]
    exact = sum(row.difference == "0" for row in predicted)
    return "\n".join([*lines, "", f"{exact} of {len(predicted)} parts of {len(loads)} loads as predicted."])


def write() -> None:
    """Load everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, action="append", required=True)
    parser.add_argument("--bin-dir", type=Path, action="append", required=True)
    parser.add_argument("--print", action="store_true", help="print it and write nothing")
    asked = parser.parse_args()
    rows: list[Row] = []
    for model in asked.model:
        for folder in asked.bin_dir:
            grid = SERVED if (folder / "llama-server").exists() else SMOKED
            if grid is SERVED and model.name.startswith(WINDOWED):
                grid += WITH_WINDOW
            for words in grid:
                rows += rows_of(load(model, folder, words), model.name.split(".")[0].split("-q")[0], words)
                print(*rows[-1], file=sys.stderr)
    text = table(rows)
    if asked.print:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    write()
