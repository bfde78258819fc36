"""RWKV 7 blocks.

Source: src/models/rwkv7.cpp and rwkv7-base.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.graph import F32, Tensor
from llamaops.estimate.recurrent_mixers import conv_state, scan_state


def rwkv7_layers(b: Building, cur: Tensor) -> Tensor:
    """Return all blocks of an RWKV 7 model."""
    g, width, n = b.g, b.model.width, b.sequences
    each = b.tokens // n
    first: list[Tensor] = []
    for layer in range(b.model.layers):
        x = g.reshape(cur, width, each, n)
        state = conv_state(b, layer)
        shifts = g.reshape(b.take_state(state), width, 2, n)
        attention_shift = g.view(shifts, (width, 1, n), shifts.nb[1:3])
        ffn_shift = g.view(shifts, (width, 1, n), shifts.nb[1:3])
        normed = b.named_norm(x, layer, "attn_norm")
        previous = _shifted(b, attention_shift, normed)
        mixed = _time_mix(b, normed, previous, first, layer)
        ffn_in = g.add(mixed, x)
        ffn_normed = b.named_norm(ffn_in, layer, "attn_norm_2")
        previous = _shifted(b, ffn_shift, ffn_normed)
        new = g.concat(
            g.view(normed, (width, 1, n), normed.nb[1:3]),
            g.view(ffn_normed, (width, 1, n), ffn_normed.nb[1:3]),
            1,
        )
        g.expand(g.copy(g.view(new, (width * n * 2,)), g.view(state, (state.ne[0] * n,))))
        parts = [g.reshape(t, width, b.tokens) for t in (ffn_in, ffn_normed, previous)]
        if layer == b.model.layers - 1:
            parts = [g.get_rows(t, b.wanted_rows) for t in parts]
        ffn_in, ffn_normed, previous = parts
        sx = g.sub(previous, ffn_normed)
        xk = g.add(g.mul(sx, b.need_in_block(layer, "channel_mix_lerp_k")), ffn_normed)
        k = g.like("sqr", g.unary(b.project(xk, layer, "channel_mix_key")))
        cur = g.add(b.project(k, layer, "channel_mix_value"), ffn_in)
    return cur


def _shifted(b: Building, shift: Tensor, normed: Tensor) -> Tensor:
    g, width, n = b.g, b.model.width, b.sequences
    each = b.tokens // n
    return g.concat(shift, g.view(normed, (width, each - 1, n), normed.nb[1:3]), 1)


def _low_rank(b: Building, x: Tensor, layer: int, name: str, *, activates: bool = False) -> Tensor:
    g = b.g
    down = g.mul_mat(b.need_in_block(layer, f"time_mix_{name}1"), x)
    return g.mul_mat(b.need_in_block(layer, f"time_mix_{name}2"), g.unary(down) if activates else down)


def _time_mix(b: Building, cur: Tensor, previous: Tensor, first: list[Tensor], layer: int) -> Tensor:
    g, width, tokens, n = b.g, b.model.width, b.tokens, b.sequences
    size = b.model.number("wkv.head_size")
    heads, each = width // size, b.tokens // n
    has_gate = b.in_block(layer, "time_mix_g1") is not None and b.in_block(layer, "time_mix_g2") is not None
    sx = g.sub(previous, cur)
    sx = g.repeat(sx, width, each, n, 6 if has_gate else 5)
    xxx = g.add(g.mul(sx, b.need_in_block(layer, "time_mix_lerp_fused")), cur)
    xr, xw, xk, xv, xa, xg = (g.view(xxx, (width, tokens), (xxx.nb[1],)) for _ in range(6))
    r = b.project(xr, layer, "time_mix_receptance")
    w = g.add(_low_rank(b, xw, layer, "w", activates=True), b.need_in_block(layer, "time_mix_w0"))
    w = g.unary(g.scale(g.unary(w)))
    k, v = b.project(xk, layer, "time_mix_key"), b.project(xv, layer, "time_mix_value")
    if not first:
        first.append(v)
    else:
        blend = g.unary(g.add(_low_rank(b, xv, layer, "v"), b.need_in_block(layer, "time_mix_v0")))
        v = g.add(v, g.mul(g.sub(first[0], v), blend))
    gate = None
    if has_gate:
        gate = _low_rank(b, xg, layer, "g", activates=True)
    a = g.unary(g.add(_low_rank(b, xa, layer, "a"), b.need_in_block(layer, "time_mix_a0")))
    kk = g.reshape(g.mul(k, b.need_in_block(layer, "time_mix_k_k")), size, heads, tokens)
    kk = g.like("l2_norm", kk)
    ka = g.mul(k, b.need_in_block(layer, "time_mix_k_a"))
    k = g.add(k, g.sub(g.mul(a, ka), ka))
    r, w, k, v, a = (g.reshape(t, size, heads, tokens) for t in (r, w, k, v, a))
    scans = scan_state(b, layer)
    state = b.take_state(scans)
    sources = (r, w, k, v, g.unary(kk), g.mul(kk, a), state)
    result = Tensor("rwkv_wkv7", F32, (width, tokens + size * n), sources)
    cur = g.view(result, (width * tokens,))
    new = g.view(result, (width * size * n,))
    g.expand(g.copy(new, g.view(scans, (scans.ne[0] * n,))))
    norm, bias = b.in_block(layer, "time_mix_ln"), b.in_block(layer, "time_mix_ln", "bias")
    if norm is not None and bias is not None:
        cur = g.like("norm", g.reshape(cur, width // heads, heads, tokens))
        cur = g.add(g.mul(g.reshape(cur, width, tokens), norm), bias)
    else:
        cur = g.reshape(cur, width, tokens)
    weighted = g.mul(g.mul(k, r), g.reshape(b.need_in_block(layer, "time_mix_r_k"), size, heads))
    cur = g.add(cur, g.reshape(g.mul(v, g.sum_rows(weighted)), width, tokens))
    if gate is not None:
        cur = g.mul(cur, gate)
    cur = b.project(cur, layer, "time_mix_output")
    return g.reshape(cur, width, each, n)
