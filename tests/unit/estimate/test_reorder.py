"""The order that a card's driver gives to nodes, on graphs to follow by hand and on whole ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from llamaops.estimate.architectures import ARCHITECTURES
from llamaops.estimate.decoder import reserved_graph
from llamaops.estimate.graph import F16, F32, I32, I64, Graph, Tensor
from llamaops.estimate.plan import Load
from llamaops.estimate.reorder import EXPERT_PATTERNS, Kept, vulkan_order
from tests.fakes.memory_truth import models

WIDTH, TOKENS = 64, 8


def matrix(rows: int = WIDTH) -> Tensor:
    return Graph.weight(F32, (WIDTH, rows))


def ordered(graph: Graph, *, heeds_storage: bool = True) -> tuple[list[Tensor], Kept]:
    uses = Counter(id(source) for node in graph.nodes for source in node.sources)
    return vulkan_order(graph.nodes, uses, heeds_storage=heeds_storage)


def named(nodes: Sequence[Tensor], **names: Tensor) -> list[str]:
    known = {id(tensor): name for name, tensor in names.items()}
    return [known[id(node)] for node in nodes if id(node) in known]


def test_what_depends_on_nothing_to_come_moves_forward() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    first = g.mul_mat(matrix(), x)
    reader = g.like("sqr", first)
    other = g.mul_mat(matrix(), x)
    for node in (first, reader, other):
        g.expand(node)
    assert named(ordered(g)[0], first=first, reader=reader, other=other) == ["first", "other", "reader"]


def test_a_bias_follows_its_product_at_once() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    product = g.mul_mat(matrix(), x)
    biased = g.add(product, Graph.weight(F32, (WIDTH,)))
    other = g.mul_mat(matrix(), x)
    for node in (product, biased, other):
        g.expand(node)
    order = named(ordered(g)[0], product=product, biased=biased, other=other)
    assert order == ["product", "biased", "other"]


def test_what_is_too_far_ahead_stays() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    chain = g.mul_mat(matrix(), x)
    for _ in range(25):
        chain = g.like("sqr", chain)
    g.expand(chain)
    last = g.mul_mat(matrix(), x)
    g.expand(last)
    assert 0 < ordered(g)[0].index(last) < 26


def test_reading_a_cache_waits_for_writing_it() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    cache = Graph.weight(F16, (WIDTH, 32), "cache_k.0")
    written = g.set_rows(cache, g.mul_mat(matrix(), x), g.input(I64, (TOKENS,)))
    shown = g.view(cache, (WIDTH, 32))
    read = g.mul_mat(shown, x)
    g.expand(written)
    g.expand(read)
    order = named(ordered(g)[0], written=written, shown=shown, read=read)
    assert order == ["written", "shown", "read"]


def test_older_drivers_let_a_view_be_read_before_its_tensor_is_written() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    cache = Graph.weight(F16, (WIDTH, 32), "cache_k.0")
    shown = g.view(cache, (WIDTH, 32))
    written = g.set_rows(cache, g.like("sqr", g.mul_mat(matrix(), x)), g.input(I64, (TOKENS,)))
    read = g.mul_mat(shown, x)
    for node in (shown, written, read):
        g.expand(node)
    names = {"written": written, "read": read}
    assert named(ordered(g)[0], **names) == ["written", "read"]
    assert named(ordered(g, heeds_storage=False)[0], **names) == ["read", "written"]


def rotation(*, is_read_again: bool) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """Return the order of a graph with a rotation, its view and its store; others could come between."""
    g = Graph()
    product = g.mul_mat(matrix(), g.input(F32, (WIDTH, TOKENS)))
    heads = g.reshape(product, 16, 4, TOKENS)
    g.expand(heads)
    g.expand(g.like("sqr", product))
    rotated = g.rope(heads, g.input(I32, (TOKENS,)))
    g.expand(rotated)
    for _ in range(2):
        g.expand(g.like("sqr", product))
    shown = g.view(rotated, (WIDTH, TOKENS))
    stored = g.set_rows(Graph.weight(F16, (WIDTH, 32), "cache_k.0"), shown, g.input(I64, (TOKENS,)))
    g.expand(stored)
    if is_read_again:
        g.expand(g.like("sqr", rotated))
    return ordered(g)[0], rotated, shown, stored


def test_a_rotation_is_stored_at_once() -> None:
    nodes, rotated, shown, stored = rotation(is_read_again=False)
    place = nodes.index(rotated)
    assert nodes[place : place + 3] == [rotated, shown, stored]


def test_a_rotation_that_is_read_elsewhere_too_is_not() -> None:
    nodes, rotated, _, stored = rotation(is_read_again=True)
    assert nodes.index(stored) > nodes.index(rotated) + 2


def test_the_choice_of_experts_stays_together_and_keeps_what_it_reads() -> None:
    g = Graph()
    logits = g.mul_mat(matrix(8), g.input(F32, (WIDTH, TOKENS)))
    probabilities = g.soft_max(logits)
    rows = g.reshape(probabilities, 1, 8, TOKENS)
    g.expand(rows)
    chosen = g.get_rows(rows, g.top_k(probabilities, 2))
    other = g.mul_mat(matrix(), g.input(F32, (WIDTH, TOKENS)))
    g.expand(chosen)
    g.expand(other)
    nodes, kept = ordered(g)
    start = nodes.index(probabilities)
    assert tuple(node.op for node in nodes[start : start + 5]) == EXPERT_PATTERNS[3]
    assert nodes[start + 4] is chosen
    assert kept[id(chosen)] == [logits]
    assert ordered(g, heeds_storage=False)[1] == {}


@pytest.mark.parametrize("name", ["llama-3.1-8b-q4_k_m", "granite-4.0-h-tiny-q4_k_m", "rwkv7-0.1b-f16"])
def test_every_node_runs_once_and_after_what_it_reads(name: str) -> None:
    model = models()[name]
    load = Load(
        context_tokens=4096, sequence_tokens=4096, slots=1, is_unified=True, batch_tokens=512, outputs=1
    )
    graph = reserved_graph(model, ARCHITECTURES[model.architecture], load)
    nodes = ordered(graph)[0]
    assert Counter(map(id, nodes)) == Counter(map(id, graph.nodes))
    place = {id(node): i for i, node in enumerate(nodes)}
    assert all(place.get(id(source), -1) < place[id(node)] for node in nodes for source in node.sources)
    assert [id(node) for node in nodes] != [id(node) for node in graph.nodes]
