"""Which operators a card's driver has, for tensors of which kind and size; what it lacks runs on the host.

Source: ggml_backend_vk_device_supports_op and ggml_vk_get_op_batch_size in
ggml/src/ggml-vulkan/ggml-vulkan.cpp of llama.cpp. What depends on a card's own features (shared memory,
subgroups) is taken as present.
"""

from __future__ import annotations

from collections.abc import Callable

from llamaops.estimate.graph import F16, F32, I32, Tensor, strides
from llamaops.facts.ggml_types import BLOCKS

LARGEST_TENSOR = 2**32 - 1
"""Bytes of a tensor that Vulkan can address on a discrete card."""
SCAN_STATES = frozenset({128, 256})
SCAN_HEAD = 16
"""Sizes of the state of a Mamba 2 scan, and of what its heads are a multiple."""
DELTA_VALUES = frozenset({16, 32, 64, 128})
"""Widths of values for which there is a gated delta net."""
PRECISE = "precise"
"""Name of a product of experts that has to be computed in F32, which Vulkan cannot."""
HEAD_STEP = 8
"""Of what the width of a head is a multiple for flash attention."""

_NAMES = {name: number for number, (name, _, _) in BLOCKS.items()}
BF16 = _NAMES["BF16"]
FLOATS = frozenset({F32, F16})
_PLAIN = FLOATS | {BF16}
_SIMPLE = frozenset(_NAMES[name] for name in ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL"))
CACHE_TYPES = _PLAIN | _SIMPLE
_NOT_FOR_MATRICES = frozenset(_NAMES[name] for name in ("Q8_1", "Q8_K", "I8", "I16", "I32", "I64", "F64"))


def is_supported(node: Tensor, card: str) -> bool:
    """Return whether a card's driver has a node's operator; of drivers that we do not know, all."""
    if card != "vulkan":
        return True
    if max(tensor.size_bytes for tensor in (node, *node.sources)) > LARGEST_TENSOR:
        return False
    rule = _RULES.get(node.op)
    return rule is None or rule(node)


def batch_rows(node: Tensor) -> int:
    """Return the rows of a batch, as the driver counts them, from which on it takes weights from the host."""
    if node.op == "get_rows":
        return 0
    if node.op == "mul_mat":
        return node.ne[1]
    if node.op in {"mul_mat_id", "rope"}:
        return node.ne[2]
    return node.ne[1] * node.ne[2] * node.ne[3]


def _has_rows(tensor: Tensor) -> bool:
    """Return whether the elements of a row lie side by side."""
    return tensor.ne[0] == BLOCKS[tensor.type_id][1] or tensor.nb[0] == BLOCKS[tensor.type_id][2]


def _has_planes(tensor: Tensor) -> bool:
    whole = strides(tensor.type_id, tensor.ne)
    ne, nb = tensor.ne, tensor.nb
    return nb[:2] == whole[:2] and (ne[3] == 1 or nb[3] == nb[2] * ne[2])


def _product(matrix: Tensor, other: Tensor, outer: Tensor) -> bool:
    if matrix.type_id in _NOT_FOR_MATRICES or outer.ne[3] != other.ne[3]:
        return False
    if other.type_id == BF16 and matrix.type_id != BF16:
        return False
    if (matrix.type_id, other.type_id) == (BF16, F16):
        return False
    matrix_fits = matrix.type_id in _PLAIN or _has_planes(matrix)
    return matrix_fits and (other.type_id in FLOATS or _has_planes(other))


def _attention(node: Tensor) -> bool:
    q, k, v = node.sources[:3]
    if k.ne[0] % HEAD_STEP or v.ne[0] % HEAD_STEP or q.type_id != F32:
        return False
    return {k.type_id, v.type_id} <= CACHE_TYPES and (k.type_id == BF16) == (v.type_id == BF16)


def _scan(node: Tensor) -> bool:
    state, factors = node.sources[0], node.sources[3]
    return factors.ne[0] == 1 and state.ne[0] in SCAN_STATES and state.ne[1] % SCAN_HEAD == 0


def _copy(node: Tensor) -> bool:
    source, type_id = node.sources[0], node.type_id
    pair = source.type_id, type_id
    if F32 in pair and set(pair) <= CACHE_TYPES | {I32}:
        return True
    if source.type_id != type_id:
        return False
    plain = BLOCKS[type_id][1] == 1
    return (plain or (source.is_contiguous and node.is_contiguous)) and BLOCKS[type_id][2] % 2 == 0


def _of_floats(node: Tensor) -> bool:
    return {node.type_id, *(source.type_id for source in node.sources)} <= FLOATS


def _is_whole(node: Tensor) -> bool:
    return node.sources[0].is_contiguous and node.sources[0].type_id == F32


_RULES: dict[str, Callable[[Tensor], bool]] = {
    "mul_mat": lambda node: _product(node.sources[0], node.sources[1], node.sources[0]),
    "mul_mat_id": lambda node: node.name != PRECISE and _product(*node.sources),
    "flash_attn": _attention,
    "set_rows": lambda node: node.type_id in CACHE_TYPES and node.sources[0].type_id in FLOATS,
    "get_rows": lambda node: node.sources[0].type_id not in _NOT_FOR_MATRICES - {I32},
    "rope": lambda node: _has_rows(node) and _has_rows(node.sources[0]),
    "argsort": lambda node: node.is_contiguous and node.sources[0].is_contiguous,
    "ssm_scan": _scan,
    "gated_delta_net": lambda node: node.sources[2].ne[0] in DELTA_VALUES,
    "cpy": _copy,
    "cast": _copy,
    "cont": _copy,
    "scale": _is_whole,
    "soft_max": _is_whole,
    "sum_rows": lambda node: _has_rows(node.sources[0]),
    "add": _of_floats,
    "sub": _of_floats,
    "mul": _of_floats,
    "div": _of_floats,
}
