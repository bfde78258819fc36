"""A compute graph as shapes only: which tensors an engine creates, in which order, and who reads them.

Each method stands for one operator and returns the tensor it creates. Nothing is computed; shapes,
strides and the order of nodes decide how large the engine's compute buffer becomes.

Source: ggml/src/ggml.c of llama.cpp: result shapes of the operators, order of the graph (depth first,
operands from left to right).
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaops.facts.ggml_types import BLOCKS

F32, F16, I32, I64 = 0, 1, 26, 27
Shape4 = tuple[int, int, int, int]

# Operators that may write over an operand that nobody else reads.
IN_PLACE = frozenset(
    "fill scale add add_id sub mul div sqr sqrt log unary rope rms_norm clamp soft_max".split()  # noqa: SIM905
)


def row_bytes(type_id: int, elements: int) -> int:
    """Return the bytes of a row of elements of a type."""
    _, per_block, block_bytes = BLOCKS[type_id]
    return elements // per_block * block_bytes


class Tensor:
    """A tensor of the graph; `external` ones (weights, caches) lie in buffers of their own."""

    __slots__ = (
        "external", "is_input", "is_output", "name", "nb", "ne", "op", "place", "sources", "type_id",
        "view_of",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        type_id: int,
        ne: Sequence[int],
        sources: tuple[Tensor, ...] = (),
        *,
        view_of: Tensor | None = None,
        nb: Shape4 | None = None,
    ) -> None:
        self.op = op
        self.type_id = type_id
        self.ne: Shape4 = (*ne, 1, 1, 1, 1)[:4]  # type: ignore[assignment]  # cut to four
        self.nb = nb or strides(type_id, self.ne)
        self.sources = sources
        self.view_of: Tensor | None = None if view_of is None else (view_of.view_of or view_of)
        self.external = False
        self.is_input = False
        self.is_output = False
        self.name = ""
        self.place = 0

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        a, b, c, d = self.ne
        return a * b * c * d

    @property
    def size_bytes(self) -> int:
        """Return the bytes from the first to the last element, as ggml_nbytes counts them."""
        if 0 in self.ne:
            return 0
        _, per_block, block_bytes = BLOCKS[self.type_id]
        first = self.ne[0] - 1
        size = block_bytes + first * self.nb[0] if per_block == 1 else self.ne[0] * self.nb[0] // per_block
        return size + sum((self.ne[i] - 1) * self.nb[i] for i in (1, 2, 3))

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements lie one after the other."""
        return self.nb == strides(self.type_id, self.ne)


def strides(type_id: int, ne: Shape4) -> Shape4:
    """Return the strides of a contiguous tensor."""
    _, per_block, block_bytes = BLOCKS[type_id]
    first = block_bytes * (ne[0] // per_block)
    return (block_bytes, first, first * ne[1], first * ne[1] * ne[2])


class Graph:
    """The nodes and leafs of a graph in the order in which the engine lists them."""

    def __init__(self) -> None:
        self.nodes: list[Tensor] = []
        self.leafs: list[Tensor] = []
        self._seen: set[int] = set()

    def expand(self, tensor: Tensor | None) -> None:
        """Add a tensor and everything it is made of that is not in the graph yet."""
        if tensor is None or id(tensor) in self._seen:
            return
        # Depth first with a stack of our own: long chains are deeper than Python's recursion allows.
        stack = [(tensor, iter(tensor.sources))]
        self._seen.add(id(tensor))
        while stack:
            current, rest = stack[-1]
            for source in rest:
                if id(source) not in self._seen:
                    self._seen.add(id(source))
                    stack.append((source, iter(source.sources)))
                    break
            else:
                stack.pop()
                (self.leafs if current.op == "none" else self.nodes).append(current)

    # Leafs

    @staticmethod
    def weight(type_id: int, ne: Sequence[int], name: str = "") -> Tensor:
        """Return a tensor that lies in a buffer of its own."""
        tensor = Tensor("none", type_id, ne)
        tensor.external = True
        tensor.name = name
        return tensor

    @staticmethod
    def input(type_id: int, ne: Sequence[int], name: str = "") -> Tensor:
        """Return an input of the graph, which is allocated before any node."""
        tensor = Tensor("none", type_id, ne)
        tensor.is_input = True
        tensor.name = name
        return tensor

    # Views

    @staticmethod
    def view(a: Tensor, ne: Sequence[int], nb: Sequence[int] = ()) -> Tensor:
        """Return a view; `nb` gives the strides from the second on, those left out follow from the shape."""
        shape: Shape4 = (*ne, 1, 1, 1, 1)[:4]  # type: ignore[assignment]  # cut to four
        full = list(strides(a.type_id, shape))
        for i, stride in enumerate(nb, 1):
            full[i] = stride
        for i in range(len(nb) + 1, 4):
            full[i] = full[i - 1] * shape[i - 1] if nb else full[i]
        return Tensor("view", a.type_id, shape, (a,), view_of=a, nb=tuple(full))  # type: ignore[arg-type]

    @staticmethod
    def reshape(a: Tensor, *ne: int) -> Tensor:
        """Return the same elements in another shape."""
        return Tensor("reshape", a.type_id, ne, (a,), view_of=a)

    @staticmethod
    def permute(a: Tensor, *axes: int) -> Tensor:
        """Return a view with the axes moved: axis `i` goes to place `axes[i]`."""
        ne, nb = [0] * 4, [0] * 4
        for i, axis in enumerate(axes):
            ne[axis], nb[axis] = a.ne[i], a.nb[i]
        return Tensor("permute", a.type_id, ne, (a,), view_of=a, nb=tuple(nb))  # type: ignore[arg-type]

    @staticmethod
    def transpose(a: Tensor) -> Tensor:
        """Return a view with the first two axes swapped."""
        ne = (a.ne[1], a.ne[0], a.ne[2], a.ne[3])
        nb = (a.nb[1], a.nb[0], a.nb[2], a.nb[3])
        return Tensor("transpose", a.type_id, ne, (a,), view_of=a, nb=nb)

    @staticmethod
    def set_rows(a: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Write rows into `a`; the result is a view of it."""
        return Tensor("set_rows", a.type_id, a.ne, (rows, places, a), view_of=a, nb=a.nb)

    @staticmethod
    def copy(a: Tensor, to: Tensor) -> Tensor:
        """Copy into another tensor; the result is a view of that."""
        return Tensor("cpy", to.type_id, to.ne, (a, to), view_of=to, nb=to.nb)

    @staticmethod
    def scale_in_place(a: Tensor) -> Tensor:
        """Scale a tensor where it lies."""
        return Tensor("scale", a.type_id, a.ne, (a,), view_of=a, nb=a.nb)

    # Operators with a result of the first operand's shape

    @staticmethod
    def like(op: str, a: Tensor, *others: Tensor | None) -> Tensor:
        """Return the result of an operator that keeps the shape and type of its first operand."""
        return Tensor(op, a.type_id, a.ne, (a, *(t for t in others if t is not None)))

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """Add."""
        return self.like("add", a, b)

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply element by element."""
        return self.like("mul", a, b)

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        """Subtract."""
        return self.like("sub", a, b)

    def unary(self, a: Tensor) -> Tensor:
        """Apply an activation."""
        return self.like("unary", a)

    def scale(self, a: Tensor) -> Tensor:
        """Scale."""
        return self.like("scale", a)

    def cont(self, a: Tensor, *ne: int) -> Tensor:
        """Copy into contiguous memory, in another shape where one is given."""
        return Tensor("cont", a.type_id, ne or a.ne, (a,))

    def rope(self, a: Tensor, positions: Tensor, factors: Tensor | None = None) -> Tensor:
        """Rotate by position."""
        return self.like("rope", a, positions, factors)

    def soft_max(self, a: Tensor, mask: Tensor | None = None, sinks: Tensor | None = None) -> Tensor:
        """Soft-max of rows."""
        return self.like("soft_max", a, mask, sinks)

    # Others

    @staticmethod
    def cast(a: Tensor, type_id: int) -> Tensor:
        """Copy into another type."""
        return Tensor("cast", type_id, a.ne, (a,))

    @staticmethod
    def mul_mat(a: Tensor, b: Tensor) -> Tensor:
        """Multiply matrices."""
        return Tensor("mul_mat", F32, (a.ne[1], b.ne[1], b.ne[2], b.ne[3]), (a, b))

    @staticmethod
    def mul_mat_id(experts: Tensor, b: Tensor, ids: Tensor) -> Tensor:
        """Multiply with the chosen experts' matrices."""
        return Tensor("mul_mat_id", F32, (experts.ne[1], ids.ne[0], b.ne[2], 1), (experts, b, ids))

    @staticmethod
    def get_rows(a: Tensor, ids: Tensor) -> Tensor:
        """Take rows; quantized ones become F32."""
        type_id = I32 if a.type_id == I32 else F32
        return Tensor("get_rows", type_id, (a.ne[0], ids.ne[0], ids.ne[1], ids.ne[2]), (a, ids))

    @staticmethod
    def glu(a: Tensor, b: Tensor | None = None) -> Tensor:
        """Apply a gated activation: of two tensors, or of the halves of one."""
        if b is None:
            return Tensor("glu", a.type_id, (a.ne[0] // 2, *a.ne[1:]), (a,))
        return Tensor("glu", a.type_id, a.ne, (a, b))

    @staticmethod
    def concat(a: Tensor, b: Tensor, axis: int) -> Tensor:
        """Join along an axis."""
        ne = list(a.ne)
        ne[axis] += b.ne[axis]
        return Tensor("concat", a.type_id, ne, (a, b))

    @staticmethod
    def repeat(a: Tensor, *ne: int) -> Tensor:
        """Repeat until a shape is filled."""
        return Tensor("repeat", a.type_id, ne, (a,))

    @staticmethod
    def pad(a: Tensor, *more: int) -> Tensor:
        """Add zeros at the end of axes."""
        ne = [n + m for n, m in zip(a.ne, (*more, 0, 0, 0, 0), strict=False)]
        return Tensor("pad", a.type_id, ne, (a,))

    @staticmethod
    def sum_rows(a: Tensor) -> Tensor:
        """Sum each row."""
        return Tensor("sum_rows", a.type_id, (1, *a.ne[1:]), (a,))

    def top_k(self, a: Tensor, k: int) -> Tensor:
        """Sort row by row and return a view of the places of the first `k`."""
        order = Tensor("argsort", I32, a.ne, (a,))
        return self.view(order, (k, *order.ne[1:]), order.nb[1:])

    @staticmethod
    def flash_attention(q: Tensor, k: Tensor, v: Tensor, *others: Tensor | None) -> Tensor:
        """Attend without the scores ever being whole in memory."""
        present = tuple(t for t in others if t is not None)
        return Tensor("flash_attn", F32, (v.ne[0], q.ne[2], q.ne[1], q.ne[3]), (q, k, v, *present))

    @staticmethod
    def ssm_conv(states: Tensor, kernel: Tensor) -> Tensor:
        """Convolve along the tokens of each sequence."""
        ne = (kernel.ne[1], states.ne[0] - kernel.ne[0] + 1, states.ne[2])
        return Tensor("ssm_conv", F32, ne, (states, kernel))
