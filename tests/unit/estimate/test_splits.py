"""Cutting a placed graph into parts, and what is copied between the sides."""

from __future__ import annotations

from llamaops.estimate.graph import F32, Graph, Tensor
from llamaops.estimate.reorder import vulkan_order
from llamaops.estimate.splits import DEVICE, HOST, Cutting

WIDTH, TOKENS = 64, 8


def cut(graph: Graph, on_card: list[Tensor], *, reorders: bool = False) -> list[Tensor]:
    card = {id(tensor) for tensor in on_card}
    at = {id(t): DEVICE if id(t) in card else HOST for t in (*graph.leafs, *graph.nodes)}
    return Cutting(graph, at, vulkan_order if reorders else None).run().nodes


def test_an_input_is_copied_once_and_held_until_then() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    weights = [g.weight(F32, (WIDTH, WIDTH)) for _ in range(2)]
    products = [g.mul_mat(weight, x) for weight in weights]
    for product in products:
        g.expand(product)
    held, copy, *rest = cut(g, [*weights, *products])
    assert held.sources == (x,)
    assert held.place == HOST
    assert (copy.op, copy.sources, copy.place) == ("none", (), DEVICE)
    assert rest == products
    assert all(product.sources[1] is copy for product in products)


def test_each_weight_that_is_copied_begins_a_part() -> None:
    """So that the memory of the last one's copy can be taken again."""
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    first = g.mul_mat(g.weight(F32, (WIDTH, WIDTH)), x)
    second = g.mul_mat(g.weight(F32, (WIDTH, WIDTH)), first)
    g.expand(second)
    ops = [node.op for node in cut(g, [first, second])]
    assert ops == ["none", "none", "none", "none", "mul_mat", "none", "none", "mul_mat"]


def test_a_cache_that_is_copied_begins_none() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    caches = [g.weight(F32, (WIDTH, WIDTH), f"cache_k.{i}") for i in range(2)]
    first = g.mul_mat(caches[0], x)
    second = g.mul_mat(caches[1], first)
    g.expand(second)
    ops = [node.op for node in cut(g, [first, second])]
    assert ops == ["none"] * 6 + ["mul_mat"] * 2


def test_only_what_runs_on_the_card_is_put_into_another_order() -> None:
    g = Graph()
    x = g.input(F32, (WIDTH, TOKENS))
    weights = [g.weight(F32, (WIDTH, WIDTH)) for _ in range(2)]
    first = g.mul_mat(weights[0], x)
    reader = g.like("sqr", first)
    other = g.mul_mat(weights[1], x)
    nodes = [first, reader, other]
    for node in nodes:
        g.expand(node)
    assert cut(g, [], reorders=True) == nodes
    assert cut(g, [x, *weights, *nodes], reorders=True) == [first, other, reader]


def test_what_the_driver_keeps_is_read_once_more_behind_its_last_result() -> None:
    g = Graph()
    weight = g.weight(F32, (WIDTH, 8))
    logits = g.mul_mat(weight, g.input(F32, (WIDTH, TOKENS)))
    probabilities = g.soft_max(logits)
    rows = g.reshape(probabilities, 1, 8, TOKENS)
    g.expand(rows)
    chosen = g.get_rows(rows, g.top_k(probabilities, 2))
    g.expand(chosen)
    nodes = cut(g, [weight, *g.nodes], reorders=True)
    last = nodes[nodes.index(chosen) + 1]
    assert (last.op, last.sources, last.place) == ("none", (logits,), DEVICE)
