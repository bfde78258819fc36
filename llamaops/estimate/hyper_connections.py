"""Layers that read a mix of several streams and write to all of them (Hunyuan 4).

Source: src/models/hy-v4.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend_compressed
from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import feed_forward
from llamaops.estimate.graph import F32, Tensor
from llamaops.estimate.sparse_attention import attend_indexed


def hyper_layers(b: Building, x: Tensor) -> Tensor:
    """Return the rows that are wanted of the last layer's streams, mixed into one."""
    g, width, streams = b.g, b.model.width, b.model.number("hyper_connection.count")
    x = g.repeat(g.reshape(x, width, 1, b.tokens), width, streams, b.tokens)
    attend = attend_indexed if b.model.number("attention.indexer.top_k") else attend_compressed
    for layer in range(b.model.layers):
        cur, share = _read(b, x, layer, "hc_attn")
        cur = attend(b, b.named_norm(cur, layer, "attn_norm"), layer)
        x = _written(b, cur, x, share)
        cur, share = _read(b, x, layer, "hc_ffn")
        cur = feed_forward(b, b.named_norm(cur, layer, "ffn_norm"), layer)
        x = _written(b, cur, x, share)
    rows = g.get_rows(g.reshape(x, width * streams, b.tokens), b.wanted_rows)
    x = g.reshape(rows, width, streams, b.outputs)
    shares = g.mul(mixed(b, x, b.need("output_hc_fn.weight")), b.need("output_hc_scale.weight"))
    shares = g.scale(g.unary(g.add(shares, b.need("output_hc_base.weight"))))
    return _reduced(b, x, shares)


def mixed(b: Building, x: Tensor, matrix: Tensor) -> Tensor:
    """Return scores of all streams together."""
    g = b.g
    return g.mul_mat(matrix, g.like("rms_norm", g.reshape(x, x.ne[0] * x.ne[1], x.ne[2])))


def _read(b: Building, x: Tensor, layer: int, name: str) -> tuple[Tensor, Tensor]:
    """Return what a part of a layer takes, and how much of its result goes to each stream."""
    g, streams, tokens = b.g, x.ne[1], x.ne[2]
    mixes = mixed(b, x, b.need_in_block(layer, f"{name}_fn"))
    scale, base = b.need_in_block(layer, f"{name}_scale"), b.need_in_block(layer, f"{name}_base")
    taken, given = (
        g.unary(
            g.add(
                g.mul(g.view(mixes, (streams, tokens), (mixes.nb[1],)), g.view(scale, (1,))),
                g.view(base, (streams,)),
            )
        )
        for _ in range(2)
    )
    return _reduced(b, x, g.scale(taken)), g.scale(g.scale(given))


def _reduced(b: Building, x: Tensor, shares: Tensor) -> Tensor:
    """Return the sum of all streams, each by its share."""
    g, width, tokens = b.g, x.ne[0], x.ne[2]
    x = g.cast(x, F32)
    total: Tensor | None = None
    for _ in range(x.ne[1]):
        one = g.mul(g.view(x, (width, tokens), (x.nb[2],)), g.view(shares, (1, tokens), (shares.nb[1],)))
        total = one if total is None else g.add(total, one)
    if total is None:
        raise ValueError("no streams")
    return g.cast(total, F32)


def _written(b: Building, cur: Tensor, x: Tensor, shares: Tensor) -> Tensor:
    """Return the streams with a result added to each, by its share."""
    g, width, streams, tokens = b.g, x.ne[0], x.ne[1], x.ne[2]
    cur, shares, x = (g.cast(t, F32) for t in (cur, shares, x))
    total: Tensor | None = None
    for _ in range(streams):
        own = g.view(x, (width, tokens), (x.nb[2],))
        one = g.add(own, g.mul(cur, g.view(shares, (1, tokens), (shares.nb[1],))))
        one = g.reshape(one, width, 1, tokens)
        total = one if total is None else g.concat(total, one, 1)
    if total is None:
        raise ValueError("no streams")
    return g.cast(total, F32)
