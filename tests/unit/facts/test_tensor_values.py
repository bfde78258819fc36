"""Values of tensors: finite ones, holes, NaN in every form that can hold it, and what cannot be read."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts import tensor_values
from llamaops.facts.gguf_probe import look
from llamaops.facts.tensor_values import TensorValuesFacts, collect_tensor_values
from llamaops.schema.finding import Finding
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeSystem

PATH = "/m/t.gguf"
F32, F16, Q4_0, Q8_0, Q4_K, I32, BF16, Q8_1 = 0, 1, 2, 8, 12, 26, 30, 9
NAN16, INF16 = b"\x00\x7e", b"\x00\x7c"


def half(value: float) -> bytes:
    return struct.pack("<e", value)


def q8_0(scale: bytes = half(0.5)) -> bytes:
    return scale + bytes(range(32))


def values(*tensors: g.FakeTensor, cut: int = 0) -> TensorValuesFacts:
    data = replace(g.FakeGguf(), tensors=tensors).to_bytes()
    system = FakeSystem(files={PATH: data[: len(data) - cut]})
    return collect_tensor_values(system, look(system, PATH))


def judge(facts: TensorValuesFacts) -> dict[str, Finding]:
    found = (run_check(check, {TensorValuesFacts: facts}) for check in all_checks(["values"]))
    return {finding.check: finding for finding in found if finding is not None}


FINITE, DIFFER = "model.tensor-values-are-finite", "model.tensor-values-differ"


def test_good_values_pass() -> None:
    facts = values(
        g.FakeTensor("a.weight", (32, 2), Q8_0, data=q8_0() * 2),
        g.FakeTensor("b.weight", (4,), F32, data=struct.pack("<4f", 1, 2, 3, 4)),
        g.FakeTensor("c.weight", (4,), BF16, data=struct.pack("<4H", 0x3F80, 0x4000, 0, 0)),
        g.FakeTensor("d.weight", (4,), I32, data=struct.pack("<4i", 1, 2, 3, 4)),
    )
    assert (facts.tensors_read, facts.elements, facts.odd_count, facts.not_read) == (4, 76, 0, ())
    assert {finding.status for finding in judge(facts).values()} == {"passed"}


@pytest.mark.parametrize(
    ("tensor", "nan", "infinite"),
    [
        (g.FakeTensor("x", (32,), Q8_0, data=q8_0(NAN16)), 32, 0),
        (g.FakeTensor("x", (32,), Q8_0, data=INF16 + bytes([1] * 32)), 0, 32),
        (g.FakeTensor("x", (32,), Q4_0, data=NAN16 + bytes(range(16))), 32, 0),
        (g.FakeTensor("x", (256,), Q4_K, data=NAN16 + bytes(range(142))), 256, 0),
        (g.FakeTensor("x", (2,), F32, data=struct.pack("<2f", float("nan"), 1)), 1, 0),
        (g.FakeTensor("x", (2,), F16, data=INF16 + half(1)), 0, 1),
        (g.FakeTensor("x", (2,), BF16, data=struct.pack("<2H", 0x7FC0, 0x7F80)), 1, 1),
    ],
)
def test_values_that_are_not_finite(tensor: g.FakeTensor, nan: int, infinite: int) -> None:
    facts = values(tensor)
    (odd,) = facts.odd.need()
    assert (odd.nan, odd.infinite) == (nan, infinite)
    finding = judge(facts)[FINITE]
    assert (finding.status, finding.severity) == ("failed", "required")
    assert "x (" in finding.summary


def test_holes_and_constants_are_told_for_matrices_only() -> None:
    facts = values(
        g.FakeTensor("hole.weight", (32, 4), Q8_0, data=bytes(34 * 4)),
        g.FakeTensor("ones.weight", (2, 2), F32, data=struct.pack("<4f", 1, 1, 1, 1)),
        g.FakeTensor("norm.weight", (4,), F32, data=struct.pack("<4f", 1, 1, 1, 1)),
    )
    finding = judge(facts)[DIFFER]
    assert (finding.status, finding.severity) == ("failed", "advisory")
    assert "hole.weight (Q8_0, 128 values: all zero)" in finding.summary
    assert "ones.weight (F32, 4 values: all 1)" in finding.summary
    assert "1 vectors" in finding.summary
    assert judge(facts)[FINITE].status == "passed"


def test_a_constant_across_pieces_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_values, "PIECE_ELEMENTS", 64)
    facts = values(g.FakeTensor("x", (32, 32), Q8_0, data=bytes(34 * 32)))
    assert [one.constant for one in facts.odd.need()] == [0.0]
    last = bytes(34 * 31) + q8_0()
    assert values(g.FakeTensor("x", (32, 32), Q8_0, data=last)).odd_count == 0


@pytest.mark.parametrize("bad", [NAN16, INF16])
@pytest.mark.parametrize("at", [0, 1, 40, 63])
def test_a_bad_scale_is_found_wherever_it_is(bad: bytes, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_values, "FIRST_ELEMENTS", 32)
    monkeypatch.setattr(tensor_values, "PIECE_ELEMENTS", 320)
    blocks = [q8_0()] * 64
    blocks[at] = bad + bytes([1] * 32)
    facts = values(g.FakeTensor("x", (32, 64), Q8_0, data=b"".join(blocks)))
    (odd,) = facts.odd.need()
    assert (odd.nan + odd.infinite, facts.elements) == (32, 2048)


def test_blocks_after_two_that_differ_are_not_dequantized(monkeypatch: pytest.MonkeyPatch) -> None:
    import gguf

    seen: list[int] = []
    real = gguf.quants.dequantize

    def dequantize(data: Any, kind: Any) -> Any:
        seen.append(len(data))
        return real(data, kind)

    monkeypatch.setattr(gguf.quants, "dequantize", dequantize)
    monkeypatch.setattr(tensor_values, "FIRST_ELEMENTS", 32)
    facts = values(g.FakeTensor("x", (32, 64), Q8_0, data=q8_0() * 64))
    assert (seen, facts.elements, facts.odd_count) == ([1], 2048, 0)


def test_what_cannot_be_read_is_unknown() -> None:
    facts = values(g.FakeTensor("x", (32,), Q8_1, data=bytes(36)))
    assert "Q8_1" in facts.not_read[0]
    assert judge(facts)[FINITE].status == "unknown"
    cut = values(g.FakeTensor("x", (32, 8), Q8_0, data=q8_0() * 8), cut=40)
    assert "not all there" in cut.not_read[0]
    assert judge(cut)[FINITE].status == "unknown"
