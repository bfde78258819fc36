"""Cut a placed graph into parts that run on one side each, with copies of what the other side holds.

Source: pass 5 and what follows it in ggml_backend_sched_split_graph, ggml/src/ggml-backend.cpp of llama.cpp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from llamaops.estimate.graph import Graph, Tensor
from llamaops.estimate.reorder import VIEWS, Kept

HOST, DEVICE, NOWHERE = 0, 1, -1
MOST_SOURCES = 10
"""Operands that a node can have."""
CACHES = ("cache_", "state.")
"""Beginnings of the names of external tensors that are no weights."""
Order = Callable[[Sequence[Tensor], dict[int, int]], tuple[list[Tensor], Kept]]
"""A driver's order of nodes, and what it keeps; takes how often each tensor is read."""


def is_weight(tensor: Tensor) -> bool:
    """Return whether a tensor is a weight."""
    return tensor.external and not tensor.name.startswith(CACHES)


class Split(msgspec.Struct):
    """A part of a graph that runs on one side."""

    place: int
    wanted: list[Tensor]
    """What is copied from the other side before it runs."""
    nodes: list[Tensor]


class Cutting:
    """A graph being cut; `at` has the place of every tensor by its identity, `order` is the card's own."""

    def __init__(self, graph: Graph, at: dict[int, int], order: Order | None) -> None:
        self._graph = graph
        self._at = at
        self._order = order
        self._copies: dict[tuple[int, int], Tensor] = {}
        self._uses = Counter(id(source) for node in graph.nodes for source in node.sources)

    def run(self) -> Graph:
        """Return the graph as the allocator is given it."""
        splits = self._cut()
        for node in self._graph.nodes:
            node.place = self._at[id(node)]
        for leaf in self._graph.leafs:
            leaf.place = max(HOST, self._at[id(leaf)])
        placed = Graph()
        placed.leafs = self._graph.leafs
        for split in splits:
            placed.nodes += self._joined(split)
        return placed

    def _cut(self) -> list[Split]:
        real = (node for node in self._graph.nodes if node.op not in VIEWS)
        current = Split(self._at[id(next(real))], [], [])
        splits = [current]
        for node in self._graph.nodes:
            if node.op not in VIEWS:
                place = self._at[id(node)]
                if place != current.place or (current.wanted and self._needs_weight(node, place)):
                    current = Split(place, [], [])
                    splits.append(current)
                node.sources = tuple(self._local(source, current) for source in node.sources)
            current.nodes.append(node)
        return splits

    def _needs_weight(self, node: Tensor, place: int) -> bool:
        """Return whether a weight has to be copied, which begins a part so that the last one's copy can go.

        A card's weights are copied to the host as well, host memory for the card only where it computes.
        """
        return any(is_weight(source) and self._at.get(id(source), HOST) != place for source in node.sources)

    def _local(self, source: Tensor, split: Split) -> Tensor:
        """Return the source itself where it lies on this side, else its copy."""
        if self._at[id(source)] == split.place:
            return source
        key = id(source), split.place
        if key not in self._copies:
            copy = Tensor("none", source.type_id, source.ne, nb=source.nb)
            copy.place = split.place
            self._copies[key] = copy
            split.wanted.append(source)
        return self._copies[key]

    def _joined(self, split: Split) -> list[Tensor]:
        """Return the nodes of a part behind the copies that it needs."""
        nodes, kept = split.nodes, Kept()
        if self._order is not None and split.place == DEVICE:
            nodes, kept = self._order(nodes, self._uses)
        found: list[Tensor] = []
        for source in split.wanted:
            found += [self._held([source], self._at[id(source)]), self._copies[id(source), split.place]]
        for node in nodes:
            found.append(node)
            held = kept.get(id(node), [])
            found += [
                self._held(held[i : i + MOST_SOURCES], split.place) for i in range(0, len(held), MOST_SOURCES)
            ]
        return found

    @staticmethod
    def _held(sources: Sequence[Tensor], place: int) -> Tensor:
        """Return a node that does nothing but to read tensors, so that they are not freed before it."""
        first = sources[0]
        node = Tensor("none", first.type_id, first.ne, tuple(sources), view_of=first, nb=first.nb)
        node.place = place
        return node
