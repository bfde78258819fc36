"""What the estimator needs of a model: hyper-parameters and the table of tensors.

Source: llama_model::load_hparams and llama_hparams of llama.cpp: names of keys, their defaults, which value
holds for which layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec

BLOCK = re.compile(r"(?:enc\.|dec\.)?blk\.([0-9]{1,9})\.")
EXPERTS = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
Value = int | float | bool | str | tuple[int | float | bool, ...]


class Weight(msgspec.Struct, frozen=True):
    """A tensor of the model file; `size_bytes` is None for a type that we do not know."""

    name: str
    type_id: int
    dimensions: tuple[int, ...]
    size_bytes: int | None

    @property
    def block(self) -> int | None:
        """Return the number of the block that the tensor belongs to, None for one outside the blocks."""
        found = BLOCK.match(self.name)
        return None if found is None else int(found[1])

    @property
    def is_expert(self) -> bool:
        """Return whether it holds the experts of a layer, which may be kept off the card.

        Source: LLM_FFN_EXPS_REGEX in common/common.h.
        """
        return EXPERTS.search(self.name) is not None


class Model:
    """A model by its keys and tensors."""

    def __init__(self, keys: Mapping[str, Value], weights: tuple[Weight, ...], vocabulary: int) -> None:
        self.keys = keys
        self.weights = weights
        self.architecture = str(keys.get("general.architecture", ""))
        self.vocabulary = vocabulary

    @cached_property
    def by_name(self) -> dict[str, Weight]:
        """Return the tensors by name."""
        return {weight.name: weight for weight in self.weights}

    def value(self, name: str, default: Value = 0) -> Value:
        """Return a key of the architecture."""
        return self.keys.get(f"{self.architecture}.{name}", default)

    def number(self, name: str, default: int = 0) -> int:
        """Return a whole number; of a list the largest."""
        value = self.value(name, default)
        if isinstance(value, tuple):
            return int(max(value, default=default))
        return default if isinstance(value, str) else int(value)

    def real(self, name: str, default: float = 0.0) -> float:
        """Return a number with a fraction."""
        value = self.value(name, default)
        return default if isinstance(value, str | tuple) else float(value)

    def at(self, name: str, layer: int, default: int = 0) -> int:
        """Return a key that may have a value for each layer."""
        value = self.value(name, default)
        if isinstance(value, tuple):
            return int(value[layer]) if layer < len(value) else default
        return default if isinstance(value, str) else int(value)

    @cached_property
    def blocks(self) -> int:
        """Return the number of blocks, those for multi-token prediction included."""
        return self.number("block_count")

    @cached_property
    def own_layers(self) -> int:
        """Return the number of layers in the file that the engine loads for generation."""
        return self.blocks - self.number("nextn_predict_layers")

    @cached_property
    def loops(self) -> int:
        """Return how often the engine goes through the layers of the file."""
        return max(1, self.number("num_loops", 1))

    @cached_property
    def layers(self) -> int:
        """Return the number of layers that are computed."""
        return self.own_layers * self.loops

    def own(self, layer: int) -> int:
        """Return the layer of the file that a layer is."""
        size, passes = self.number("hrm.layers_per_stack"), self.number("hrm.l_cycles")
        if size > 0 and passes >= 0:  # two stacks that take turns: the low one some times, then the high one
            is_high = layer // size % (passes + 1) == passes
            return layer % size + (size if is_high else 0)
        return layer % max(1, self.own_layers) if self.loops > 1 else layer

    @cached_property
    def width(self) -> int:
        """Return the width of the embedding."""
        return self.number("embedding_length")

    @cached_property
    def most_heads(self) -> int:
        """Return the number of heads; of a list the first, as the engine takes it."""
        return self.heads(0)

    def heads(self, layer: int) -> int:
        """Return the heads of a layer."""
        return self.at("attention.head_count", self.own(layer))

    def kv_heads(self, layer: int) -> int:
        """Return the heads of keys and values of a layer."""
        if self.value("attention.head_count_kv", -1) == -1:
            return self.heads(layer)
        return self.at("attention.head_count_kv", self.own(layer))

    @cached_property
    def _default_head(self) -> int:
        return self.width // self.most_heads if self.most_heads else 0

    def key_length(self, *, windowed: bool = False) -> int:
        """Return the width of a key in one head."""
        full = self.number("attention.key_length", self._default_head)
        return self.number("attention.key_length_swa", full) if windowed else full

    def value_length(self, *, windowed: bool = False) -> int:
        """Return the width of a value in one head."""
        full = self.number("attention.value_length", self._default_head)
        return self.number("attention.value_length_swa", full) if windowed else full

    @cached_property
    def rotated(self) -> int:
        """Return how many elements of a head are rotated."""
        return self.number("rope.dimension_count", self._default_head)

    @cached_property
    def uses_head_norm(self) -> bool:
        """Return whether Llama 4 norms its heads: all but the largest of its family do."""
        return self.number("expert_count") != 128  # noqa: PLR2004 - Maverick

    @cached_property
    def is_mla(self) -> bool:
        """Return whether keys and values are cached in their compressed form."""
        return bool(self.number("attention.key_length_mla") and self.number("attention.value_length_mla"))

    @cached_property
    def trained_context(self) -> int:
        """Return the context the model was trained for."""
        return self.number("context_length")

    def has(self, name: str) -> bool:
        """Return whether the file has a tensor."""
        return name in self.by_name

    @cached_property
    def is_tied(self) -> bool:
        """Return whether the token embedding is also the output head."""
        return "output.weight" not in self.by_name and "token_embd.weight" in self.by_name
