"""RWKV 6 and 7 blocks.

Source: src/models/rwkv6.cpp, rwkv6-base.cpp, rwkv7.cpp and rwkv7-base.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.graph import F32, Tensor
from llamaops.estimate.recurrent_mixers import conv_state, scan_state


def rwkv_layers(b: Building, cur: Tensor) -> Tensor:
    """Return all blocks of an RWKV model."""
    is_older = b.arch.recurrent == "rwkv6"
    rescale = b.model.number("rescale_every_n_layers") if is_older else 0
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
        previous = shifted(b, attention_shift, normed)
        if is_older:
            mixed = time_mix_6(b, normed, previous, layer)
        else:
            mixed = time_mix_7(b, normed, previous, first, layer)
        ffn_in = g.add(mixed, x)
        ffn_normed = b.named_norm(ffn_in, layer, "attn_norm_2")
        previous = shifted(b, ffn_shift, ffn_normed)
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
        cur = g.add(_channel_mix(b, ffn_normed, previous, layer, is_older=is_older), ffn_in)
        if rescale and (layer + 1) % rescale == 0:
            cur = g.scale(cur)
    return cur


def _channel_mix(b: Building, cur: Tensor, previous: Tensor, layer: int, *, is_older: bool) -> Tensor:
    g = b.g
    sx = g.sub(previous, cur)
    xk = g.add(g.mul(sx, b.need_in_block(layer, "channel_mix_lerp_k")), cur)
    if not is_older:
        k = g.like("sqr", g.unary(b.project(xk, layer, "channel_mix_key")))
        return b.project(k, layer, "channel_mix_value")
    xr = g.add(g.mul(sx, b.need_in_block(layer, "channel_mix_lerp_r")), cur)
    r = g.unary(b.project(xr, layer, "channel_mix_receptance"))
    k = g.like("sqr", g.unary(b.project(xk, layer, "channel_mix_key")))
    return g.mul(r, b.project(k, layer, "channel_mix_value"))


def time_mix_6(b: Building, cur: Tensor, previous: Tensor, layer: int) -> Tensor:
    """Return what RWKV 6 has in place of attention; without a first key it is that of QRWKV."""
    g, width, tokens, n = b.g, b.model.width, b.tokens, b.sequences
    size = b.model.number("wkv.head_size")
    heads = width // size
    sx = g.reshape(g.sub(previous, cur), width, tokens)
    cur = g.reshape(cur, width, tokens)
    mixed = g.add(g.mul(sx, b.need_in_block(layer, "time_mix_lerp_x")), cur)
    down, up = b.need_in_block(layer, "time_mix_w1"), b.need_in_block(layer, "time_mix_w2")
    mixed = g.reshape(g.unary(g.mul_mat(down, mixed)), down.ne[1] // 5, 1, 5, tokens)
    mixed = g.cont(g.permute(mixed, 0, 1, 3, 2))
    mixed = g.mul_mat(g.reshape(up, up.ne[0], up.ne[1], 1, 5), mixed)
    fused = b.in_block(layer, "time_mix_lerp_fused")
    if fused is not None:
        sx, cur = g.reshape(sx, width, 1, tokens), g.reshape(cur, width, 1, tokens)
        mixed = g.add(g.mul(g.add(mixed, fused), sx), cur)
        xw, xk, xv, xr, xg = (g.view(mixed, (width, tokens), (mixed.nb[1],)) for _ in range(5))
    else:
        xw, xk, xv, xr, xg = (
            g.add(
                g.mul(
                    g.add(
                        g.view(mixed, (width, tokens), (mixed.nb[1],)),
                        b.need_in_block(layer, f"time_mix_lerp_{name}"),
                    ),
                    sx,
                ),
                cur,
            )
            for name in "wkvrg"
        )
    r, k, v = (
        b.project(x, layer, f"time_mix_{name}")
        for x, name in ((xr, "receptance"), (xk, "key"), (xv, "value"))
    )
    gate = g.unary(b.project(xg, layer, "time_mix_gate"))
    kv_heads = b.model.kv_heads(layer)
    if kv_heads not in {0, heads}:
        k, v = (
            g.repeat(g.reshape(t, size, 1, kv_heads, tokens), size, heads // kv_heads, kv_heads, tokens)
            for t in (k, v)
        )
    k, v, r = (g.reshape(t, size, heads, tokens) for t in (k, v, r))
    low = g.unary(g.mul_mat(b.need_in_block(layer, "time_mix_decay_w1"), xw))
    w = g.mul_mat(b.need_in_block(layer, "time_mix_decay_w2"), low)
    w = g.add(w, b.need_in_block(layer, "time_mix_decay"))
    w = g.reshape(g.unary(g.unary(g.unary(w))), size, heads, tokens)
    first = b.in_block(layer, "time_mix_first")
    if first is None:
        k = g.sub(k, g.mul(k, w))
    scans = scan_state(b, layer)
    state = b.take_state(scans)
    sources = (k, v, r, w, state) if first is None else (k, v, r, first, w, state)
    op = "gated_linear_attn" if first is None else "rwkv_wkv6"
    result = Tensor(op, F32, (width, tokens + size * n), sources)
    cur = g.view(result, (width * tokens,))
    new = g.view(result, (width * size * n,))
    g.expand(g.copy(new, g.view(scans, (scans.ne[0] * n,))))
    if first is not None:
        cur = g.like("norm", g.reshape(cur, size, heads, tokens))
        cur = g.mul(g.reshape(cur, width, tokens), b.need_in_block(layer, "time_mix_ln"))
        cur = g.add(cur, b.need_in_block(layer, "time_mix_ln", "bias"))
    else:
        cur = g.reshape(cur, width, tokens)
    cur = b.project(g.mul(cur, gate), layer, "time_mix_output")
    return g.reshape(cur, width, tokens // n, n)


def shifted(b: Building, shift: Tensor, normed: Tensor) -> Tensor:
    """Return each token's predecessor, the first from the state."""
    g, width, n = b.g, b.model.width, b.sequences
    each = b.tokens // n
    return g.concat(shift, g.view(normed, (width, each - 1, n), normed.nb[1:3]), 1)


def _low_rank(b: Building, x: Tensor, layer: int, name: str, *, activates: bool = False) -> Tensor:
    g = b.g
    down = g.mul_mat(b.need_in_block(layer, f"time_mix_{name}1"), x)
    return g.mul_mat(b.need_in_block(layer, f"time_mix_{name}2"), g.unary(down) if activates else down)


def time_mix_7(b: Building, cur: Tensor, previous: Tensor, first: list[Tensor], layer: int) -> Tensor:
    """Return what RWKV 7 has in place of attention."""
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
