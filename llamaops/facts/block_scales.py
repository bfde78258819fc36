"""Whether every value of some blocks is finite, told by their scales alone.

A value of a quantized block is a small whole number times a scale (and for some types minus or plus a
smaller one), all of them below 2^9 and 2^16: it is finite where the scales are. So a look at one byte of
each scale is enough, the one with the exponent; blocks where that byte is full are dequantized, which
decides. `tests/contract/test_block_scales.py` holds the places against the `gguf` package.

Source: the structs of ggml-common.h; a scale is a half float unless the table says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

HALF = 0x7C
"""The exponent of a half float, in its upper byte."""
E8M0 = 0xFC
"""MXFP4's scale is a power of two in one byte; from 252 on its product with a value can be infinite."""

EXPONENTS: dict[int, tuple[tuple[int, int], ...]] = {
    2: ((1, HALF),), 3: ((1, HALF), (3, HALF)), 6: ((1, HALF),), 7: ((1, HALF), (3, HALF)),
    8: ((1, HALF),), 10: ((81, HALF), (83, HALF)), 11: ((109, HALF),), 12: ((1, HALF), (3, HALF)),
    13: ((1, HALF), (3, HALF)), 14: ((209, HALF),), 16: ((1, HALF),), 17: ((1, HALF),), 18: ((1, HALF),),
    19: ((1, HALF),), 20: ((1, HALF),), 21: ((1, HALF),), 22: ((1, HALF),), 23: ((1, HALF),),
    34: ((53, HALF),), 35: ((65, HALF),), 39: ((0, E8M0),),
}  # fmt: skip
"""Quantized type: places of bytes in its block, with the bits that all are set where one may be infinite."""

PLAIN: dict[int, tuple[str, int]] = {
    0: ("<u4", 0x7F80_0000), 1: ("<u2", 0x7C00), 30: ("<u2", 0x7F80), 28: ("<u8", 0x7FF0_0000_0000_0000),
    24: ("i1", 0), 25: ("<u2", 0), 26: ("<u4", 0), 27: ("<u8", 0),
}  # fmt: skip
"""Type of plain numbers: how to read them as whole ones, and the exponent; none for whole numbers."""


def surely_finite(type_id: int, data: bytes, block_bytes: int) -> bool:
    """Say whether all values of some whole blocks are finite; False where only their values can tell."""
    import numpy as np

    if type_id in PLAIN:
        form, mask = PLAIN[type_id]
        return not mask or not _full([np.frombuffer(data, form)], [mask])
    if type_id not in EXPONENTS:
        return False
    blocks = np.frombuffer(data, np.uint8).reshape(-1, block_bytes)
    places = EXPONENTS[type_id]
    return not _full([blocks[:, place] for place, _ in places], [mask for _, mask in places])


def _full(columns: Iterable[np.ndarray], masks: Iterable[int]) -> bool:
    return any(bool(((column & mask) == mask).any()) for column, mask in zip(columns, masks, strict=True))
