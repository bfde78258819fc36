"""What we say of a mixture against what llama-quantize was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llamaops.checks.identity import quantization_is_as_declared
from llamaops.checks.registry import Verdict
from llamaops.facts.model_look import collect_model
from llamaops.schema.bounds import Bounds
from llamaops.system.machine import Machine
from tests.fakes.tiny_model import write_tiny_model

BOUNDS = Bounds(wall_s=60)


@pytest.mark.fullengine
@pytest.mark.parametrize(
    ("mixture", "fallback"),
    [
        ("Q8_0", None),
        ("Q4_0", None),
        ("Q4_K_M", "Q4_K"),
        ("Q6_K", "Q6_K"),
        ("Q3_K_S", "Q3_K"),
        ("BF16", None),
    ],
)
def test_what_the_quantizer_made_is_what_it_declares(
    full_engine: str, tmp_path: Path, mixture: str, fallback: str | None
) -> None:
    source = write_tiny_model(tmp_path / "tiny.gguf")
    path = tmp_path / f"tiny-{mixture}.gguf"
    with Machine() as machine:
        program = os.path.join(full_engine, "llama-quantize")
        assert machine.run([program, str(source), str(path), mixture, "2"], bounds=BOUNDS).ok
        _model, identity = collect_model(machine, str(path))
        other = tmp_path / "tiny-Q2_K.gguf"
        other.write_bytes(path.read_bytes())
        _model, renamed = collect_model(machine, str(other))
    found = identity.quantization.need()
    assert (found.declared, found.named, found.main_with_fallback) == (mixture, mixture, fallback)
    verdict = quantization_is_as_declared(identity)
    assert isinstance(verdict, Verdict)
    assert verdict.holds, verdict.summary
    verdict = quantization_is_as_declared(renamed)
    assert isinstance(verdict, Verdict)
    # Q4_0 is what a Q2_K with rows as short as these becomes, so its name contradicts nothing there.
    assert verdict.holds is (mixture == "Q4_0"), verdict.summary
