"""What we say of a model file against what llama.cpp says of it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from llamaops.checks import model as checks
from llamaops.facts.gguf_file import collect_gguf
from llamaops.schema.bounds import Bounds
from llamaops.system.machine import Machine
from llamaops.system.process import Completed
from tests.fakes import gguf_files as g
from tests.fakes.tiny_model import WORDS, write_tiny_model
from tests.unit.facts.test_gguf_fuzz import mutate, seeds
from tests.unit.facts.test_gguf_header import WRONG

BOUNDS = Bounds(wall_s=30)
REFUSED = checks.HEADER_SLUGS | checks.VERSION_SLUGS | checks.TYPE_SLUGS | {"not-gguf", "beyond-our-limits"}
STRICTER_THAN_THE_ENGINE = {"no elements"}
"""llama.cpp's reader takes a tensor without elements; its loader then misses the tensor it expected."""


def engine(folder: str, program: str, *arguments: str) -> Completed:
    with Machine() as machine:
        return machine.run([os.path.join(folder, program), *arguments], bounds=BOUNDS)


def slugs(path: str) -> set[str]:
    return {problem.slug for problem in collect_gguf(Machine(), path).problems.need()}


@pytest.mark.llamacpp
def test_the_embedded_model(embedded_model: str) -> None:
    facts = collect_gguf(Machine(), embedded_model)
    assert facts.problems.need() == ()
    # The engine's own figures: n_params and size of /v1/models.
    assert facts.parameter_count.need() == 134_515_008
    assert facts.tensor_bytes.need() == 96_576_768
    assert (facts.tensor_count.need(), len(facts.metadata.need())) == (272, 32)
    assert [one.type for one in facts.tensor_types.need()] == ["Q4_1", "Q8_0", "F32"]
    assert facts.vocabulary_size.need() == 49_152
    assert {one.role: one.text for one in facts.special_tokens.need()}["eos"] == "<|im_end|>"


@pytest.mark.fullengine
def test_the_tiny_model_says_its_sentence(full_engine: str, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    # A shorter run ends before this build's logger thread has printed the text.
    wanted = ["-no-cnv", "-p", "Hi", "-n", "100", "--temp", "0", "-c", "256"]
    done = engine(full_engine, "llama-completion", "-m", str(path), *wanted)
    assert done.ok
    assert " ".join(WORDS) in done.stdout.text
    assert slugs(str(path)) == set()


@pytest.mark.fullengine
def test_parts_that_the_engine_split(full_engine: str, tmp_path: Path) -> None:
    whole = write_tiny_model(tmp_path / "tiny.gguf")
    prefix = str(tmp_path / "part")
    done = engine(full_engine, "llama-gguf-split", "--split", "--split-max-tensors", "8", str(whole), prefix)
    assert done.ok
    names = g.shard_names(prefix)
    expected = collect_gguf(Machine(), str(whole)).tensor_bytes.need()
    for name in names:
        facts = collect_gguf(Machine(), name)
        assert facts.problems.need() == ()
        assert facts.tensor_bytes.need() == expected
        assert facts.engine_path.need() == names[0]
    joined = tmp_path / "joined.gguf"
    joined.write_bytes(b"".join(Path(name).read_bytes() for name in names))
    assert {"shards-joined", "shard-renamed"} <= slugs(str(joined))


@pytest.mark.fullengine
def test_the_engine_refuses_the_headers_that_we_refuse(full_engine: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    dice, files = random.Random(5), [data for data, size in seeds() if size is None]
    cases = [(name, file.to_bytes()) for name, file, _ in WRONG]
    cases += [(f"mutation {number}", mutate(dice.choice(files), dice)) for number in range(150)]
    differ = []
    for name, data in cases:
        path.write_bytes(data)
        arguments = ["--split", "--dry-run", str(path), str(tmp_path / "out")]
        done = engine(full_engine, "llama-gguf-split", *arguments)
        said = done.stdout.text + done.stderr.text
        if ("failed to load" in said) != bool(slugs(str(path)) & REFUSED):
            differ.append(name)
    assert set(differ) <= STRICTER_THAN_THE_ENGINE
