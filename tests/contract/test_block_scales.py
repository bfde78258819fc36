"""Scales tell which blocks are finite as the `gguf` package's own dequantization does."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import quants

from llamaops.facts.block_scales import EXPONENTS, PLAIN, surely_finite
from llamaops.facts.ggml_types import BLOCKS

NOT_BY_SCALES = {"IQ1_M", "NVFP4", "BF16"}
"""Their scales are spread over the block, or are no half floats; BF16 has no scale at all."""


def finite(type_id: int, block: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        values = quants.dequantize(block.reshape(1, -1), gguf.GGMLQuantizationType(type_id))
    return bool(np.isfinite(values).all())


@pytest.mark.parametrize("type_id", sorted(EXPONENTS))
def test_what_the_scales_call_finite_is(type_id: int) -> None:
    size = BLOCKS[type_id][2]
    dice = np.random.default_rng(type_id)
    blocks = dice.integers(0, 256, (400, size), dtype=np.uint8)
    for place, mask in EXPONENTS[type_id]:
        blocks[100:200, place] &= 0xFF ^ (mask & -mask)  # not full: the lowest bit of the exponent is missing
        blocks[200:300, place] |= mask
    told = [surely_finite(type_id, block.tobytes(), size) for block in blocks]
    true = [finite(type_id, block) for block in blocks]
    assert not any(said and not really for said, really in zip(told, true, strict=True))
    assert all(told[100:200])
    assert not any(told[200:300])
    assert surely_finite(type_id, blocks[100:200].tobytes(), size)
    assert not surely_finite(type_id, blocks[100:201].tobytes(), size)


@pytest.mark.parametrize("type_id", sorted(set(EXPONENTS) - {39}))
def test_a_full_exponent_makes_a_value_that_is_not_finite(type_id: int) -> None:
    size = BLOCKS[type_id][2]
    for place, mask in EXPONENTS[type_id]:
        block = np.full(size, 0x11, dtype=np.uint8)
        for other, other_mask in EXPONENTS[type_id]:
            block[other] &= 0xFF ^ (other_mask & -other_mask)
        assert finite(type_id, block)
        block[place] |= mask
        assert not finite(type_id, block), place


def test_every_type_that_gguf_reads_is_in_the_table_or_left_to_it() -> None:
    read = {kind.name for kind in quants._type_traits}
    there = {BLOCKS[type_id][0] for type_id in EXPONENTS}
    assert read - there <= NOT_BY_SCALES
    assert not surely_finite(29, bytes(BLOCKS[29][2]), BLOCKS[29][2])


@pytest.mark.parametrize(
    ("type_id", "form"), [(0, "<f4"), (1, "<f2"), (28, "<f8"), (24, "i1"), (25, "<i2"), (26, "<i4")]
)
def test_plain_numbers(type_id: int, form: str) -> None:
    good = np.arange(-50, 50).astype(form)
    assert surely_finite(type_id, good.tobytes(), BLOCKS[type_id][2])
    if PLAIN[type_id][1]:
        largest = np.array([np.finfo(form).max, np.finfo(form).min], dtype=form)
        assert surely_finite(type_id, largest.tobytes(), BLOCKS[type_id][2])
        for bad in (np.nan, np.inf, -np.inf):
            assert not surely_finite(type_id, np.append(good, bad).astype(form).tobytes(), 4)


def test_bfloat16() -> None:
    assert surely_finite(30, np.array([0x3F80, 0x7F7F, 0xFF7F, 0], dtype="<u2").tobytes(), 2)
    for bad in (0x7FC0, 0x7F80, 0xFF80):
        assert not surely_finite(30, np.array([0x3F80, bad], dtype="<u2").tobytes(), 2)
