"""Decide which nodes of a graph run on a card, and which tensors are copied there, as the scheduler does.

Source: ggml_backend_sched_split_graph in ggml/src/ggml-backend.cpp of llama.cpp, for one card and the host.
A card's own reordering of nodes (Vulkan does some) is not replayed.
"""

from __future__ import annotations

from llamaops.estimate.graph import Graph, Tensor
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load
from llamaops.estimate.weights import first_on_card, is_on_card

HOST, DEVICE, NOWHERE = 0, 1, -1
LEAST_OFFLOAD = 32
"""Rows from which on the card computes with matrices that lie in host memory."""
LARGEST_TENSOR = 2**32 - 1
"""Bytes of a tensor that Vulkan can address on a discrete card."""
_VIEWS = frozenset({"view", "reshape", "permute", "transpose", "none"})


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
        real = [node for node in self._graph.nodes if node.op not in _VIEWS]
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
        if kind in {"cache_k", "cache_v", "state.r", "state.s"}:
            on_card = self._load.offloads_cache and int(number) >= self.first
            return DEVICE if on_card else HOST
        if name == "token_embd.weight#head":
            return DEVICE
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
            if source.external and not source.name.startswith(("cache_", "state.")):
                place = self._at.get(id(source), HOST)
                if place == HOST and _rows(node) >= LEAST_OFFLOAD and self._is_supported(node):
                    return DEVICE
                return NOWHERE if place == DEVICE and not self._is_supported(node) else place
        return NOWHERE

    def _is_supported(self, node: Tensor) -> bool:
        """Return whether the card's driver has the operator, for tensors of this size."""
        if self._load.card != "vulkan":
            return True
        if max(t.size_bytes for t in (node, *node.sources)) > LARGEST_TENSOR:
            return False
        return not (node.op == "ssm_scan" and node.sources[3].ne[0] != 1)

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
        """Cut the graph where the place changes and copy what the other side holds."""
        placed = Graph()
        splits: list[tuple[int, list[Tensor], list[Tensor]]] = []
        copies: dict[tuple[int, int], Tensor] = {}
        current = NOWHERE
        inputs: list[Tensor] = []
        members: list[Tensor] = []
        for node in self._graph.nodes:
            if node.op in _VIEWS:
                members.append(node)
                continue
            place = self._at[id(node)]
            if current == NOWHERE:
                current = place
            if place != current or (inputs and self._needs_weight(node, current)):
                splits.append((current, inputs, members))
                current, inputs, members = place, [], []
            node.sources = tuple(self._local(s, current, inputs, copies) for s in node.sources)
            members.append(node)
        splits.append((current, inputs, members))
        for place, wanted, nodes in splits:
            for source in wanted:
                dependency = Tensor(
                    "none", source.type_id, source.ne, (source,), view_of=source, nb=source.nb
                )
                dependency.place = self._at[id(source)]
                copy = copies[id(source), place]
                placed.nodes += [dependency, copy]
            placed.nodes += nodes
        for node in self._graph.nodes:
            node.place = self._at[id(node)]
        for leaf in self._graph.leafs:
            leaf.place = max(HOST, self._at[id(leaf)])
        placed.leafs = self._graph.leafs
        return placed

    def _needs_weight(self, node: Tensor, place: int) -> bool:
        return place == DEVICE and any(
            s.external and not s.name.startswith(("cache_", "state.")) and self._at.get(id(s), HOST) == HOST
            for s in node.sources
        )

    def _local(
        self, source: Tensor, place: int, inputs: list[Tensor], copies: dict[tuple[int, int], Tensor]
    ) -> Tensor:
        """Return the source itself where it lies on this side, else its copy."""
        if self._at[id(source)] == place:
            return source
        key = (id(source), place)
        if key not in copies:
            copy = Tensor("none", source.type_id, source.ne, nb=source.nb)
            copy.place = place
            copies[key] = copy
            inputs.append(source)
        return copies[key]


def _rows(node: Tensor) -> int:
    """Return the rows of a batch as the card's driver counts them for its decision."""
    if node.op == "get_rows":
        return 0
    if node.op == "mul_mat":
        return node.ne[1]
    if node.op in {"mul_mat_id", "rope"}:
        return node.ne[2]
    return node.ne[1] * node.ne[2] * node.ne[3]
