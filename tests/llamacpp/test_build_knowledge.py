"""What we say that a build knows against what the build itself says when it loads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llamaops.checks.knowledge import has_kernels_for_the_types, knows_the_model
from llamaops.checks.registry import Verdict
from llamaops.facts.build_names import collect_build_names, find_names
from llamaops.facts.gguf_file import GgufFacts, collect_gguf
from llamaops.schema.bounds import Bounds
from llamaops.system.machine import Machine
from tests.fakes import gguf_files as g

BOUNDS = Bounds(wall_s=30)


def facts(path: str | Path) -> GgufFacts:
    return collect_gguf(Machine(), str(path))


def judge(program: str, path: str | Path) -> bool:
    verdict = knows_the_model(collect_build_names(Machine(), program, facts(path)))
    assert isinstance(verdict, Verdict)
    return verdict.holds


def refused(program: str, path: Path) -> str:
    """Return what the engine says when it loads a model that has no weights worth the name."""
    with Machine() as machine:
        argv = [program, "-m", str(path), "-no-cnv", "-p", "a", "-n", "1", "-lv", "4"]
        done = machine.run(argv, bounds=BOUNDS)
    return done.stdout.text + done.stderr.text


@pytest.mark.llamacpp
def test_the_embedded_engine_knows_the_embedded_model(embedded_server: str, embedded_model: str) -> None:
    model = facts(embedded_model)
    found = collect_build_names(Machine(), embedded_server, model)
    assert {(one.kind, one.name, one.found.need()) for one in found.names} >= {
        ("architecture", "llama", "whole"),
        ("pre_tokenizer", "smollm", "whole"),
        ("tensor_type", "q4_1", "whole"),
    }
    assert {one.backend for one in found.kernels} >= {"cpu"}
    kernels = has_kernels_for_the_types(found, model)
    assert isinstance(kernels, Verdict)
    assert kernels.holds


@pytest.mark.fullengine
@pytest.mark.parametrize(
    ("key", "value", "known", "says"),
    [
        ("general.architecture", "nosucharch", False, "unknown model architecture"),
        ("tokenizer.ggml.pre", "nosuchpre", False, "unknown pre-tokenizer type"),
        ("tokenizer.ggml.pre", "qwen2", True, ""),
        ("general.architecture", "qwen2", True, ""),
    ],
)
def test_what_we_miss_the_engine_misses(
    full_engine: str, tmp_path: Path, key: str, value: str, known: bool, says: str
) -> None:
    architecture = value if key == "general.architecture" else "llama"
    model = (
        g.FakeGguf(keys=g.model_keys(architecture))
        .with_key("tokenizer.ggml.model", "gpt2")
        .with_key("tokenizer.ggml.pre", "gpt-2")
        .with_key("tokenizer.ggml.merges", g.Array(g.STRING, ["a b"]))
        .with_key(f"{architecture}.attention.layer_norm_rms_epsilon", (g.F32, 1e-5))
        .with_key(key, value)
    )
    path = tmp_path / "m.gguf"
    path.write_bytes(model.to_bytes())
    program = os.path.join(full_engine, "llama-completion")
    assert judge(program, path) is known
    said = refused(program, path)
    for _again in range(24):  # a quick exit can lose what this build's logger thread had to print
        if not known and says not in said:
            said = refused(program, path)
    unknown = ("unknown model architecture", "unknown pre-tokenizer type")
    assert says in said
    assert any(words in said for words in unknown) is not known


@pytest.mark.fullengine
def test_a_program_of_the_system_is_no_evidence() -> None:
    with Machine().open_regular(os.path.realpath("/bin/sh")) as file:
        assert find_names(file, ["falcon", "starcoder"]) == {"falcon": "absent", "starcoder": "absent"}
