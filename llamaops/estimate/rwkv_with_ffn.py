"""RWKV blocks with the feed-forward part and the norms of a transformer (QRWKV, ARWKV).

Source: src/models/rwkv6qwen2.cpp and arwkv7.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import DENSE, dense
from llamaops.estimate.graph import Tensor
from llamaops.estimate.recurrent_mixers import conv_state
from llamaops.estimate.rwkv import shifted, time_mix_6, time_mix_7


def rwkv_with_ffn_layers(b: Building, cur: Tensor) -> Tensor:
    """Return all blocks."""
    g, width, n, tokens = b.g, b.model.width, b.sequences, b.tokens
    first: list[Tensor] = []
    for layer in range(b.model.layers):
        x = g.reshape(cur, width, tokens // n, n)
        state = conv_state(b, layer)
        shift = g.reshape(b.take_state(state), width, 1, n)
        normed = b.named_norm(x, layer, "attn_norm")
        previous = shifted(b, shift, normed)
        if b.arch.recurrent == "qrwkv6":
            mixed = time_mix_6(b, normed, previous, layer)
        else:
            mixed = time_mix_7(b, normed, previous, first, layer)
        last = g.view(normed, (width, 1, n), normed.nb[1:3])
        g.expand(g.copy(g.view(last, (width * n,)), g.view(state, (state.ne[0] * n,))))
        total = g.reshape(g.add(mixed, x), width, tokens)
        if layer == b.model.layers - 1:
            total = g.get_rows(total, b.wanted_rows)
        cur = b.named_norm(total, layer, "ffn_norm")
        cur = g.add(dense(b, cur, layer, DENSE, b.arch.ffn), total)
    return cur
