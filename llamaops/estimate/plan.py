"""The settings of a run as the estimator takes them: everything resolved to what the engine will use."""

from __future__ import annotations

import msgspec

from llamaops.estimate.architectures import ARCHITECTURES, Architecture
from llamaops.estimate.model import Model
from llamaops.launch.settings import pad

SHARES_INDEXER = 2**20
"""Context from which on layers share an indexer where the header does not tell."""


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between builds; the defaults are those of recent ones."""

    takes_embeddings: bool = True
    """Whether every graph has a second input for embeddings (from spring 2026 on)."""
    mixes_inputs: bool = True
    """Whether every graph has the path of a batch of tokens and embeddings (b11669; not yet in b11434)."""
    pads_encoders: bool = True
    """Whether keys and values without a cache are padded to 256 (b11669; not yet in b11434)."""
    rotates_cache: bool = True
    """Whether quantized caches are rotated."""
    caches_unused_layers: bool = False
    """Whether layers for multi-token prediction may get a cache although nothing uses it (b10434)."""
    loads_drafts: bool = False
    """Whether all tensors of multi-token prediction are loaded of some architectures (b10068, not b10434)."""
    projects_rows: bool = True
    """Whether Mamba 2 projects the tokens of all sequences in one matrix."""
    heeds_storage: bool = True
    """Whether Vulkan's driver heeds views of one tensor when it moves nodes, and keeps what a choice of
    experts reads until its end (not yet in b10434)."""
    norms_by_mean: bool = True
    """Whether delta nets norm queries and keys by the mean of squares (not yet in b10434)."""
    presses_apart: bool = True
    """Whether blocks that become one key each are counted sequence by sequence, and only a part of a head is
    rotated where it lies (not yet in b10434)."""
    gathers_states: bool = True
    """Whether recurrent states of all sequences are looked up at once (b11669; not yet in b11434)."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One context of one model, resolved."""

    context_tokens: int
    """Context of all sequences."""
    sequence_tokens: int
    """Cells that each sequence's part of the cache has."""
    slots: int
    """Sequences."""
    is_unified: bool
    """Whether all sequences share one cache."""
    batch_tokens: int
    """Physical batch."""
    outputs: int
    """Rows of the result that a whole batch may ask for."""
    key_type: int = 1
    """Type of the K cache."""
    value_type: int = 1
    """Type of the V cache."""
    flash_attention: bool = True
    """Whether flash attention is on."""
    full_window_cache: bool = False
    """Whether windowed layers get a cache as large as the others."""
    embeddings: bool = False
    """Whether embeddings are asked for."""
    pooling: int = 0
    """How embeddings are pooled: 0 not, 1 mean, 2 first, 3 last, 4 rank."""
    gpu_layers: int = 0
    """Units on the card: the output first, then blocks from the end."""
    card: str = ""
    """Driver of the card: `vulkan`, `cuda` or another; empty where there is none."""
    flash_is_auto: bool = False
    """Whether flash attention is on only as long as the engine finds it where its layer is."""
    was_switched_off: bool = False
    """Whether the engine switched automatic flash attention off; the cache had been made for it by then."""
    offloads_cache: bool = True
    """Whether caches lie beside their layers."""
    host_experts: int = 0
    """First blocks whose experts stay in host memory."""
    build: Build = Build()
    """The build's habits."""

    @property
    def has_card(self) -> bool:
        """Return whether there is a card, even if nothing is to be put on it."""
        return bool(self.card) or self.gpu_layers > 0

    @property
    def transposes_values(self) -> bool:
        """Return whether the V cache lies transposed."""
        return not self.flash_attention and not self.was_switched_off

    @property
    def streams(self) -> int:
        """Return how many parts the cache has."""
        return 1 if self.is_unified else self.slots


class Layout(msgspec.Struct, frozen=True):
    """Which layer is of which kind."""

    windowed: tuple[bool, ...]
    """Also of the blocks for multi-token prediction, which builds may give a cache."""
    recurrent: tuple[bool, ...]
    attends: tuple[bool, ...]
    window_tokens: int


def architecture_of(model: Model) -> Architecture | None:
    """Return the description of a model's architecture, None where there is none."""
    return ARCHITECTURES.get(model.architecture)


def layout_of(model: Model, architecture: Architecture | None) -> Layout:
    """Return the kinds of a model's layers.

    Source: load_arch_hparams of each architecture; set_swa_pattern.
    """
    count = model.layers
    windowed, tokens = _windowed(model, architecture)
    kind = architecture.recurrent_layers if architecture else ""
    if kind in {"all", "beside"}:
        recurrent = [True] * count
    elif kind == "no_kv_heads":
        recurrent = [model.kv_heads(i) == 0 for i in range(count)]
    elif kind == "no_kv_heads_no_ffn":
        recurrent = [model.kv_heads(i) == 0 and model.at("feed_forward_length", i) == 0 for i in range(count)]
    elif kind == "interval":
        recurrent = _interval(model, architecture.full_interval if architecture else 4)
    else:
        recurrent = [False] * count
    if kind == "all":
        attends = [False] * count
    elif kind in {"beside", ""}:
        attends = [True] * count  # a layer without heads still has a row of values without flash attention
    else:
        attends = [not r and model.kv_heads(i) > 0 for i, r in enumerate(recurrent)]
    return Layout(tuple(windowed), tuple(recurrent), tuple(attends), tokens)


def has_indexer(model: Model, architecture: Architecture | None, layer: int) -> bool:
    """Return whether a layer has an indexer that finds the keys to attend to, and a cache for it.

    Source: load_arch_hparams of glm-dsa.cpp: of GLM 5.2, known by its context, one layer in four has.
    """
    if architecture is None or not architecture.indexer:
        return False
    if not model.number("attention.indexer.top_k"):
        return False
    listed = model.value("attention.indexer.types", -1)
    if isinstance(listed, tuple):
        return layer < len(listed) and bool(listed[layer])
    if architecture.indexer == "tensors":
        has_ratio = bool(model.at("attention.compress_ratios", layer))
        return has_ratio and model.has(f"blk.{layer}.indexer.q_proj.weight")
    if architecture.indexer == "behind_dense":
        return layer >= model.number("leading_dense_block_count")
    if architecture.indexer == "shared" and model.trained_context >= SHARES_INDEXER:
        return layer <= 1 or layer % 4 == 2  # noqa: PLR2004 - the engine's own table
    return True


def _interval(model: Model, default: int) -> list[bool]:
    listed = model.value("attention.recurrent_layers", -1)
    if isinstance(listed, tuple):
        return [bool(listed[i]) if i < len(listed) else False for i in range(model.layers)]
    every = max(1, model.number("full_attention_interval", default))
    return [(i + 1) % every != 0 for i in range(model.layers)]


def _windowed(model: Model, architecture: Architecture | None) -> tuple[list[bool], int]:
    window = architecture.window if architecture else None
    count = max(model.layers, model.blocks)
    none = [False] * count, 0
    if window is None or (window.only_blocks and model.layers != window.only_blocks):
        return none
    tokens = model.number("attention.sliding_window", window.default_tokens)
    if not tokens or (window.needs_key and not model.number("attention.sliding_window")):
        return none
    tokens = window.forced_tokens or tokens
    pattern = model.value("attention.sliding_window_pattern", window.period)
    if isinstance(pattern, tuple):
        return [bool(pattern[i]) if i < len(pattern) else False for i in range(count)], tokens
    period = 0 if isinstance(pattern, str) else int(pattern)
    if period <= 0:
        return [True] * count, tokens
    if window.full_first:
        return [i % period != 0 for i in range(count)], tokens
    return [i % period < period - 1 for i in range(count)], tokens


def window_cells(load: Load, window_tokens: int) -> int:
    """Return the cells of the windowed layers' cache in each stream.

    Units: tokens. Source: llama_kv_cache_iswa: the window of each sequence in the stream, and one batch.
    """
    if load.full_window_cache:
        return load.sequence_tokens
    wanted = window_tokens * (load.slots if load.is_unified else 1) + load.batch_tokens
    return pad(min(load.sequence_tokens, wanted))
