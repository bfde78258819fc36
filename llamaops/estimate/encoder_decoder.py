"""Models of two halves, an encoder and a decoder that reads its result, and such encoders alone (T5).

Source: src/models/t5.cpp of llama.cpp; the graph that is reserved is that of the decoder.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend, project_heads, scores
from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import DENSE, dense
from llamaops.estimate.graph import F16, F32, I32, Tensor


def decoder_layers(b: Building, cur: Tensor) -> Tensor:
    """Return the decoder's layers, each with attention to itself and to the encoder's result."""
    b.prefix = "dec."
    last = b.model.number("decoder_block_count", b.model.layers) - 1
    buckets = b.shared_input(I32, (b.full_cache.cells, b.tokens), "buckets")
    for layer in range(last + 1):
        cur = b.g.add(_attention(b, b.named_norm(cur, layer, "attn_norm"), layer, buckets), cur)
        crossed = _cross_attention(b, b.named_norm(cur, layer, "cross_attn_norm"), layer)
        cur = _rest(b, crossed, cur, layer, wants=layer == last)
    return cur


def encoder_layers(b: Building, cur: Tensor) -> Tensor:
    """Return the encoder's layers."""
    b.prefix = "enc."
    buckets = b.shared_input(I32, (b.tokens, b.tokens), "buckets")
    for layer in range(b.model.layers):
        mixed = _attention(b, b.named_norm(cur, layer, "attn_norm"), layer, buckets)
        cur = _rest(b, mixed, cur, layer, wants=layer == b.model.layers - 1)
    return cur


def _rest(b: Building, cur: Tensor, x: Tensor, layer: int, *, wants: bool) -> Tensor:
    g = b.g
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    total = g.add(cur, x)
    return g.add(dense(b, b.named_norm(total, layer, "ffn_norm"), layer, DENSE, b.arch.ffn), total)


def _attention(b: Building, cur: Tensor, layer: int, buckets: Tensor) -> Tensor:
    g, heads, kv_heads = b.g, b.model.heads(layer), b.model.kv_heads(layer)
    width = b.model.value_length()
    q, k, v = project_heads(b, cur, layer, (width, heads), (width, kv_heads), in_heads=True)
    bias = b.in_block(layer, "attn_rel_b") or b.need_in_block(0, "attn_rel_b")
    bias = g.get_rows(bias, g.reshape(buckets, buckets.elements))
    bias = g.cont(g.permute(g.reshape(bias, bias.ne[0], *buckets.ne[:2]), 2, 0, 1, 3))
    return attend(b, layer, q, k, v, output="attn_o", kq_bias=bias)


def _cross_attention(b: Building, cur: Tensor, layer: int) -> Tensor:
    g, model = b.g, b.model
    heads, kv_heads, width = model.heads(layer), model.kv_heads(layer), model.value_length()
    encoded = b.shared_input(F32, (model.width, model.trained_context), "encoded")
    tokens = encoded.ne[1]
    q = g.reshape(b.project(cur, layer, "cross_attn_q"), width, heads, b.tokens)
    k, v = (
        g.reshape(b.project(encoded, layer, f"cross_attn_{name}"), width, kv_heads, tokens) for name in "kv"
    )
    for tensor in (q, k, v):
        g.expand(tensor)
    mask = b.shared_input(F16 if b.load.flash_attention else F32, (tokens, b.tokens), "cross_mask")
    return b.project(scores(b, q, k, v, mask, layer), layer, "cross_attn_o")
