"""Where weights go: experts, factors of rotation, tied heads, scans that a card lacks."""

from __future__ import annotations

import pytest

from llamaops.estimate.model import Model, Weight
from llamaops.estimate.plan import Load
from llamaops.estimate.weights import first_on_card, is_on_card, lacks_operator, weight_bytes
from tests.fakes.memory_truth import models

LLAMA = "llama-3.2-1b-q8_0"
FACTORS = 128
"""Bytes of that model's factors of rotation."""


def load(layers: int, **changes: object) -> Load:
    return Load(
        context_tokens=512, sequence_tokens=512, slots=1, is_unified=True, batch_tokens=512, outputs=1,
        gpu_layers=layers, card="vulkan", **changes,  # type: ignore[arg-type]  # whatever a load has
    )  # fmt: skip


def weight(name: str, *ne: int) -> Weight:
    return Weight(name, 0, ne or (32,), 128)


@pytest.mark.parametrize(
    ("name", "is_expert"),
    [
        ("blk.0.ffn_up_exps.weight", True),
        ("blk.0.ffn_gate_up_exps.weight", True),
        ("blk.0.ffn_down_chexps.weight", True),
        ("blk.0.ffn_norm_exps.weight", False),
        ("blk.0.ffn_up_shexp.weight", False),
        ("blk.0.ffn_up.weight", False),
    ],
)
def test_experts_are_those_that_the_engine_names(name: str, *, is_expert: bool) -> None:
    assert weight(name).is_expert == is_expert
    model = models()[LLAMA]
    assert is_on_card(model, weight(name), 0, load(99, host_experts=1)) != is_expert


def test_factors_of_rotation_are_on_each_side_that_has_layers() -> None:
    model = models()[LLAMA]
    head = model.by_name["token_embd.weight"].size_bytes or 0
    alone = weight_bytes(model, load(0)).total
    assert weight_bytes(model, load(99)).total == alone + head
    assert weight_bytes(model, load(8)).total == alone + head + FACTORS
    only_last = weight_bytes(model, load(8), rotating=[model.layers - 1])
    assert only_last.total == alone + head


def test_a_head_that_is_the_embedding_itself_is_not_copied() -> None:
    model = models()[LLAMA]
    copied, shared = weight_bytes(model, load(99)), weight_bytes(model, load(99), has_head=False)
    assert copied.device - shared.device == model.by_name["token_embd.weight"].size_bytes
    assert copied.host == shared.host


def test_layers_that_are_gone_through_twice_count_twice() -> None:
    known = models()[LLAMA]
    model = Model({**known.keys, "llama.num_loops": 2}, known.weights, known.vocabulary)
    assert first_on_card(known, 1) == known.blocks
    assert first_on_card(model, 1) == 2 * known.blocks
    assert first_on_card(model, known.blocks + 1) == known.blocks


@pytest.mark.parametrize(
    ("architecture", "shape", "lacks"),
    [
        ("mamba", (16, 512), True),
        ("mamba2", (1, 16), False),
        ("plamo2", (16,), True),
        ("qwen35", (16,), False),
    ],
)
def test_a_card_lacks_scans_whose_factors_are_not_single_numbers(
    architecture: str, shape: tuple[int, ...], *, lacks: bool
) -> None:
    model = Model({"general.architecture": architecture}, (), 0)
    assert lacks_operator(model, weight("blk.0.ssm_a", *shape), load(99)) == lacks
    assert not lacks_operator(model, weight("blk.0.ssm_d", *shape), load(99))
