"""Layers that take a weighted sum of earlier layers' inputs instead of the last result (Kimi K3).

Source: src/models/kimi-k3.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend_compressed
from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import feed_forward
from llamaops.estimate.graph import F32, Tensor
from llamaops.estimate.linear_mixers import kimi_delta


def banked_layers(b: Building, x: Tensor) -> Tensor:
    """Return the rows that are wanted of the last layer's result, mixed with what was kept."""
    g, period = b.g, b.model.number("attn_res.block_size")
    bank: Tensor | None = None
    for layer in range(b.model.layers):
        cur = _mixed(b, x, bank, b.in_block(layer, "attn_res_score"))
        keeps = period > 0 and layer % period == 0
        if keeps:
            kept = g.reshape(x, b.model.width, 1, b.tokens)
            bank = kept if bank is None else g.concat(bank, kept, 1)
        cur = b.named_norm(cur, layer, "attn_norm")
        g.expand(cur)
        mix = kimi_delta if b.layout.recurrent[layer] else attend_compressed
        cur = mix(b, cur, layer)
        x = cur if keeps else g.add(x, cur)
        cur = _mixed(b, x, bank, b.in_block(layer, "ffn_res_score"))
        x = g.add(x, feed_forward(b, b.named_norm(cur, layer, "ffn_norm"), layer))
    return g.get_rows(_mixed(b, x, bank, b.weight("output_res_score.weight")), b.wanted_rows)


def _mixed(b: Building, x: Tensor, bank: Tensor | None, weight: Tensor | None) -> Tensor:
    """Return a sum of what was kept and the last result, each by its score."""
    if bank is None or weight is None:
        return x
    g, tokens, count = b.g, b.tokens, bank.ne[1]
    earlier = g.sum_rows(g.mul(g.like("rms_norm", bank), weight))
    last = g.sum_rows(g.mul(g.like("rms_norm", x), weight))
    shares = g.soft_max(g.concat(g.reshape(earlier, count, tokens), last, 0))
    of_earlier = g.cont(g.view(shares, (count, tokens), (shares.nb[1],)))
    of_last = g.cont(g.view(shares, (1, tokens), (shares.nb[1],)))
    total = Tensor("weighted_sum", F32, (bank.ne[0], tokens), (bank, of_earlier))
    return g.add(total, g.mul(x, of_last))
