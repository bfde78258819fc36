"""Replay how the engine lays a graph's tensors into memory, and so how large its buffers become.

Source: ggml/src/ggml-alloc.c of llama.cpp: inputs first, then node by node; the best fitting hole, else the
end; results over an operand that is read for the last time; freed after the last reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaops.estimate.cards import ENDLESS
from llamaops.estimate.graph import IN_PLACE, Graph, Tensor

CPU_ALIGNMENT = 32


class Holes:
    """The free memory of one chunk of a buffer, as a list of holes by address."""

    __slots__ = ("alignment", "blocks", "peak")

    def __init__(self, alignment: int, size: int = ENDLESS) -> None:
        self.alignment = alignment
        self.blocks: list[list[int]] = [[0, size]]
        self.peak = 0

    def fitting(self, size: int) -> tuple[int, int]:
        """Return index and size of the smallest hole before the last that is large enough, or -1."""
        best, best_size = -1, ENDLESS * 2
        for i in range(len(self.blocks) - 1):
            if size <= self.blocks[i][1] <= best_size:
                best, best_size = i, self.blocks[i][1]
        return best, best_size

    def take(self, index: int, size: int) -> int:
        """Take memory from a hole and return its address."""
        block = self.blocks[index]
        at = block[0]
        block[0] += size
        block[1] -= size
        if not block[1]:
            del self.blocks[index]
        self.peak = max(self.peak, at + size)
        return at

    def give(self, at: int, size: int) -> None:
        """Give memory back and join it with the holes beside it."""
        size += -size % self.alignment
        blocks = self.blocks
        for i, block in enumerate(blocks):
            if block[0] + block[1] == at:
                block[1] += size
                if i < len(blocks) - 1 and block[0] + block[1] == blocks[i + 1][0]:
                    block[1] += blocks[i + 1][1]
                    del blocks[i + 1]
                return
            if at + size == block[0]:
                block[0] = at
                block[1] += size
                if i > 0 and blocks[i - 1][0] + blocks[i - 1][1] == block[0]:
                    blocks[i - 1][1] += block[1]
                    del blocks[i]
                return
        i = 0
        while i < len(blocks) and blocks[i][0] < at:
            i += 1
        blocks.insert(i, [at, size])


class Buffer:
    """A buffer of one or more chunks."""

    __slots__ = ("alignment", "chunk_bytes", "chunks")

    def __init__(self, alignment: int, chunk_bytes: int = ENDLESS) -> None:
        self.alignment = alignment
        self.chunk_bytes = chunk_bytes
        self.chunks: list[Holes] = []

    @property
    def size(self) -> int:
        """Return the bytes of all chunks."""
        return sum(chunk.peak for chunk in self.chunks)

    def take(self, size: int) -> tuple[int, int]:
        """Take memory from the best hole, else the end of a chunk; return chunk and address."""
        size += -size % self.alignment
        found = -1, -1
        for number, chunk in enumerate(self.chunks):
            index, _ = chunk.fitting(size)
            if index >= 0:
                found = number, index
        if found[0] < 0:
            found = self._at_an_end(size)
        if found[0] < 0:
            self.chunks.append(Holes(self.alignment, max(size, self.chunk_bytes)))
            found = len(self.chunks) - 1, 0
        return found[0], self.chunks[found[0]].take(found[1], size)

    def _at_an_end(self, size: int) -> tuple[int, int]:
        found, best = (-1, -1), -(2**63)
        for number, chunk in enumerate(self.chunks):
            if not chunk.blocks or chunk.blocks[-1][1] < size:
                continue
            left = chunk.peak - chunk.blocks[-1][0] - size
            if (best < 0 and left > best) or 0 <= left < best:
                found, best = (number, len(chunk.blocks) - 1), left
        return found


class _State:
    """What the replay knows of one tensor."""

    __slots__ = ("at", "buffer", "chunk", "is_ours", "readers", "size", "views")

    def __init__(self, size: int) -> None:
        self.readers = 0
        self.views = 0
        self.is_ours = False
        self.at = 0
        self.chunk = 0
        self.buffer = 0
        self.size = size


class Replay:
    """One pass over a graph."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self._states: dict[int, _State] = {}

    def run(self, graph: Graph) -> tuple[int, ...]:
        """Lay out a graph and return the size of each buffer; `Tensor.place` says which one a tensor uses.

        Units: bytes.
        """
        for leaf in graph.leafs:
            self._allocate(leaf)
        self._count(graph.nodes)
        for node in graph.nodes:
            for source in node.sources:
                self._allocate(source)
            self._allocate(node)
            self._release_read(node)
        return tuple(buffer.size for buffer in self.buffers)

    def _state(self, tensor: Tensor) -> _State:
        state = self._states.get(id(tensor))
        if state is None:
            state = self._states[id(tensor)] = _State(tensor.size_bytes)
        return state

    def _count(self, nodes: Sequence[Tensor]) -> None:
        for node in nodes:
            if node.view_of is not None and node.op != "none":
                self._state(node.view_of).views += 1
            if node.is_input:
                self._allocate(node)
            for source in node.sources:
                self._state(source).readers += 1
                if source.is_input:
                    self._allocate(source)

    def _allocate(self, tensor: Tensor) -> None:
        if tensor.external or tensor.view_of is not None:
            return
        state = self._state(tensor)
        if state.is_ours:
            return
        state.is_ours = True
        if tensor.op in IN_PLACE and self._reuse(tensor, state):
            return
        state.buffer = tensor.place
        state.chunk, state.at = self.buffers[tensor.place].take(state.size)

    def _reuse(self, tensor: Tensor, state: _State) -> bool:
        """Lay a result over an operand of the same layout that is read for the last time."""
        for source in tensor.sources:
            theirs = self._state(source)
            # The engine never reuses through a view: a view is not "allocated" in its books.
            if source.view_of is not None or not theirs.is_ours:
                continue
            if source.is_output or not _same_layout(tensor, source):
                continue
            if theirs.readers == 1 and theirs.views == 0:
                state.buffer, state.chunk, state.at = theirs.buffer, theirs.chunk, theirs.at
                theirs.is_ours = False
                self._trim(state, theirs)
                return True
        return False

    def _trim(self, state: _State, theirs: _State) -> None:
        alignment = self.buffers[theirs.buffer].alignment
        kept = state.size + -state.size % alignment
        had = theirs.size + -theirs.size % alignment
        if had > kept:
            self.buffers[theirs.buffer].chunks[theirs.chunk].give(theirs.at + kept, had - kept)

    def _release_read(self, node: Tensor) -> None:
        for source in node.sources:
            state = self._state(source)
            state.readers -= 1
            if state.readers or state.views:
                continue
            if source.view_of is not None:
                owner = self._state(source.view_of)
                owner.views -= 1
                if not owner.views and not owner.readers and owner.is_ours:
                    self._free(source.view_of, owner)
            elif state.is_ours:
                self._free(source, state)

    def _free(self, tensor: Tensor, state: _State) -> None:
        if not tensor.is_output:
            self.buffers[state.buffer].chunks[state.chunk].give(state.at, state.size)
            state.is_ours = False


def _same_layout(a: Tensor, b: Tensor) -> bool:
    return a.type_id == b.type_id and a.ne == b.ne and a.nb == b.nb
