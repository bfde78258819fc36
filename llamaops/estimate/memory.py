"""Add up what a load will take: by part, by place, each with the formula it came from.

Units: bytes throughout.
"""

from __future__ import annotations

import msgspec

from llamaops.estimate.architectures import ARCHITECTURES, Architecture
from llamaops.estimate.compressed_blocks import block_bytes, unfinished_bytes
from llamaops.estimate.compute import compute_bytes, settled
from llamaops.estimate.kv_cache import CacheBytes, cache_bytes
from llamaops.estimate.model import Model
from llamaops.estimate.output import output_bytes
from llamaops.estimate.plan import Layout, Load, layout_of
from llamaops.estimate.recurrent import recurrent_bytes
from llamaops.estimate.weights import first_on_card, weight_bytes

HOST, DEVICE = "host", "device"
WEIGHTS_FORMULA = "sum of the tensors, each padded to 32 bytes (llama_model::load_tensors)"
CACHE_FORMULA = "cells x streams x (K row + V row), for each layer (llama_kv_cache)"
WINDOW_FORMULA = (
    "min(cells, window x sequences + batch, padded to 256) x (K row + V row) (llama_kv_cache_iswa)"
)
INDEXER_FORMULA = "cells x streams x K row of the indexer, for each layer that has one (llama_kv_cache_dsa)"
BLOCKS_FORMULA = "sum over layers of blocks of 4 or 128 tokens x sequences x K row (llama_kv_cache_dsv4)"
UNFINISHED_FORMULA = "8 x sequences x tokens of a block x width, for each layer (llama_dsv4_comp_state)"
STATE_FORMULA = "4 x sequences x (convolution + scan state), for each layer (llama_memory_recurrent)"
OUTPUT_FORMULA = "4 x sequences x (vocabulary + embedding where asked for) (llama_context::output_reserve)"
REPLAY_FORMULA = "replay of the graph allocator on the graph that the engine reserves (ggml-alloc.c)"
BAND_FORMULA = (
    "band of the replays of several kinds of block: the engine's own for this architecture is unknown"
)


MOST_TOKENS = 2**40
"""What 256 sequences of the longest context come to; the engine would fail far below."""


class Part(msgspec.Struct, frozen=True):
    """One figure of the estimate; `low` and `high` differ where a rule is not exact."""

    name: str
    place: str
    low: int
    high: int
    formula: str

    @property
    def is_exact(self) -> bool:
        """Return whether the figure is not a band."""
        return self.low == self.high


class Estimate(msgspec.Struct, frozen=True):
    """What a load will take."""

    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    """What could not be worked out, in sentences; then the sum is a lower bound."""
    is_described: bool
    """Whether the architecture has an entry of its own."""

    def low(self, place: str | None = None) -> int:
        """Return the sum of the lower ends, of one place or of all."""
        return sum(part.low for part in self.parts if place in {None, part.place})

    def high(self, place: str | None = None) -> int:
        """Return the sum of the upper ends, of one place or of all."""
        return sum(part.high for part in self.parts if place in {None, part.place})

    def of(self, name: str, place: str | None = None) -> int:
        """Return the upper end of one part."""
        return sum(p.high for p in self.parts if p.name == name and place in {None, p.place})


def estimate(model: Model, load: Load) -> Estimate:
    """Work out what a load of a model will take."""
    why = implausible(model, load)
    if why:
        return Estimate((), (why,), is_described=False)
    architecture = ARCHITECTURES.get(model.architecture)
    layout = layout_of(model, architecture)
    load = settled(model, architecture, load)
    parts: list[Part] = []
    unknown: list[str] = []
    _weights(model, load, architecture, layout, parts, unknown)
    _context(model, load, architecture, layout, parts, unknown)
    _compute(model, load, architecture, layout, parts, unknown)
    parts.append(_exact("output", HOST, output_bytes(model, load), OUTPUT_FORMULA))
    kept = tuple(part for part in parts if part.high)
    return Estimate(kept, tuple(unknown), architecture is not None)


def implausible(model: Model, load: Load) -> str:
    """Return why nothing can be worked out for a header, empty where it is plausible.

    The bounds are the engine's own (LLAMA_MAX_LAYERS, LLAMA_MAX_EXPERTS); they also bound our own work.
    """
    sizes = {
        "block_count": (model.blocks * model.loops, 1, 512),
        "embedding_length": (model.width, 1, 2**20),
        "expert_count": (model.number("expert_count"), 0, 1024),
        "expert_used_count": (model.number("expert_used_count"), 0, 1024),
        "nextn_predict_layers": (model.number("nextn_predict_layers"), 0, model.blocks - 1),
        "context_length": (model.trained_context or load.sequence_tokens, 1, 2**31),
        "attention.head_count": (model.number("attention.head_count"), 0, 2**16),
        "attention.head_count_kv": (model.number("attention.head_count_kv"), 0, 2**16),
        "attention.key_length": (model.key_length(), 0, 2**16),
        "attention.value_length": (model.value_length(), 0, 2**16),
        "attention.sliding_window": (model.number("attention.sliding_window"), 0, 2**31),
        "ssm.inner_size": (model.number("ssm.inner_size"), 0, 2**20),
        "ssm.state_size": (model.number("ssm.state_size"), 0, 2**16),
        "ssm.conv_kernel": (model.number("ssm.conv_kernel"), 0, 2**10),
        "ssm.group_count": (model.number("ssm.group_count"), 0, 2**16),
        "hyper_connection.count": (model.number("hyper_connection.count"), 0, 64),
        "attention.indexer.head_count": (model.number("attention.indexer.head_count"), 0, 1024),
        "attention.compress_ratios": (_most(model, "attention.compress_ratios"), 0, 4096),
        "ple.conv_kernel": (model.number("ple.conv_kernel"), 0, 1024),
        "hrm.h_cycles": (model.number("hrm.h_cycles"), 0, 512),
        "hrm.l_cycles": (model.number("hrm.l_cycles"), 0, 512),
        "hrm.layers_per_stack": (model.number("hrm.layers_per_stack"), 0, 512),
    }
    if not model.architecture:
        return "the header names no architecture"
    for name in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"):
        each = model.value(name)
        if isinstance(each, tuple) and min(each, default=0) < 0:
            return f"the header's {name} has a negative value"
    for name, (value, low, high) in sizes.items():
        if not low <= value <= high:
            has = "is absent" if value == 0 and not model.value(name) else f"is {value}"
            return f"the header's {name} {has}, which no engine would load ({low} to {high})"
    if max(load.context_tokens, load.sequence_tokens) > MOST_TOKENS:
        return f"a context of {load.context_tokens} tokens is more than an engine takes"
    return _unequal(model)


def _unequal(model: Model) -> str:
    """Return which list has another length than there are blocks, and whether heads have no width at all."""
    for name in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"):
        each = model.value(name)
        if isinstance(each, tuple) and len(each) < model.own_layers:
            return f"the header's {name} has {len(each)} values for {model.blocks} blocks"
    attends = any(f"blk.{block}.attn_k.weight" in model.by_name for block in range(model.blocks))
    if attends and not (model.number("attention.head_count") and model.key_length() and model.value_length()):
        return "the header gives attention no heads, or heads no width"
    return ""


def _most(model: Model, name: str) -> int:
    """Return the largest of a key's values."""
    return max((model.at(name, layer) for layer in range(min(model.layers, 512))), default=0)


def _exact(name: str, place: str, size: int, formula: str) -> Part:
    return Part(name, place, size, size, formula)


def _weights(
    model: Model,
    load: Load,
    architecture: Architecture | None,
    layout: Layout,
    parts: list[Part],
    unknown: list[str],
) -> None:
    unused = architecture.unused_tensors if architecture else ()
    copies = architecture is not None and architecture.copies_head
    has_head = architecture is None or architecture.has_head or not architecture.is_encoder
    has_head = has_head and not (architecture is not None and architecture.embeds_head)
    rotating = None
    if architecture is not None and architecture.order == "per_layer":
        rotating = [i for i in range(model.layers) if not layout.windowed[i]]
    found = weight_bytes(model, load, unused=unused, has_head=has_head, copies_head=copies, rotating=rotating)
    parts += [
        _exact("weights", HOST, found.host, WEIGHTS_FORMULA),
        _exact("weights", DEVICE, found.device, WEIGHTS_FORMULA),
    ]
    if found.unknown:
        names = ", ".join(found.unknown[:3])
        unknown.append(f"{len(found.unknown)} tensors are of types without a known size: {names}")


def _context(
    model: Model,
    load: Load,
    architecture: Architecture | None,
    layout: Layout,
    parts: list[Part],
    unknown: list[str],
) -> None:
    if architecture is not None and architecture.is_encoder and not architecture.has_idle_cache:
        return
    owns = (architecture.cache_owners or None) if architecture else None
    if model.number("attention.shared_kv_layers"):
        owns = model.layers - model.number("attention.shared_kv_layers")
    caches = cache_bytes(model, layout, load, owns=owns)
    states = recurrent_bytes(model, layout, load)
    formulas = CACHE_FORMULA, STATE_FORMULA
    if architecture is not None and architecture.order == "compressed":
        states = unfinished_bytes(model, load)
        blocks = block_bytes(model, load, indexer=False)
        caches = CacheBytes(blocks, caches.windowed, block_bytes(model, load, indexer=True))
        formulas = BLOCKS_FORMULA, UNFINISHED_FORMULA
    for name, by_layer, formula in (
        ("KV cache", caches.full, formulas[0]),
        ("windowed KV cache", caches.windowed, WINDOW_FORMULA),
        ("indexer cache", caches.indexer, INDEXER_FORMULA),
        ("recurrent state", states, formulas[1]),
    ):
        for place, size in _by_place(model, load, by_layer).items():
            parts.append(_exact(name, place, size, formula))
    if architecture is None:
        signs = _signs(model)
        speaks = f", and its header speaks of {signs}" if signs else ""
        unknown.append(
            f"the architecture {model.architecture!r} has no entry{speaks}: "
            "its caches may be of another size, and the compute buffer is a band"
        )


def _signs(model: Model) -> str:
    keys = {
        "attention.sliding_window": "a window", "ssm.state_size": "a recurrent state",
        "wkv.head_size": "a recurrent state", "shortconv.l_cache": "short convolutions",
        "attention.kv_lora_rank": "compressed keys and values", "attention.indexer.key_length": "an indexer",
        "attention.shared_kv_layers": "shared caches",
    }  # fmt: skip
    return " and ".join(dict.fromkeys(words for key, words in keys.items() if model.number(key)))


def _by_place(model: Model, load: Load, by_layer: dict[int, int]) -> dict[str, int]:
    sizes = {HOST: 0, DEVICE: 0}
    first = first_on_card(model, load.gpu_layers)
    for layer, size in by_layer.items():
        on_card = load.gpu_layers > 0 and load.offloads_cache and layer >= first
        sizes[DEVICE if on_card else HOST] += size
    return sizes


def _compute(
    model: Model,
    load: Load,
    architecture: Architecture | None,
    layout: Layout,
    parts: list[Part],
    unknown: list[str],
) -> None:
    found = compute_bytes(model, architecture, layout, load)
    if found is None:
        unknown.append("the compute buffer could not be worked out for this architecture")
        return
    formula = REPLAY_FORMULA if found.is_replay else BAND_FORMULA
    parts += [
        Part("compute", HOST, *found.host, formula),
        Part("compute", DEVICE, *found.device, formula),
    ]
