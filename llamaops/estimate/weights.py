"""Bytes of the weights on the host and on the card.

Source: llama_model::load_tensors: of layers + 1 units the last ones go to the card, the output head first;
the token embedding stays on the host and is loaded a second time where it is the head; each tensor is padded.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llamaops.estimate.cards import memory_of
from llamaops.estimate.model import Model, Weight
from llamaops.estimate.plan import Load

PADDING = 32
REPACKED, REPACKED_ROWS = frozenset({2, 12, 20, 39}), 8
"""Types (Q4_0, Q4_K, IQ4_NL, MXFP4) of which so many rows are interleaved."""
INPUT_NAMES = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.")
FIRST_LAYER_NAMES = ("token_embd_norm.", "per_layer_model_proj.", "per_layer_proj_norm.")
"""Tensors that go with the first layer; where there are short convolutions the last norm has this name."""
LOADED_FOR_DRAFTS = {
    "step35": ("attn_q_norm", "attn_k_norm", "attn_gate", "ffn_up", "ffn_down", "ffn_gate", "exp_probs_b",
               "nextn.embed_tokens", "nextn.shared_head"),
    "cohere2moe": ("nextn.embed_tokens", "nextn.shared_head"),
    "deepseek32": ("exp_probs_b",),
    "glm-dsa": ("exp_probs_b",),
    "hy_v3": ("ffn_up", "ffn_down", "ffn_gate", "exp_probs_b", "nextn.embed_tokens", "nextn.shared_head"),
}  # fmt: skip
"""Tensors of multi-token prediction that are loaded although nothing uses them, by architecture."""
WHOLE_DRAFTS = frozenset({"qwen35", "qwen35moe", "step35", "hy_v3"})
"""Architectures of which earlier builds load all those tensors, as measured on b10068."""
ROTATION_NAMES = ("rope_freqs.", "rope_factors_")
"""Small tensors that every layer reads: they are wherever there is a layer."""


class WeightBytes(msgspec.Struct, frozen=True):
    """Bytes of the weights."""

    host: int
    device: int
    unknown: tuple[str, ...]
    """Tensors of a type without a known size."""

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.host + self.device


def weight_bytes(
    model: Model,
    load: Load,
    *,
    unused: tuple[str, ...] = (),
    has_head: bool = True,
    copies_head: bool = False,
    rotating: Sequence[int] | None = None,
) -> WeightBytes:
    """Return where the bytes of the weights go.

    Units: bytes. `unused`: beginnings of the names of tensors that the engine does not load; `has_head`:
    whether there is an output head, for which a tied embedding is loaded a second time on a card, and with
    `copies_head` on the host too; `rotating`: the layers that read factors of rotation, all where not given.
    """
    rotating = range(model.layers) if rotating is None else rotating
    host = device = 0
    unknown = []
    first = first_on_card(model, load.gpu_layers)
    card = memory_of(load.card)
    padding = card.host_alignment if load.has_card else PADDING
    for weight in model.weights:
        if not is_loaded(model, weight, unused, loads_drafts=load.build.loads_drafts):
            continue
        if weight.size_bytes is None:
            unknown.append(weight.name)
            continue
        on_card = is_on_card(model, weight, first, load)
        on_host = not on_card
        if weight.block is None and weight.name.startswith(ROTATION_NAMES):
            on_card, on_host = (any(i >= first for i in rotating), any(i < first for i in rotating))
        if on_card:
            device += padded(weight.size_bytes, card.alignment)
        if on_host:
            host += padded(weight.size_bytes, padding)
    if has_head and model.is_tied:
        head = model.by_name["token_embd.weight"].size_bytes or 0
        if load.gpu_layers > 0:
            device += padded(head, card.alignment)
        elif copies_head or (not load.has_card and is_repacked(model.by_name["token_embd.weight"])):
            host += padded(head, padding)
    return WeightBytes(host, device, tuple(unknown))


def is_repacked(weight: Weight) -> bool:
    """Return whether a processor with AVX2 keeps a matrix in another order, so that no table can share it.

    Source: ggml_repack_get_optimal_repack_type of ggml-cpu/repack.cpp; measured on three builds. A tied
    embedding of such a type is in memory twice, as a table and as the output head.
    """
    return weight.type_id in REPACKED and weight.dimensions[-1] % REPACKED_ROWS == 0


def padded(size: int, padding: int) -> int:
    """Return a size rounded up."""
    return size + -size % padding


def first_on_card(model: Model, gpu_layers: int) -> int:
    """Return the first block that lies on the card."""
    units = model.blocks * model.loops + 1
    return max(0, units - gpu_layers) if gpu_layers > 0 else units


def is_loaded(
    model: Model, weight: Weight, unused: tuple[str, ...] = (), *, loads_drafts: bool = False
) -> bool:
    """Return whether the engine loads a tensor: not those of multi-token prediction."""
    block = weight.block
    if block is not None and block >= model.own_layers:
        if loads_drafts and model.architecture in WHOLE_DRAFTS:
            return True
        return weight.name.split(".", 2)[2].startswith(LOADED_FOR_DRAFTS.get(model.architecture, ()))
    return not (unused and weight.name.startswith(unused))


def is_on_card(model: Model, weight: Weight, first: int, load: Load) -> bool:
    """Return whether a tensor goes to the card."""
    if load.gpu_layers <= 0:
        return False
    block = weight.block
    if block is None:
        if weight.name.startswith(ROTATION_NAMES):
            return first < model.layers
        if weight.name.startswith(FIRST_LAYER_NAMES) and not model.number("shortconv.l_cache"):
            return first == 0
        return not weight.name.startswith(INPUT_NAMES)
    if weight.is_expert and block < load.host_experts:
        return False
    return block >= first and not lacks_operator(model, weight, load)


def lacks_operator(model: Model, weight: Weight, load: Load) -> bool:
    """Return whether the card's driver lacks the operator that a tensor is for, so that it stays on the host.

    Source: ggml_backend_vk_device_supports_op: scans of Mamba 2 only, whose factors are single numbers, one
    a row; factors in one row are for a product, but for those of plamo2.
    """
    if load.card != "vulkan" or not weight.name.endswith(".ssm_a"):
        return False
    is_scanned = len(weight.dimensions) > 1 or model.architecture == "plamo2"
    return is_scanned and weight.dimensions[0] > 1
