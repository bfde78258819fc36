"""Two stacks of layers that take turns (HRM-Text).

Source: src/models/hrm-text.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend_heads
from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import feed_forward
from llamaops.estimate.graph import Tensor


def stacked_layers(b: Building, high: Tensor) -> Tensor:
    """Return the rows that are wanted of the high stack's last result, which is normed."""
    rounds, passes = b.model.number("hrm.h_cycles"), b.model.number("hrm.l_cycles")
    size = b.model.number("hrm.layers_per_stack")
    if rounds * (passes + 1) * size != b.model.layers:
        raise ValueError("the stacks do not make up the layers")
    low = b.need("hrm.z_l_init")
    for turn in range(rounds):
        first = turn * (passes + 1)
        for step in range(passes):
            low = _stack(b, b.g.add(high, low), (first + step) * size, size)
        high = _stack(b, b.g.add(high, low), (first + passes) * size, size)
    return b.g.get_rows(high, b.wanted_rows)


def _stack(b: Building, x: Tensor, first: int, size: int) -> Tensor:
    g = b.g
    for layer in range(first, first + size):
        x = g.add(attend_heads(b, b.norm(x, None), layer), x)
        x = g.add(feed_forward(b, b.norm(x, None), layer), x)
    return b.norm(x, None)
