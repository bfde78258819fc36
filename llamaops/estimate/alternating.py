"""Layers that carry several versions of each token and change one of them at a time (Gemma 3n).

Source: src/models/gemma3n.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend, attend_shared, project_heads
from llamaops.estimate.building import Building
from llamaops.estimate.graph import F32, Tensor, row_bytes
from llamaops.estimate.per_layer_inputs import inputs_of_layers

VERSIONS, SPARSE_LAYERS = 4, 10
"""Versions of a token, and layers whose activations are cut off: the engine has both built in."""


def alternating_layers(b: Building, x: Tensor) -> Tensor:
    """Return the rows that are wanted of the last layer's merged versions."""
    g, tokens = b.g, b.tokens
    if b.load.build.mixes_inputs:
        g.expand(x)
    inputs = inputs_of_layers(b, x)
    others = VERSIONS - 1
    wanted = _magnitude(b, x)
    repeated = g.repeat(x, b.model.width, tokens, others)
    added = g.mul_mat(b.need("altup_proj.weight"), repeated)
    added = g.like("div", g.mul(added, wanted), _magnitude(b, added))
    x = g.concat(x, added, 2)
    for layer in range(b.model.layers):
        x = _layer(b, x, layer, inputs)
    wanted = _magnitude(b, _slice(b, x))
    back = g.mul_mat(b.need("altup_unembd_proj.weight"), _rest(b, x))
    back = g.like("div", g.mul(back, wanted), _magnitude(b, back))
    cur = _slice(b, x)
    for _ in range(others):
        cur = g.add(cur, _slice(b, back))
    return g.get_rows(g.scale(cur), b.wanted_rows)


def _slice(b: Building, x: Tensor) -> Tensor:
    return b.g.view(x, (x.ne[0], x.ne[1]))


def _rest(b: Building, x: Tensor) -> Tensor:
    width, tokens = x.ne[0], x.ne[1]
    row = row_bytes(F32, width)
    return b.g.view(x, (width, tokens, VERSIONS - 1), (row, row * tokens))


def _magnitude(b: Building, x: Tensor) -> Tensor:
    g = b.g
    return g.like("sqrt", g.sum_rows(g.like("sqr", x)))


def _layer(b: Building, x: Tensor, layer: int, inputs: Tensor) -> Tensor:
    g = b.g
    predictions = _predict(b, x, layer)
    active = _slice(b, predictions)
    cur = b.named_norm(active, layer, "attn_norm")
    low = b.project(b.project(cur, layer, "laurel_l"), layer, "laurel_r")
    low = g.add(b.named_norm(low, layer, "laurel_post_norm"), cur)
    cur = b.named_norm(_attention(b, cur, layer), layer, "post_attention_norm")
    joined = g.scale(g.add(g.add(cur, active), low))
    cur = _feed_forward(b, b.named_norm(joined, layer, "ffn_norm"), layer)
    cur = g.add(b.named_norm(cur, layer, "post_ffw_norm"), joined)
    corrected = _correct(b, predictions, cur, layer)
    first = g.mul(_slice(b, corrected), b.need_in_block(layer, "altup_correct_scale"))
    first = g.unary(b.project(first, layer, "inp_gate"))
    first = g.mul(first, _slice(b, inputs))
    first = b.named_norm(b.project(first, layer, "proj"), layer, "post_norm")
    more = g.add(_rest(b, corrected), first)
    return g.concat(_slice(b, corrected), more, 2)


def _modalities(b: Building, x: Tensor, layer: int) -> Tensor:
    g = b.g
    cur = g.scale(b.named_norm(x, layer, "altup_router_norm"))
    return g.unary(g.mul_mat(b.need_in_block(layer, "altup_router"), cur))


def _predict(b: Building, x: Tensor, layer: int) -> Tensor:
    g = b.g
    modalities = _modalities(b, _slice(b, x), layer)
    factors = b.project(modalities, layer, "altup_predict_coef")
    factors = g.reshape(factors, VERSIONS, VERSIONS, b.tokens)
    turned = g.cont(g.permute(x, 1, 2, 0, 3))
    found = g.mul_mat(turned, factors)
    return g.add(g.cont(g.permute(found, 0, 2, 1, 3)), x)


def _correct(b: Building, predictions: Tensor, active: Tensor, layer: int) -> Tensor:
    g, tokens = b.g, b.tokens
    modalities = _modalities(b, active, layer)
    news = g.sub(active, _slice(b, predictions))
    factors = g.scale(b.project(modalities, layer, "altup_correct_coef"))
    factors = g.cont(g.transpose(factors), 1, tokens, VERSIONS)
    news = g.repeat(news, b.model.width, tokens, VERSIONS)
    return g.add(g.mul(news, factors), predictions)


def _feed_forward(b: Building, x: Tensor, layer: int) -> Tensor:
    g = b.g
    up, gate = b.project(x, layer, "ffn_up"), b.project(x, layer, "ffn_gate")
    if layer < SPARSE_LAYERS:
        mean = Tensor("mean", F32, (1, *gate.ne[1:]), (gate,))
        spread = g.scale(g.sum_rows(g.like("sqr", g.sub(gate, mean))))
        cut = g.add(mean, g.scale(g.like("sqrt", spread)))
        gate = g.unary(g.sub(gate, cut))
    return b.project(g.mul(up, g.unary(gate)), layer, "ffn_down")


def _attention(b: Building, cur: Tensor, layer: int) -> Tensor:
    g, model, tokens = b.g, b.model, b.tokens
    width, heads, kv_heads = model.key_length(), model.heads(layer), model.kv_heads(layer)
    owners = b.arch.cache_owners
    if layer >= owners:
        q = g.reshape(b.project(cur, layer, "attn_q"), width, heads, tokens)
        q = g.rope(b.named_norm(q, layer, "attn_q_norm"), b.positions)
        return attend_shared(b, layer, q, owners - (2 if b.layout.windowed[layer] else 1))
    q, k, v = project_heads(b, cur, layer, (width, heads), (width, kv_heads), in_heads=True)
    q = g.rope(b.named_norm(q, layer, "attn_q_norm"), b.positions)
    k = g.rope(b.named_norm(k, layer, "attn_k_norm"), b.positions)
    return attend(b, layer, q, k, g.like("rms_norm", v), output="attn_output")
