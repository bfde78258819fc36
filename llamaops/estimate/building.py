"""What all blocks of a graph share: inputs, caches, and the small sequences that every architecture uses.

Source: src/llama-graph.cpp and src/llama-kv-cache.cpp of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from llamaops.estimate.architectures import Architecture
from llamaops.estimate.graph import F16, F32, I32, I64, Graph, Tensor, row_bytes
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Layout, Load, layout_of, window_cells
from llamaops.estimate.weights import first_on_card
from llamaops.facts.ggml_types import BLOCKS
from llamaops.launch.settings import pad

ROTATIONS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
ON_HOST, AS_HEAD = "#host", "#head"
"""What is added to the name of a tensor that is in memory twice: on the host, or as the output head."""
PER_LAYER_TABLE = "per_layer_token_embd.weight"
ROTATION = 64
"""Smallest rotation of a quantized cache; heads have to be multiples of it."""


TakeState = Callable[[Tensor, Tensor], Tensor]
"""Makes something of all states and the input that says which to take."""


def is_quantized(type_id: int) -> bool:
    """Return whether a type packs several elements into a block."""
    return BLOCKS[type_id][1] > 1


class CacheView:
    """One cache (full or windowed) as the graph sees it: its inputs and its tensors."""

    def __init__(self, building: Building, cells: int, layers: list[int], *, windowed: bool) -> None:
        self._b = building
        self.cells = cells
        load, model = building.load, building.model
        streams, tokens = load.streams, building.tokens
        self.is_transposed = load.transposes_values
        self.key_heads = {model.key_length(windowed=windowed) for _ in layers[:1]}
        self.ids_k = Graph.input(I64, (tokens,), "ids_k")
        widest = building.widest_value if self.is_transposed else 1
        self.ids_v = Graph.input(I64, (tokens * widest,), "ids_v")
        mask_type = F16 if load.flash_attention else F32
        self.mask = Graph.input(mask_type, (cells, tokens // streams, 1, streams), "mask")
        # Memory of windows and recurrent states together (llama_memory_hybrid_iswa) does without rotations.
        is_hybrid = building.has_windows and any(building.layout.recurrent)
        self.rotation_k, self.rotation_v = (
            self._rotations(model, windowed=windowed) if layers and not is_hybrid else (None, None)
        )

    def _rotations(self, model: Model, *, windowed: bool) -> tuple[Tensor | None, Tensor | None]:
        load = self._b.load
        if not load.build.rotates_cache:
            return None, None
        key, value = model.key_length(windowed=windowed), model.value_length(windowed=windowed)
        rotation_k = rotation_v = None
        if is_quantized(load.key_type) and key and model.key_length() % ROTATION == 0:
            size = ROTATION
            while key % (size * 2) == 0:
                size *= 2
            rotation_k = Graph.input(F32, (size, size), "rotation_k")
        if (
            is_quantized(load.value_type)
            and model.value_length() % ROTATION == 0
            and not model.is_mla
            and value
        ):
            rotation_v = Graph.input(F32, (ROTATION, ROTATION), "rotation_v")
        return rotation_k, rotation_v


class Building:
    """A graph in the making."""

    def __init__(
        self, model: Model, architecture: Architecture, load: Load, *, tokens: int, outputs: int
    ) -> None:
        self.model = model
        self.arch = architecture
        self.load = load
        self.g = Graph()
        self.tokens = tokens
        self.sequences = load.slots
        self.outputs = outputs
        self.layout: Layout = layout_of(model, architecture)
        self.recurrent_views: dict[str, Tensor] = {}
        self._weights: dict[str, Tensor] = {}
        self.input_row = 0
        self.early_rows: Tensor | None = None
        self.best_keys: Tensor | None = None
        self.prefix = ""

    # Weights

    def weight(self, name: str) -> Tensor | None:
        """Return a tensor of the file, None where it has none of this name."""
        known = self._weights.get(name)
        if known is None:
            weight = self.model.by_name.get(name)
            if weight is None:
                return None
            known = self._weights[name] = Graph.weight(weight.type_id, weight.dimensions, name)
        return known

    def lasting(self, type_id: int, ne: Sequence[int], name: str) -> Tensor:
        """Return a tensor outside the graph's own memory that is not in the file: always the same one."""
        if name not in self._weights:
            self._weights[name] = Graph.weight(type_id, ne, name)
        return self._weights[name]

    def shared_input(self, type_id: int, ne: Sequence[int], name: str) -> Tensor:
        """Return an input that several layers read: always the same one."""
        if name not in self._weights:
            self._weights[name] = Graph.input(type_id, ne, name)
        return self._weights[name]

    def shared_cast(self, tensor: Tensor, type_id: int) -> Tensor:
        """Return a tensor in another type, made once for all layers."""
        name = f"{tensor.name}.{type_id}"
        if name not in self._weights:
            self._weights[name] = self.g.cast(tensor, type_id)
        return self._weights[name]

    def need(self, name: str) -> Tensor:
        """Return a tensor that the architecture cannot do without.

        Raises: KeyError.
        """
        tensor = self.weight(name)
        if tensor is None:
            raise KeyError(name)
        return tensor

    def tied_head(self) -> Tensor:
        """Return the token embedding as the output head; on a card it is a tensor of its own.

        Raises: KeyError.
        """
        table = self.need("token_embd.weight")
        if self.load.gpu_layers <= 0 or self.arch.embeds_head:
            return table
        return Graph.weight(table.type_id, table.ne, f"token_embd.weight{AS_HEAD}")

    def in_block(self, layer: int, name: str, kind: str = "weight") -> Tensor | None:
        """Return a tensor of a block; the norms of falcon-h1 have no kind in their names."""
        plain = f"{self.prefix}blk.{self.model.own(layer)}.{name}"
        return self.weight(f"{plain}.{kind}") or (self.weight(plain) if kind == "weight" else None)

    def need_in_block(self, layer: int, name: str, kind: str = "weight") -> Tensor:
        """Return a tensor of a block that cannot be left out.

        Raises: KeyError.
        """
        return self.need(f"{self.prefix}blk.{self.model.own(layer)}.{name}.{kind}")

    # Inputs

    @cached_property
    def positions(self) -> Tensor:
        """Return the input of positions."""
        sections = self.model.value("rope.dimension_sections")
        has_sections = isinstance(sections, tuple) and any(sections)
        each = self.arch.positions if has_sections or self.arch.attention == "gated" else 1
        return Graph.input(I32, (self.tokens * each,), "positions")

    @cached_property
    def attention_scale(self) -> Tensor | None:
        """Return the input that scales queries by position, where the model has it."""
        if self.arch.scales_attention and not self.has_windows:
            return None
        if not self.arch.scales_attention and not self.model.real("attention.temperature_scale"):
            return None
        return Graph.input(F32, (1, 1, self.tokens), "attention_scale")

    def rotation_factors(self, layer: int) -> Tensor | None:
        """Return the tensor of rotation factors where the file has one; each side with layers has it."""
        name = next((name for name in ROTATIONS if self.model.has(name)), None)
        if name is None:
            return None
        if layer >= first_on_card(self.model, self.load.gpu_layers):
            return self.weight(name)
        weight = self.model.by_name[name]
        return self.lasting(weight.type_id, weight.dimensions, f"{name}{ON_HOST}")

    @cached_property
    def wanted_rows(self) -> Tensor:
        """Return the input that names the rows whose result is wanted."""
        return Graph.input(I32, (self.outputs,), "wanted_rows")

    @cached_property
    def widest_value(self) -> int:
        """Return the widest row of values of all layers; without flash attention all have it."""
        model, layout = self.model, self.layout
        return max(
            (
                model.value_length(windowed=layout.windowed[i]) * model.kv_heads(i)
                for i in range(model.layers)
            ),
            default=0,
        )

    @cached_property
    def full_cache(self) -> CacheView:
        """Return the cache of the layers that attend to everything."""
        layers = [i for i, a in enumerate(self.layout.attends) if a and not self.layout.windowed[i]]
        return CacheView(self, self.load.sequence_tokens, layers, windowed=False)

    @cached_property
    def window_cache(self) -> CacheView:
        """Return the cache of the windowed layers."""
        layers = [i for i, a in enumerate(self.layout.attends) if a and self.layout.windowed[i]]
        cells = window_cells(self.load, self.layout.window_tokens)
        return CacheView(self, cells, layers, windowed=True)

    @cached_property
    def further_inputs(self) -> int:
        """Return how many first layers have an input of their own beside the embedding."""
        return self.model.number("n_deepstack_layers") if self.arch.has_deep_inputs else 0

    def add_deep_input(self, x: Tensor, layer: int) -> Tensor:
        """Add a layer's own part of the input."""
        if layer >= self.further_inputs:
            return x
        g = self.g
        return g.add(x, g.view(self.input_embeddings, (self.model.width, self.tokens), (self.input_row,)))

    def embed(self) -> Tensor:
        """Look the tokens up, and add the inputs for embeddings that stay in memory unread.

        Recent builds also add the path of a batch that mixes tokens and embeddings: tokens of its own,
        their rows, a copy, and the embeddings written over it.
        """
        g, width, build = self.g, self.model.width, self.load.build
        table = self.need("token_embd.weight")
        more = self.further_inputs * width
        mixes = build.mixes_inputs and not self.arch.never_mixes
        self._look_up_early()
        cur = g.get_rows(table, self.shared_input(I32, (self.tokens,), "tokens"))
        rows = g.get_rows(table, Graph.input(I32, (self.tokens,), "mixed_tokens"))
        if mixes:
            g.expand(cur)
            g.expand(rows)
        cur = g.pad(cur, more) if more else cur
        g.expand(cur)
        if build.takes_embeddings:
            g.expand(Graph.input(F32, (width + more, self.tokens), "embeddings"))
        if mixes:
            rows = g.pad(rows, more) if more else rows
            given = Graph.input(F32, (width + more, self.tokens), "mixed_embeddings")
            places = Graph.input(I64, (self.tokens,), "mixed_places")
            g.expand(g.set_rows(g.cont(given), rows, places))
        if more:
            self.input_row = row_bytes(F32, width + more)
            cur = g.view(cur, (width, self.tokens), (self.input_row,))
        self.input_embeddings = cur
        if self.model.real("embedding_scale") or self.arch.scales_input:
            cur = g.scale(cur)
        g.expand(cur)
        if self.arch.scales_embedding == "tokens" and build.mixes_inputs:
            return g.mul(cur, Graph.input(F32, (1, self.tokens), "embedding_scale"))
        return g.scale(cur) if self.arch.scales_embedding else cur

    @cached_property
    def per_layer_ids(self) -> Tensor:
        """Return the input that names rows of the table of all layers; pieces of Qwen 4 have several each."""
        pieces = (self.model.number("ple.ngram_size") - 1) * self.model.number("ple.heads_per_ngram")
        return Graph.input(I32, (self.tokens * max(1, pieces),), "per_layer_tokens")

    @cached_property
    def gathers_late(self) -> bool:
        """Return whether wanted rows are taken behind the last layer; builds that mix inputs never do so."""
        return self.arch.gathers_late and not self.load.build.mixes_inputs

    def _look_up_early(self) -> None:
        """Look up what recent builds take before the tokens: positions of encoders, inputs of all layers."""
        order, g = self.arch.order, self.g
        if not self.load.build.mixes_inputs:
            return
        if order in {"per_layer", "pooled"} and self.model.has(PER_LAYER_TABLE):
            ids = self.per_layer_ids
            self.early_rows = g.get_rows(self.need(PER_LAYER_TABLE), ids)
        elif order == "encoder" and self.arch.has_position_table:
            self.early_rows = g.get_rows(self.need("position_embd.weight"), self.positions)
        g.expand(self.early_rows)

    # Small sequences

    def norm(self, x: Tensor, weight: Tensor | None, bias: Tensor | None = None, kind: str = "") -> Tensor:
        """Norm, then weight, then bias where there are such."""
        g = self.g
        kind = kind or self.arch.norm
        if kind == "by_key":
            kind = "rms" if self.model.real("attention.layer_norm_rms_epsilon") else "layer"
        cur = g.like("rms_norm" if kind == "rms" else "norm", x)
        if weight is not None:
            cur = g.mul(cur, weight)
        if bias is not None:
            cur = g.add(cur, bias)
        return cur

    def named_norm(self, x: Tensor, layer: int, name: str, kind: str = "") -> Tensor:
        """Norm with the tensors of a block."""
        return self.norm(x, self.in_block(layer, name), self.in_block(layer, name, "bias"), kind)

    def project(self, x: Tensor, layer: int, name: str, *, bias: bool = True) -> Tensor:
        """Multiply with a matrix of a block; add its bias where it has one."""
        cur = self.g.mul_mat(self.need_in_block(layer, name), x)
        scale = self.in_block(layer, name, "scale")
        if scale is not None:
            cur = self.g.mul(cur, scale)
        added = self.in_block(layer, name, "bias") if bias else None
        return cur if added is None else self.g.add(cur, added)

    def rotate(self, x: Tensor, rotation: Tensor) -> Tensor:
        """Rotate heads before they go into a quantized cache."""
        g = self.g
        n = rotation.ne[0]
        flat = g.reshape(x, n, x.elements // n) if x.is_contiguous else g.cont(x, n, x.elements // n)
        return g.reshape(g.mul_mat(rotation, flat), *x.ne)

    @cached_property
    def has_windows(self) -> bool:
        """Return whether the architecture has a second cache for windows."""
        return self.layout.window_tokens > 0

    def encoder_mask(self, *, windowed: bool) -> Tensor:
        """Return the mask of a model without a cache."""
        name = "mask.window" if windowed else "mask.full"
        if name not in self._weights:
            kind = F16 if self.load.flash_attention else F32
            cells = pad(self.tokens) if self.load.build.pads_encoders else self.tokens
            self._weights[name] = Graph.input(kind, (cells, self.tokens), name)
        return self._weights[name]

    @staticmethod
    def tokens_of(chosen: Tensor) -> int:
        """Return how many tokens chose experts."""
        return chosen.ne[1]

    # Recurrent state

    @cached_property
    def state_rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the input that says which states to take, and its views: of this batch, and the others.

        Recent builds look up as many others as there could be, and use those that there are.
        """
        ids, g = Graph.input(I32, (self.sequences,), "state_rows"), self.g
        others = self.sequences - 1 if self.load.build.gathers_states else 0
        return ids, g.view(ids, (self.sequences,)), g.view(ids, (others,))

    def state_bytes_rows(self, layer: int, kind: str, width: int) -> Tensor:
        """Return a layer's recurrent state as it lies in its cache."""
        return self.lasting(F32, (width, self.load.slots), f"state.{kind}.{layer}")

    def take_state(self, state: Tensor, take: TakeState | None = None) -> Tensor:
        """Clear, take and put back states; returns what `take` makes of them (rows where it is not given)."""
        g, width = self.g, state.ne[0]
        states = g.reshape(state, width, state.ne[1])
        g.expand(g.scale_in_place(g.view(states, (width,))))
        taken, others = self._taken(states, take)
        g.expand(taken)
        g.expand(g.copy(others, g.view(state, (width, 0), (state.nb[1],))))
        return taken

    def _taken(self, states: Tensor, take: TakeState | None) -> tuple[Tensor, Tensor]:
        """Return the states of this batch and the others; recent builds look all of them up at once."""
        g, width = self.g, states.ne[0]
        every, main, extra = self.state_rows
        if not self.load.build.gathers_states:
            taken = g.get_rows(states, main) if take is None else take(states, main)
            return taken, g.get_rows(states, extra)
        if take is not None:
            taken = take(states, main)
            g.expand(taken)
            rows = g.get_rows(states, extra)
            return taken, g.view(rows, (width, 0), (rows.nb[1],))
        rows = g.get_rows(states, every)
        taken = g.view(rows, (width, self.sequences), (rows.nb[1],))
        return taken, g.view(rows, (width, 0), (rows.nb[1],))


__all__ = ["Building", "CacheView", "row_bytes"]
