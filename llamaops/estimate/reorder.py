"""Put the nodes that run on a card into the order in which the card's driver runs them.

Vulkan's driver moves nodes forward that depend on nothing that is still to come, so that they can run side by
side, and keeps together what it computes in one go. Results then live longer or shorter than in the graph.

Source: ggml_vk_graph_optimize in ggml/src/ggml-vulkan/ggml-vulkan.cpp of llama.cpp. Not replayed: patterns of
operators that no graph here has (snake, top-k of sparse attention, mixed residual streams).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llamaops.estimate.graph import Tensor, strides

REACH = 20
"""How many nodes ahead the driver looks for some that it can move forward."""
PARTNER_REACH = 15
"""How many nodes ahead it looks for the partner of an operator that it computes together with it."""
VIEWS = frozenset({"view", "reshape", "permute", "transpose", "none"})

_CHOICE = ("argsort", "view", "get_rows")
_SUM = ("reshape", "sum_rows", "clamp", "div", "reshape")
EXPERT_PATTERNS = (
    ("soft_max", "reshape", *_CHOICE, *_SUM),
    ("unary", "reshape", "add", *_CHOICE, *_SUM),
    ("unary", "sqrt", "reshape", "add", *_CHOICE, *_SUM),
    ("soft_max", "reshape", *_CHOICE),
    (*_CHOICE, "reshape", "soft_max", "reshape"),
)
"""The choice of experts in one go; what it reads is kept until its last result."""
PATTERNS = (
    *EXPERT_PATTERNS,
    ("rms_norm", "mul", "add", "mul"),
    ("rms_norm", "mul", "add"),
    ("rms_norm", "mul", "rope", "view", "set_rows"),
    ("rms_norm", "view", "set_rows"),
    ("rope", "view", "set_rows"),
)
_NEAR = frozenset({("rms_norm", "mul"), ("unary", "mul")})
"""Pairs that follow each other even with views or finished nodes between."""
_NEXT = frozenset(
    {
        ("mul_mat", "add"), ("mul_mat_id", "add_id"), ("mul_mat_id", "mul"), ("add", "add"),
        ("ssm_conv", "add"), ("ssm_conv", "unary"),
    }
)  # fmt: skip
"""Pairs that follow each other where they are neighbours."""

Partner = Callable[[Tensor, Tensor], bool]
Kept = dict[int, list[Tensor]]
"""Tensors that must not be freed before a node has run, by the node's identity."""


def vulkan_order(
    nodes: Sequence[Tensor], uses: dict[int, int], *, heeds_storage: bool = True
) -> tuple[list[Tensor], Kept]:
    """Return the nodes in the driver's order, and what is kept longer than its last reader.

    `uses`: how often each tensor is read in the whole graph, by its identity. `heeds_storage`: whether views
    of one tensor keep their order and what a choice of experts reads is kept; older drivers do neither.
    """
    order = _Order(nodes, uses, heeds_storage=heeds_storage)
    order.run()
    return order.made, order.kept if heeds_storage else {}


class _Order:
    """One part of a graph being put into order."""

    def __init__(self, nodes: Sequence[Tensor], uses: dict[int, int], *, heeds_storage: bool) -> None:
        self.made: list[Tensor] = []
        self.kept: Kept = {}
        self._nodes = nodes
        self._uses = uses
        self._ops = [node.op for node in nodes]
        self._is_view = [op in VIEWS for op in self._ops]
        self._used = [False] * len(nodes)
        self._done: set[int] = set()
        self._depends = _dependencies(nodes, self._is_view, heeds_storage=heeds_storage)
        self._starts = _pattern_starts(self._ops)

    def run(self) -> None:
        """Take group after group until nothing is left."""
        first = 0
        while first < len(self._nodes):
            if self._used[first]:
                first += 1
            elif not self._take_pattern(first):
                self._emit(self._group(first))

    def _emit(self, group: Sequence[int]) -> None:
        for i in group:
            self.made.append(self._nodes[i])
            self._done.add(id(self._nodes[i]))
            self._used[i] = True

    def _matches(self, i: int) -> tuple[str, ...] | None:
        """Return the first pattern that begins at a node and of which nothing is used yet."""
        for pattern in self._starts.get(i, ()):
            if not any(self._used[i : i + len(pattern)]):
                return pattern
        return None

    def _take_pattern(self, first: int) -> bool:
        pattern = self._matches(first)
        if pattern is None:
            return False
        end = first + len(pattern)
        if pattern in EXPERT_PATTERNS:
            last = end if end < len(self._nodes) and self._ops[end] == "scale" else end - 1
            self._keep(first, end, self._nodes[last])
        self._emit(range(first, end))
        return True

    def _keep(self, first: int, end: int, until: Tensor) -> None:
        seen: set[int] = set()
        kept = self.kept.setdefault(id(until), [])
        for node in self._nodes[first:end]:
            for source in node.sources:
                if id(source) not in seen:
                    seen.add(id(source))
                    kept.append(source)
            seen.add(id(node))

    def _group(self, first: int) -> list[int]:
        """Return a node and those behind it that need nothing but what has run, views last."""
        group = [first]
        ahead = range(first + 1, min(first + REACH, len(self._nodes)))
        for i in ahead:
            if self._used[i] or self._is_view[i] or self._matches(i) is not None:
                continue
            if self._may_join(i, first, group):
                group.append(i)
                self._take_partners(i, group)
        if self._ops[group[-1]] != "add":
            for i in ahead:
                if self._used[i] or not self._is_view[i]:
                    continue
                if all(self._used[c] or c in group for c in self._depends[i] if c >= first):
                    group.append(i)
        return group

    def _may_join(self, i: int, first: int, group: list[int]) -> bool:
        for c in self._depends[i]:
            if c < first or self._used[c]:
                continue
            pair = self._ops[c], self._ops[i]
            if c != group[-1] or not (
                (pair in _NEXT and i == c + 1) or (pair in _NEAR and self._is_free_between(c, i))
            ):
                return False
        return True

    def _is_free_between(self, low: int, high: int) -> bool:
        return all(self._used[i] or self._is_view[i] for i in range(low + 1, high))

    def _take_partners(self, i: int, group: list[int]) -> None:
        """Add what the driver computes together with a node that has just joined."""
        op, before = self._ops[i], self._ops[i - 1]
        last = i
        if (before, op) == ("rms_norm", "mul"):
            last = self._take_first(i, group, self._is_rope_of) or i
        if self._ops[last] in {"rope", "rms_norm"}:
            self._take_store(last, group)
        if (before, op) == ("mul_mat_id", "add_id"):
            self._take_first(i, group, self._is_mul_of)
        if (before, op) == ("mul_mat", "add"):
            self._take_first(i, group, self._is_add_of)
        if (before, op) == ("ssm_conv", "add"):
            self._take_first(i, group, self._is_unary_of)
        if op == "unary":
            self._take_first(i, group, self._is_product_of)

    def _take_first(self, i: int, group: list[int], is_partner: Partner) -> int | None:
        for k in range(i + 1, min(i + PARTNER_REACH, len(self._nodes))):
            if is_partner(self._nodes[i], self._nodes[k]):
                group.append(k)
                self._used[k] = True
                return k
        return None

    def _is_rope_of(self, node: Tensor, other: Tensor) -> bool:
        sources = other.sources
        return (
            other.op == "rope" and sources[0] is node and all(source.op == "none" for source in sources[1:3])
        )

    def _is_ready(self, tensor: Tensor) -> bool:
        return tensor.op == "none" or id(tensor) in self._done

    def _is_mul_of(self, node: Tensor, other: Tensor) -> bool:
        return other.op == "mul" and other.sources[0] is node and self._is_ready(other.sources[1])

    def _is_add_of(self, node: Tensor, other: Tensor) -> bool:
        return other.op == "add" and other.sources[0] is node and self._is_ready(other.sources[1])

    def _is_unary_of(self, node: Tensor, other: Tensor) -> bool:
        return other.op == "unary" and other.sources[0] is node

    def _is_product_of(self, node: Tensor, other: Tensor) -> bool:
        if other.op != "mul" or not any(source is node for source in other.sources):
            return False
        left, right = other.sources
        factor = right if left is node else left
        return self._is_ready(factor) and _fuses(node, factor, is_left=left is node)

    def _take_store(self, i: int, group: list[int]) -> None:
        """Add the view and the store into a cache that follow a rotation, where nothing lies between."""
        node, view, store = self._nodes[i], -1, -1
        for k in range(i + 1, min(i + PARTNER_REACH, len(self._nodes))):
            if self._used[k]:
                continue
            other = self._nodes[k]
            if view < 0 and other.op == "view" and other.sources[0] is node:
                view = k
            elif view >= 0 and other.op == "set_rows" and other.sources[0] is self._nodes[view]:
                store = k
                break
        if store < 0 or not self._is_read_only_there(i, view):
            return
        between = (c for c in self._depends_far(store, i) if c != view)
        if any(not self._used[c] and not self._is_view[c] for c in between):
            return
        group += [view, store]
        self._used[view] = self._used[store] = True

    def _is_read_only_there(self, i: int, view: int) -> bool:
        node, shown = self._nodes[i], self._nodes[view]
        if node.is_output or shown.is_output or shown.view_of is not node:
            return False
        return self._uses.get(id(node)) == 1 and self._uses.get(id(shown)) == 1

    def _depends_far(self, i: int, after: int) -> list[int]:
        return [c for c in self._depends[i] if c > after]


def _fuses(node: Tensor, factor: Tensor, *, is_left: bool) -> bool:
    """Return whether the driver computes an activation and a product in one go.

    Source: ggml_vk_can_fuse_unary_mul; activations that it cannot take stand before no product here.
    """
    if factor.type_id != node.type_id or not (_has_whole_rows(factor) and _has_whole_rows(node.sources[0])):
        return False
    small, large = (factor, node) if is_left else (node, factor)
    return all(a and b % a == 0 for a, b in zip(small.ne, large.ne, strict=True))


def _has_whole_rows(tensor: Tensor) -> bool:
    """Return whether rows are whole and all above the second axis is contiguous (ggml_is_contiguous_1)."""
    ne, nb = tensor.ne, tensor.nb
    plane = nb[1] * ne[1]
    return (
        nb[0] == strides(tensor.type_id, ne)[0]
        and (ne[2] == 1 or nb[2] == plane)
        and (ne[3] == 1 or nb[3] == plane * ne[2])
    )


def _pattern_starts(ops: Sequence[str]) -> dict[int, list[tuple[str, ...]]]:
    """Return the patterns that the operators behind each place spell."""
    starts: dict[int, list[tuple[str, ...]]] = {}
    for i, op in enumerate(ops):
        for pattern in _BY_FIRST.get(op, ()):
            if tuple(ops[i : i + len(pattern)]) == pattern:
                starts.setdefault(i, []).append(pattern)
    return starts


_BY_FIRST: dict[str, list[tuple[str, ...]]] = {}
for _pattern in PATTERNS:
    _BY_FIRST.setdefault(_pattern[0], []).append(_pattern)


def _dependencies(
    nodes: Sequence[Tensor], is_view: Sequence[bool], *, heeds_storage: bool
) -> list[list[int]]:
    """Return for each node those shortly before it that have to run first."""
    bases = [id(node.view_of or node) for node in nodes]
    read = [{id(source) for source in node.sources} for node in nodes]
    read_bases = [{id(source.view_of or source) for source in node.sources} for node in nodes]
    found: list[list[int]] = []
    for i, base in enumerate(bases):
        mine, mine_bases, shows = read[i], read_bases[i], is_view[i] or not heeds_storage
        found.append(
            [
                c
                for c in range(max(0, i - REACH - PARTNER_REACH), i)
                if bases[c] == base
                or id(nodes[c]) in mine
                or (not shows and not is_view[c] and (bases[c] in mine_bases or base in read_bases[c]))
            ]
        )
    return found
