"""Decide which nodes of a graph run on a card, and which tensors are copied there, as the scheduler does.

Source: ggml_backend_sched_split_graph in ggml/src/ggml-backend.cpp of llama.cpp, for one card and the host.
"""

from __future__ import annotations

from functools import partial

from llamaops.estimate.building import AS_HEAD, ON_HOST
from llamaops.estimate.card_support import batch_rows, is_supported
from llamaops.estimate.graph import Graph, Tensor
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load
from llamaops.estimate.reorder import VIEWS, vulkan_order
from llamaops.estimate.splits import DEVICE, HOST, NOWHERE, Cutting, is_weight
from llamaops.estimate.weights import first_on_card, is_on_card

LEAST_OFFLOAD = 32
"""Rows from which on the card computes with matrices that lie in host memory."""


def place_graph(graph: Graph, model: Model, load: Load) -> Graph:
    """Return the graph as the scheduler hands it to the allocator: placed, with copies between the sides."""
    placing = _Placing(graph, model, load)
    placing.assign()
    return placing.split()


def flash_runs_beside_layers(graph: Graph, model: Model, load: Load) -> bool:
    """Return whether every flash attention runs on the side where its layer lies."""
    placing = _Placing(graph, model, load)
    placing.assign()
    nodes = [node for node in graph.nodes if node.op == "flash_attn"]
    layers = [int(node.name or 0) for node in nodes]
    wanted = [DEVICE if layer >= placing.first else HOST for layer in layers]
    return all(placing.place_of(node) == place for node, place in zip(nodes, wanted, strict=True))


class _Placing:
    """One graph being placed."""

    def __init__(self, graph: Graph, model: Model, load: Load) -> None:
        self._graph = graph
        self._model = model
        self._load = load
        self.first = first_on_card(model, load.gpu_layers)
        self._at: dict[int, int] = {}

    def place_of(self, tensor: Tensor) -> int:
        """Return where a tensor was put."""
        return self._at[id(tensor)]

    def assign(self) -> None:
        """Give every tensor a place."""
        for leaf in self._graph.leafs:
            self._at[id(leaf)] = self._leaf(leaf)
        for node in self._graph.nodes:
            self._at[id(node)] = self._node(node)
        real = [node for node in self._graph.nodes if node.op not in VIEWS]
        for nodes in (real, real[::-1]):
            self._spread(nodes, over_host=False)
        for nodes in (real, real[::-1]):
            self._spread(nodes, over_host=True)
        for node in real:
            if self._at[id(node)] == NOWHERE and not self._is_supported(node):
                self._at[id(node)] = HOST
        for node in self._graph.nodes:
            self._settle(node)

    def _leaf(self, leaf: Tensor) -> int:
        if leaf.is_input:
            return HOST
        if not leaf.external:
            return NOWHERE
        return self._owned(leaf.name)

    def _owned(self, name: str) -> int:
        kind, _, number = name.rpartition(".")
        if kind in {"cache_k", "cache_v", "cache_i", "state.r", "state.s"}:
            on_card = self._load.offloads_cache and int(number) >= self.first
            return DEVICE if on_card else HOST
        if name.endswith((AS_HEAD, ON_HOST)):
            return DEVICE if name.endswith(AS_HEAD) else HOST
        weight = self._model.by_name.get(name)
        if weight is None:
            return HOST
        return DEVICE if is_on_card(self._model, weight, self.first, self._load) else HOST

    def _node(self, node: Tensor) -> int:
        if node.view_of is not None and node.view_of.external:
            return self._at.get(id(node.view_of), HOST)
        if node.op in {"rope", "flash_attn"}:
            return NOWHERE
        for source in node.sources:
            if is_weight(source):
                place = self._at.get(id(source), HOST)
                if place == HOST and batch_rows(node) >= LEAST_OFFLOAD and self._is_supported(node):
                    return DEVICE
                return NOWHERE if place == DEVICE and not self._is_supported(node) else place
        return NOWHERE

    def _is_supported(self, node: Tensor) -> bool:
        return is_supported(node, self._load.card)

    def _spread(self, nodes: list[Tensor], *, over_host: bool) -> None:
        current = NOWHERE
        for node in nodes:
            place = self._at[id(node)]
            if place != NOWHERE:
                current = place if over_host or place == DEVICE else NOWHERE
            elif current == HOST or (current == DEVICE and self._is_supported(node)):
                self._at[id(node)] = current

    def _settle(self, node: Tensor) -> None:
        if self._at[id(node)] == NOWHERE and node.view_of is not None:
            self._at[id(node)] = self._at.get(id(node.view_of), NOWHERE)
        for source in node.sources:
            if self._at.get(id(source), NOWHERE) == NOWHERE:
                owner = source.view_of
                place = self._at[id(node)] if owner is None else self._at.get(id(owner), NOWHERE)
                self._at[id(source)] = place
        if self._at[id(node)] == NOWHERE:
            self._at[id(node)] = DEVICE if self._is_supported(node) else HOST

    def split(self) -> Graph:
        """Cut the graph where the place changes."""
        build = self._load.build
        order = partial(vulkan_order, heeds_storage=build.heeds_storage)
        return Cutting(self._graph, self._at, order if self._load.card == "vulkan" else None).run()
