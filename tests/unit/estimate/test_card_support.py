"""Which operators a card's driver has."""

from __future__ import annotations

import pytest

from llamaops.estimate.card_support import LARGEST_TENSOR, batch_rows, is_supported
from llamaops.estimate.cards import ENDLESS, memory_of
from llamaops.estimate.graph import F16, F32, I32, Graph, Tensor
from llamaops.estimate.recurrent_mixers import ssm_scan

Q8_0, Q4_K, BF16, Q8_K = 8, 12, 30, 15


def weight(*ne: int, type_id: int = F32) -> Tensor:
    return Graph.weight(type_id, ne)


def attention(key: int, value: int, *types: int) -> Tensor:
    k_type, v_type = types or (F16, F16)
    q, k = weight(key, 8, 4), weight(key, 256, 4, type_id=k_type)
    return Graph.flash_attention(q, k, weight(value, 256, 4, type_id=v_type))


def scan(state: int, width: int, factors: int) -> Tensor:
    states, x = weight(state, width, 8, 1), weight(width, 8, 16, 1)
    b = weight(state, 1, 16, 1)
    return ssm_scan(states, x, weight(8, 16), weight(factors, 8), b, b, weight(1, type_id=I32))


@pytest.mark.parametrize(
    ("node", "holds"),
    [
        (Graph.mul_mat(weight(256, 64, type_id=Q4_K), weight(256, 8)), True),
        (Graph.mul_mat(weight(256, 64, type_id=Q8_K), weight(256, 8)), False),
        (Graph.mul_mat(weight(64, 64, 8), weight(64, 8, 8, 4)), False),
        (Graph.mul_mat(weight(64, 64, type_id=BF16), weight(64, 8, type_id=F16)), False),
        (attention(128, 128), True),
        (attention(576, 512), True),
        (attention(100, 100), False),
        (attention(128, 128, Q8_0, Q8_0), True),
        (attention(128, 128, BF16, F16), False),
        (scan(128, 64, 1), True),
        (scan(128, 64, 16), False),
        (scan(64, 64, 1), False),
        (scan(128, 40, 1), False),
        (Graph().rope(weight(64, 8), weight(8, type_id=I32)), True),
        (Graph().rope(Graph.transpose(weight(64, 8)), weight(8, type_id=I32)), False),
        (Graph().scale(Graph.transpose(weight(64, 8))), False),
        (Graph().unary(Graph.transpose(weight(64, 8))), True),
        (Graph.cast(weight(64, 8, type_id=Q8_0), F32), True),
        (Graph.cast(weight(64, 8, type_id=Q8_0), F16), False),
        (Graph.get_rows(weight(256, 8, type_id=Q8_K), weight(2, type_id=I32)), False),
    ],
)
def test_vulkan_has_an_operator_for_some_tensors_only(node: Tensor, *, holds: bool) -> None:
    assert is_supported(node, "vulkan") == holds
    assert is_supported(node, "cuda")


def test_a_tensor_that_cannot_be_addressed_is_no_operand() -> None:
    large = weight(LARGEST_TENSOR // 4 + 1)
    assert not is_supported(Graph().unary(large), "vulkan")
    assert is_supported(Graph().unary(weight(LARGEST_TENSOR // 4)), "vulkan")


def test_rows_are_counted_as_the_driver_does() -> None:
    experts, x, ids = weight(64, 64, 8), weight(64, 1, 40), weight(2, 40, type_id=I32)
    assert batch_rows(Graph.mul_mat(weight(64, 64), weight(64, 31))) == 31
    assert batch_rows(Graph.mul_mat_id(experts, x, ids)) == 40
    assert batch_rows(Graph.get_rows(weight(64, 64), weight(99, type_id=I32))) == 0
    assert batch_rows(Graph().add(weight(64, 4, 5, 6), weight(64))) == 120


def test_drivers_lay_out_memory_in_their_own_way() -> None:
    assert (memory_of("vulkan").alignment, memory_of("vulkan").chunk_bytes) == (16, 2**30)
    assert (memory_of("cuda").alignment, memory_of("cuda").chunk_bytes) == (128, ENDLESS)
    assert memory_of("") == memory_of("vulkan")
