"""What we say of adapters and drafts against what llama.cpp says when it is given them."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from llamaops.checks.companions import companions_fit
from llamaops.checks.registry import Verdict
from llamaops.facts.companions import collect_companions
from llamaops.facts.gguf_probe import look
from llamaops.schema.bounds import Bounds
from llamaops.system.machine import Machine
from tests.fakes import gguf_files as g
from tests.fakes.tiny_model import write_tiny_model
from tests.unit.checks.test_identity import LORA

BOUNDS = Bounds(wall_s=30)


def matrix(name: str, columns: int, rows: int) -> g.FakeTensor:
    return g.FakeTensor(name, (columns, rows), 0, data=struct.pack("<f", 0.0) * columns * rows)


def width_of(path: Path, name: str) -> tuple[int, int]:
    probe = look(Machine(), str(path))
    assert probe.main is not None
    assert probe.main.header is not None
    tensor = next(one for one in probe.main.header.tensors if one.name == name)
    return tensor.dimensions[0], tensor.dimensions[1]


@pytest.mark.fullengine
@pytest.mark.parametrize("fault", ["", "architecture", "shape", "name", "kind"])
def test_an_adapter(full_engine: str, tmp_path: Path, fault: str) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    target = "blk.0.attn_q.weight"
    columns, rows = width_of(model, target)
    wrong = 32 if fault == "shape" else 0
    name = "blk.99.attn_q.weight" if fault == "name" else target
    adapter = replace(
        LORA, tensors=[matrix(f"{name}.lora_a", columns + wrong, 4), matrix(f"{name}.lora_b", 4, rows)]
    )
    if fault == "architecture":
        adapter = adapter.with_key("general.architecture", "qwen2")
    if fault == "kind":
        adapter = adapter.with_key("adapter.type", "other")
    path = tmp_path / "lora.gguf"
    path.write_bytes(adapter.to_bytes())
    with Machine() as machine:
        verdict = companions_fit(
            collect_companions(machine, look(machine, str(model)), {"lora": [str(path)]})
        )
        argv = [os.path.join(full_engine, "llama-completion"), "-m", str(model), "--lora", str(path)]
        done = machine.run([*argv, "-no-cnv", "-p", "Hi", "-n", "2", "-c", "256"], bounds=BOUNDS)
    assert isinstance(verdict, Verdict)
    assert verdict.holds is (not fault), verdict.summary
    assert done.ok is (not fault), done.stderr.text[-500:]
