"""Blocks with a linear form of attention: Kimi's delta attention and lightning attention.

Source: src/models/kimi-linear.cpp and minimax-01.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.graph import F32, Tensor, row_bytes
from llamaops.estimate.recurrent_mixers import conv_state, delta_step, normed_length, scan_state


def kimi_delta(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a block of Kimi's delta attention: each element of a key has a decay of its own."""
    g, n, tokens = b.g, b.sequences, b.tokens
    size, heads, each = b.model.number("kda.head_dim"), b.model.most_heads, tokens // n
    state = conv_state(b, layer)
    taken = b.take_state(state)
    inputs = _inputs(b, cur, layer, size * heads)
    q, k, v = (_convolved(b, x, state, taken, layer, name) for x, name in zip(inputs, "qkv", strict=True))
    q, k, v = (g.reshape(t, size, heads, each, n) for t in (q, k, v))
    gate = g.reshape(_decay(b, cur, layer, (size, heads, tokens)), size, heads, each, n)
    beta = g.unary(g.reshape(b.project(cur, layer, "ssm_beta"), 1, heads, each, n))
    scans = scan_state(b, layer)
    memory = g.reshape(b.take_state(scans), size, size, heads, n)
    q, k = (normed_length(b, t) for t in (q, k))
    output = g.cont(delta_step(b, q, k, v, gate, beta, memory, scans))
    output = b.named_norm(g.reshape(output, size, heads, tokens), layer, "ssm_norm")
    if b.arch.recurrent != "bounded_delta":
        cur = g.reshape(g.reshape(cur, cur.ne[0], each, n), cur.ne[0], tokens)
    last = _low_rank(b, cur, layer, "ssm_g")
    gated = g.mul(output, g.unary(g.reshape(last, size, heads, tokens)))
    return b.project(g.cont(gated, size * heads, tokens), layer, "attn_output")


def _low_rank(b: Building, cur: Tensor, layer: int, name: str) -> Tensor:
    """Project with two narrow matrices, or with the one that there is."""
    if b.in_block(layer, f"{name}_a") is None:
        return b.project(cur, layer, name)
    cur = b.project(cur, layer, f"{name}_a")
    return cur if b.in_block(layer, f"{name}_b") is None else b.project(cur, layer, f"{name}_b")


def _decay(b: Building, cur: Tensor, layer: int, shape: tuple[int, int, int]) -> Tensor:
    """Return how fast each element is forgotten, bounded where the architecture has a bound."""
    g = b.g
    cur = g.add(_low_rank(b, cur, layer, "ssm_f"), b.need_in_block(layer, "ssm_dt", "bias"))
    factor = g.reshape(b.need(f"blk.{layer}.ssm_a"), 1, shape[1], 1)
    if b.model.real("kda.gate_lower_bound"):
        return g.scale(g.unary(g.mul(g.reshape(cur, *shape), factor)))
    return g.mul(g.reshape(g.unary(cur), *shape), factor)


def _inputs(b: Building, cur: Tensor, layer: int, inner: int) -> list[Tensor]:
    """Return what queries, keys and values are convolved from: three matrices' results or parts of one's."""
    if b.in_block(layer, "attn_qkv") is None:
        return [b.project(cur, layer, f"attn_{name}") for name in "qkv"]
    fused = b.project(cur, layer, "attn_qkv")
    return [b.g.cont(b.g.view(fused, (inner, b.tokens), (fused.nb[1],))) for _ in range(3)]


def _convolved(b: Building, x: Tensor, state: Tensor, taken: Tensor, layer: int, name: str) -> Tensor:
    """Convolve queries, keys or values, and store the last columns."""
    g, n = b.g, b.sequences
    kernel = b.need_in_block(layer, f"ssm_conv1d_{name}")
    width, inner = kernel.ne[0], x.ne[0]
    kept = width - 1
    nb = (row_bytes(F32, kept), taken.nb[1])
    x = g.reshape(x, inner, b.tokens // n, n)
    padded = g.concat(g.view(taken, (kept, inner, n), nb), g.transpose(x), 0)
    last = g.view(padded, (kept, inner, n), padded.nb[1:3])
    g.expand(g.copy(last, g.view(state, (kept, inner, n), (row_bytes(F32, kept), state.nb[1]))))
    out = g.ssm_conv(padded, g.reshape(kernel, width, inner))
    return g.unary(g.reshape(out, inner, b.tokens))


def lightning(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a block of lightning attention: exact within the batch, a running sum before it."""
    g, n, heads = b.g, b.sequences, b.model.most_heads
    size, each = b.model.value_length(), b.tokens // n
    g.expand(b.take_state(conv_state(b, layer)))
    x = g.reshape(cur, cur.ne[0], each, 1, n)
    fused = g.reshape(g.unary(b.project(x, layer, "attn_qkv")), size * 3, heads, each, n)
    q, k, v = (g.view(fused, (size, heads, each, n), fused.nb[1:4]) for _ in range(3))
    scans = scan_state(b, layer)
    before = g.reshape(b.take_state(scans), size, size, heads, n)
    q_decay, k_decay, decay = (
        g.unary(g.scale(b.shared_input(F32, ne, name)))
        for name, ne in (
            ("q_decay", (1, heads, each, n)), ("k_decay", (1, heads, each, n)),
            ("decay", (each, each, heads, n)),
        )
    )  # fmt: skip
    earlier = g.mul_mat(before, g.permute(g.mul(q, q_decay), 0, 2, 1, 3))
    within = g.mul(g.mul_mat(g.permute(k, 0, 2, 1, 3), g.permute(q, 0, 2, 1, 3)), decay)
    turned = g.cont(g.permute(v, 1, 2, 0, 3))
    out = g.add(earlier, g.mul_mat(turned, within))
    g.expand(out)
    rate = g.scale(b.shared_input(F32, (heads,), "slopes"))
    faded = g.mul(before, g.reshape(g.unary(g.scale(rate)), 1, 1, heads))
    keys = g.cont(g.permute(g.mul(k, k_decay), 1, 2, 0, 3))
    new = g.add(faded, g.mul_mat(keys, turned))
    g.expand(g.copy(new, g.view(scans, (scans.ne[0] * n,))))
    out = g.cont(g.permute(out, 0, 2, 1, 3))
    out = b.named_norm(g.reshape(out, size * heads, each, 1, n), layer, "attn_norm_2")
    out = g.mul(g.unary(b.project(x, layer, "attn_gate")), out)
    out = b.project(out, layer, "attn_output")
    return g.reshape(out, out.ne[0], b.tokens)
