"""Bytes of the weights on the host and on the card.

Source: llama_model::load_tensors: of layers + 1 units the last ones go to the card, the output head first; the
token embedding stays on the host and is loaded a second time where it is the head; each tensor is padded.
"""

from __future__ import annotations

import msgspec

from llamaops.estimate.model import Model, Weight

PADDING = 32
INPUT_NAMES = ("token_embd", "position_embd", "token_types", "token_embd_norm", "per_layer_token_embd")


class WeightBytes(msgspec.Struct, frozen=True):
    """Bytes of the weights."""

    host: int
    device: int
    unknown: tuple[str, ...]
    """Tensors of a type without a known size."""
    largest_host: int
    """Largest matrix on the host that is multiplied on the card for large batches."""

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.host + self.device


def weight_bytes(
    model: Model, gpu_layers: int, host_experts: int, *, unused: tuple[str, ...] = (), keeps_all: bool = False
) -> WeightBytes:
    """Return where the bytes of the weights go.

    Units: bytes. `unused`: beginnings of the names of tensors that the engine does not load.
    """
    host = device = largest = 0
    unknown = []
    first = first_on_card(model, gpu_layers)
    for weight in model.weights:
        if not keeps_all and not is_loaded(model, weight, unused):
            continue
        if weight.size_bytes is None:
            unknown.append(weight.name)
            continue
        size = weight.size_bytes + -weight.size_bytes % PADDING
        if is_on_card(model, weight, first, gpu_layers, host_experts):
            device += size
        else:
            host += size
            if weight.block is not None and len(weight.dimensions) > 1:
                largest = max(largest, weight.size_bytes)
    if gpu_layers > 0 and model.is_tied:
        head = model.by_name["token_embd.weight"]
        device += (head.size_bytes or 0) + -(head.size_bytes or 0) % PADDING
    return WeightBytes(host, device, tuple(unknown), largest)


def first_on_card(model: Model, gpu_layers: int) -> int:
    """Return the first block that lies on the card."""
    return max(0, model.blocks + 1 - gpu_layers) if gpu_layers > 0 else model.blocks + 1


def is_loaded(model: Model, weight: Weight, unused: tuple[str, ...] = ()) -> bool:
    """Return whether the engine loads a tensor: not those of multi-token prediction."""
    block = weight.block
    if block is not None and block >= model.layers:
        return False
    return not (unused and weight.name.startswith(unused))


def is_on_card(model: Model, weight: Weight, first: int, gpu_layers: int, host_experts: int) -> bool:
    """Return whether a tensor goes to the card."""
    if gpu_layers <= 0:
        return False
    block = weight.block
    if block is None:
        return not weight.name.startswith(INPUT_NAMES)
    if weight.is_expert and block < host_experts:
        return False
    return block >= first
