"""Mutated headers: always facts, never an exception, never more memory or time than bounded.

LLAMAOPS_FUZZ_CASES sets the number of mutations of the test marked `slow` (ten thousand by default);
LLAMAOPS_FUZZ_MODEL adds the header of a real model file to the ones that are mutated.
"""

from __future__ import annotations

import collections
import os
import random
import struct
import time
import tracemalloc
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.gguf_file import GgufFacts, collect_gguf
from llamaops.schema.fact import Known
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeOpenFile, FakeSystem

PATH = "/models/m.gguf"
SHARD_PATH = "/models/m-00001-of-00001.gguf"
SLOW_CASES = int(os.environ.get("LLAMAOPS_FUZZ_CASES", "10000"))
INTERESTING = [0, 1, 7, 8, 9, 12, 13, 31, 255, 2**16, 2**30, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]
CASE_BYTES = 16 * 2**20
CASE_SECONDS = 5.0


class HoleSystem(FakeSystem):
    """Files whose length is larger than their content: what is missing reads as zeros."""

    size: int | None = None

    def open_regular(self, path: str) -> FakeOpenFile:
        file = super().open_regular(path)
        return file if self.size is None else PaddedFile(file.data, self.size)


class PaddedFile(FakeOpenFile):
    def read_at(self, offset: int, length: int) -> bytes:
        end = min(offset + length, self.size_bytes)
        return self.data[offset:end].ljust(max(0, end - offset), b"\0")


def seeds() -> list[tuple[bytes, int | None]]:
    """Files to mutate, each with the length it pretends to have."""
    rich = (
        g.FakeGguf()
        .with_key("llama.attention.head_count_kv", g.Array(g.U32, [0, 2, 2]))
        .with_key("tokenizer.ggml.merges", g.Array(g.STRING, [f"a b{n}" for n in range(500)]))
        .with_key("llama.rope.scaling.factor", (g.F32, 2.0))
        .with_key("general.alignment", (g.U32, 64))
    )
    found: list[tuple[bytes, int | None]] = [
        (g.FakeGguf().to_bytes(), None),
        (replace(rich, alignment=64).to_bytes(), None),
        (g.shards(count=1)[0], None),
        (g.FakeGguf().to_bytes(), 2**40),
    ]
    real = os.environ.get("LLAMAOPS_FUZZ_MODEL")
    if real:
        with open(real, "rb") as file:
            found.append((file.read(2_000_000), os.path.getsize(real)))
    return found


def mutate(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 4, 16])):
        # Most of what can go wrong is in the first bytes and in the tensor table.
        at = dice.randrange(min(len(out), dice.choice([64, 512, len(out)])))
        match dice.randrange(6):
            case 0:
                out[at] ^= 1 << dice.randrange(8)
            case 1:
                out[at : at + 8] = struct.pack("<Q", dice.choice(INTERESTING))
            case 2:
                out[at : at + 4] = struct.pack("<I", dice.choice(INTERESTING) & 0xFFFFFFFF)
            case 3:
                del out[at : at + dice.randrange(1, 64)]
            case 4:
                end = dice.randrange(at, min(len(out), at + 256) + 1)
                out[at:at] = out[at:end]
            case _:
                del out[dice.randrange(4, len(out)) :]
        if len(out) < 8:
            return bytes(out)
    return bytes(out)


def examine(data: bytes, size: int | None, path: str = PATH) -> GgufFacts:
    """Collect and judge, and hold what must be true of every file."""
    system = HoleSystem(files={path: data})
    system.size = size
    facts = collect_gguf(system, path)
    encoded = msgspec.json.encode(facts)
    assert len(encoded) < 2**20
    assert msgspec.json.decode(encoded, type=GgufFacts) == facts
    findings = [run_check(check, {GgufFacts: facts}) for check in all_checks(["model"])]
    assert all(finding is None or finding.status != "error" for finding in findings)
    if facts.header_read == Known(value=False, source=facts.header_read.source):
        assert any(one is not None and one.status in {"failed", "unknown"} for one in findings)
    return facts


def run(cases: int, seed: int) -> collections.Counter[str]:
    dice, files = random.Random(seed), seeds()
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(cases):
        data, size = dice.choice(files)
        mutant = mutate(data, dice)
        began = time.process_time()
        facts = examine(mutant, size, dice.choice([PATH, PATH, SHARD_PATH]))
        assert time.process_time() - began < CASE_SECONDS
        counts.update({problem.slug for problem in facts.problems.need()} or {"no problem"})
    return counts


def test_a_few_hundred_mutations() -> None:
    counts = run(400, seed=1)
    assert len(counts) > 10  # the mutations reach many different ends


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_mutations() -> None:
    counts = run(SLOW_CASES, seed=2)
    for slug, count in counts.most_common():
        print(f"{count:6d} {slug}")


def test_memory_of_hostile_files_is_bounded() -> None:
    dice, files = random.Random(3), seeds()
    for _ in range(60):
        data, size = dice.choice(files)
        mutant = mutate(data, dice)
        tracemalloc.start()
        try:
            examine(mutant, size)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < CASE_BYTES


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.binary(max_size=300), st.sampled_from([b"", b"GGUF", b"GGUF\x03\0\0\0", b"GGUF\x02\0\0\0\1"]))
def test_any_bytes(data: bytes, start: bytes) -> None:
    examine(start + data, None)


SCALARS = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda n: (g.U32, n)),
    st.integers(0, 2**64 - 1).map(lambda n: (g.U64, n)),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: (g.I64, n)),
    st.floats(width=32).map(lambda x: (g.F32, x)),
    st.floats().map(lambda x: (g.F64, x)),
    st.booleans(),
    st.binary(max_size=40),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5).map(lambda xs: g.Array(g.I32, xs)),
    st.lists(st.binary(max_size=9), max_size=5).map(lambda xs: g.Array(g.STRING, xs)),
)
KEYS = st.sampled_from([key for key, _ in [*g.model_keys(), *g.split_keys(0, 1, 1)]])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(st.tuples(KEYS, SCALARS), max_size=6))
def test_any_value_at_any_key(changes: list[tuple[str, object]]) -> None:
    file = g.FakeGguf()
    for key, value in changes:
        file = file.with_key(key, value)
    examine(file.to_bytes(), None)
