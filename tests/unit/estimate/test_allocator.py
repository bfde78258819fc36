"""The replay of the allocator, on graphs small enough to follow by hand."""

from __future__ import annotations

from llamaops.estimate.allocator import Buffer, Replay
from llamaops.estimate.graph import F32, I32, Graph, Tensor


def size_of(graph: Graph) -> int:
    return Replay([Buffer(32)]).run(graph)[0]


def vector(graph: Graph, elements: int) -> Tensor:
    return graph.mul_mat(graph.weight(F32, (8, elements)), graph.input(F32, (8, 1)))


def test_a_result_lies_over_an_operand_that_nobody_else_reads() -> None:
    graph = Graph()
    x = vector(graph, 64)
    graph.expand(graph.unary(graph.scale(x)))
    assert size_of(graph) == 32 + 256  # the input and one vector


def test_an_operand_that_is_read_again_is_kept() -> None:
    graph = Graph()
    x = vector(graph, 64)
    graph.expand(graph.add(graph.unary(x), x))
    assert size_of(graph) == 32 + 2 * 256


def test_an_output_is_never_overwritten() -> None:
    graph = Graph()
    x = vector(graph, 64)
    x.is_output = True
    graph.expand(graph.unary(x))
    assert size_of(graph) == 32 + 2 * 256


def test_memory_is_taken_from_the_smallest_hole() -> None:
    buffer = Buffer(32)
    places = [buffer.take(size)[1] for size in (64, 32, 128, 32, 96, 32)]
    chunk = buffer.chunks[0]
    for index, size in ((0, 64), (2, 128), (4, 96)):
        chunk.give(places[index], size)
    assert buffer.take(90) == (0, places[4])
    assert buffer.size == 384


def test_holes_that_touch_become_one() -> None:
    buffer = Buffer(32)
    first, second, third = (buffer.take(64)[1] for _ in range(3))
    chunk = buffer.chunks[0]
    chunk.give(first, 64)
    chunk.give(third, 64)
    chunk.give(second, 64)
    assert [hole[0] for hole in chunk.blocks] == [0]


def test_a_card_takes_another_chunk_where_one_is_full() -> None:
    buffer = Buffer(64, 1024)
    assert [buffer.take(size) for size in (600, 600, 4096)] == [(0, 0), (1, 0), (2, 0)]
    assert buffer.size == 640 + 640 + 4096


def test_an_input_that_nobody_reads_stays() -> None:
    graph = Graph()
    graph.expand(graph.input(F32, (1024,)))
    x = vector(graph, 64)
    graph.expand(graph.unary(x))
    assert size_of(graph) == 4096 + 32 + 256


def test_views_keep_what_they_show() -> None:
    graph = Graph()
    x = vector(graph, 64)
    view = graph.view(x, (32, 1))
    graph.expand(graph.add(graph.unary(view), view))
    assert size_of(graph) == 32 + 256 + 128  # the sum lies over the activation, never over a view


def test_sizes_of_views_span_from_the_first_to_the_last_element() -> None:
    rows = Graph.weight(F32, (64, 10))
    assert Graph.view(rows, (16, 10), (rows.nb[1],)).size_bytes == 9 * 256 + 64
    assert Graph.view(rows, (0,)).size_bytes == 0
    assert Graph.transpose(rows).ne == (10, 64, 1, 1)
    assert Graph.get_rows(Graph.weight(8, (64, 10)), Graph.input(I32, (3,))).type_id == F32
