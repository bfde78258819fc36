"""Bytes of the attention caches.

Source: llama_kv_cache and llama_kv_cache_iswa of llama.cpp; reference sections 6.2 and 6.3 of the facts about
engines: cells x streams x (row of keys + row of values), for each layer that attends.
"""

from __future__ import annotations

import msgspec

from llamaops.estimate.architectures import ARCHITECTURES
from llamaops.estimate.graph import row_bytes
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Layout, Load, has_indexer, window_cells
from llamaops.facts.ggml_types import BLOCKS

CACHED_FOR_DRAFTS = frozenset({"glm4", "glm4moe", "bailingmoe2", "exaone4", "exaone-moe"})
"""Architectures of whose multi-token prediction earlier builds keep caches, as measured on b10434."""


class CacheBytes(msgspec.Struct, frozen=True):
    """Bytes of both caches, by layer."""

    full: dict[int, int]
    windowed: dict[int, int]
    indexer: dict[int, int]


def cache_bytes(model: Model, layout: Layout, load: Load, *, owns: int | None = None) -> CacheBytes:
    """Return the bytes of the caches by layer; `owns` is how many layers have a cache of their own.

    Units: bytes.
    """
    full: dict[int, int] = {}
    windowed: dict[int, int] = {}
    widest = _widest_value(model, layout)
    attending = [*layout.attends]
    if load.build.caches_unused_layers and model.architecture in CACHED_FOR_DRAFTS:
        attending += [True] * (model.blocks - model.layers)
    for layer, attends in enumerate(attending):
        if not attends or (owns is not None and layer >= owns):
            continue
        is_windowed = layout.windowed[layer]
        cells = window_cells(load, layout.window_tokens) if is_windowed else load.sequence_tokens
        row = _row(model, load, layer, widest, windowed=is_windowed)
        (windowed if is_windowed else full)[layer] = cells * load.streams * row
    row = row_bytes(load.key_type, model.number("attention.indexer.key_length"))
    architecture = ARCHITECTURES.get(model.architecture)
    is_hybrid = architecture is not None and architecture.order == "pooled"
    if is_hybrid:
        row *= 2 if load.build.mixes_inputs else 1  # recent builds keep what they pool beside each key
    elif not model.is_mla:
        row += row_bytes(load.value_type, model.value_length())  # one head of values that nothing uses
    indexer = {
        layer: load.sequence_tokens * load.streams * row
        for layer in range(model.layers)
        if has_indexer(model, architecture, layer)
    }
    return CacheBytes(full, windowed, indexer)


def refused_cache(model: Model, load: Load) -> str:
    """Return why the engine refuses these types of cache for this model, empty where it takes them.

    Source: llama_init_from_model: with flash attention the blocks of a quantized type have to divide a head.
    """
    if not load.flash_attention:
        return ""
    heads = (("K", load.key_type, model.key_length), ("V", load.value_type, model.value_length))
    for letter, type_id, length in heads:
        name, block, _ = BLOCKS[type_id]
        for width in (length(), length(windowed=True)):
            if width % block:
                return f"{letter} cache type {name.lower()} has blocks of {block}, and a head is {width} wide"
    return ""


def _widest_value(model: Model, layout: Layout) -> int:
    return max(
        (model.value_length(windowed=layout.windowed[i]) * model.kv_heads(i) for i in range(model.layers)),
        default=0,
    )


def _row(model: Model, load: Load, layer: int, widest: int, *, windowed: bool) -> int:
    heads = model.kv_heads(layer)
    architecture = ARCHITECTURES.get(model.architecture)
    if model.is_mla or (architecture is not None and architecture.order == "compressed"):
        # One joint head of keys; values are a part of it.
        return row_bytes(load.key_type, model.key_length(windowed=windowed) * heads)
    values = widest if load.transposes_values else model.value_length(windowed=windowed) * heads
    keys = model.key_length(windowed=windowed) * heads
    return row_bytes(load.key_type, keys) + row_bytes(load.value_type, values)
