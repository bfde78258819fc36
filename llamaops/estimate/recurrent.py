"""Bytes of recurrent state.

Source: llama_hparams::n_embd_r and n_embd_s; llama_memory_recurrent: F32, one row for each sequence.
"""

from __future__ import annotations

from llamaops.estimate.model import Model
from llamaops.estimate.plan import Layout, Load

F32_BYTES = 4
LIGHTNING = frozenset({"minimax-01"})
"""Architectures whose heads each keep a square of their width."""


def conv_width(model: Model) -> int:
    """Return the elements of a layer's convolution (or token shift) state of one sequence."""
    if model.number("wkv.head_size"):
        return model.number("token_shift_count", 2) * model.width
    if model.number("shortconv.l_cache"):
        return model.width * (model.number("shortconv.l_cache") - 1)
    kernel = model.number("ssm.conv_kernel")
    if model.number("kda.head_dim"):
        return 3 * (kernel - 1 if kernel else 3) * model.most_heads * model.number("kda.head_dim")
    inner, groups = model.number("ssm.inner_size"), model.number("ssm.group_count")
    return max(0, kernel - 1) * (inner + 2 * groups * model.number("ssm.state_size"))


def state_width(model: Model) -> int:
    """Return the elements of a layer's scan state of one sequence."""
    if model.number("wkv.head_size"):
        return model.width * model.number("wkv.head_size")
    if model.number("shortconv.l_cache"):
        return 0
    size = model.key_length() if model.architecture in LIGHTNING else model.number("kda.head_dim")
    if size:
        return size**2 * model.most_heads
    return model.number("ssm.state_size") * model.number("ssm.inner_size")


def history_width(model: Model) -> int:
    """Return the elements of earlier tokens' pieces that one layer keeps of one sequence (Qwen 4)."""
    kept = max(0, model.number("ple.conv_kernel") - 1) * model.number("ple.ngram_size")
    return kept * model.number("hyper_connection.count") * model.width


def recurrent_bytes(model: Model, layout: Layout, load: Load) -> dict[int, int]:
    """Return the bytes of recurrent state by layer.

    Units: bytes.
    """
    each = F32_BYTES * (conv_width(model) + state_width(model)) * load.slots
    found = {layer: each for layer, is_recurrent in enumerate(layout.recurrent) if is_recurrent and each}
    listed = model.value("ple.layers", -1)
    for layer in map(int, listed if isinstance(listed, tuple) else ()):
        if layer in found:
            found[layer] += F32_BYTES * history_width(model) * load.slots
    return found
