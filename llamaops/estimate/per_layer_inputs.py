"""Layers with an input of their own for each token, and caches that several layers share (Gemma 4).

Source: src/models/gemma4.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import attend, attend_shared, project_heads
from llamaops.estimate.building import PER_LAYER_TABLE, Building
from llamaops.estimate.feed_forward import DENSE, dense, experts
from llamaops.estimate.graph import I32, Graph, Tensor


def per_layer_layers(b: Building, x: Tensor) -> Tensor:
    """Return the result of all layers."""
    has_inputs = b.weight(PER_LAYER_TABLE) is not None
    inputs = inputs_of_layers(b, x) if has_inputs else None
    for layer in range(b.model.layers):
        x = _layer(b, x, layer, inputs)
    return x


def inputs_of_layers(b: Building, x: Tensor) -> Tensor:
    """Return the further input of all layers: from a table of tokens, and projected from the input."""
    g, tokens = b.g, b.tokens
    table = b.need(PER_LAYER_TABLE)
    shape = (table.ne[0] // b.model.layers, b.model.layers, tokens)
    if b.early_rows is None:
        rows = g.get_rows(table, Graph.input(I32, (tokens,), "per_layer_tokens"))
        rows = g.scale(g.reshape(rows, *shape))
        g.expand(rows)
    else:
        rows = g.reshape(g.scale(b.early_rows), *shape)
    projected = g.scale(g.mul_mat(b.need("per_layer_model_proj.weight"), x))
    projected = b.norm(g.reshape(projected, *shape), b.weight("per_layer_proj_norm.weight"))
    return g.cont(g.permute(g.scale(g.add(projected, rows)), 0, 2, 1, 3))


def _layer(b: Building, x: Tensor, layer: int, inputs: Tensor | None) -> Tensor:
    g = b.g
    wants = layer == b.model.layers - 1 and not b.gathers_late
    cur = _attention(b, b.named_norm(x, layer, "attn_norm"), layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    attended = g.add(b.named_norm(cur, layer, "post_attention_norm"), x)
    cur = b.named_norm(_feed_forward(b, attended, layer), layer, "post_ffw_norm")
    cur = g.add(cur, attended)
    if inputs is not None:
        before = cur
        gate = g.unary(b.project(cur, layer, "inp_gate"))
        own = g.view(inputs, (inputs.ne[0], inputs.ne[1]))
        own = g.get_rows(own, b.wanted_rows) if wants else own
        cur = b.project(g.mul(gate, own), layer, "proj")
        cur = g.add(before, b.named_norm(cur, layer, "post_norm"))
    scale = b.in_block(layer, "layer_output_scale")
    return cur if scale is None else g.mul(cur, scale)


def _attention(b: Building, cur: Tensor, layer: int) -> Tensor:
    g, model, tokens = b.g, b.model, b.tokens
    windowed = b.layout.windowed[layer]
    width, heads, kv_heads = model.key_length(windowed=windowed), model.heads(layer), model.kv_heads(layer)
    owner = _owner(b, layer)
    has_values = b.in_block(layer, "attn_v") is not None
    if b.in_block(layer, "attn_qkv") is not None:
        q, k, v = project_heads(b, cur, layer, (width, heads), (width, kv_heads), in_heads=False)
    else:
        q = b.project(cur, layer, "attn_q")
        k = b.project(cur, layer, "attn_k") if owner == layer else q
        v = b.project(cur, layer, "attn_v") if owner == layer and has_values else k
    q = b.named_norm(g.reshape(q, width, heads, tokens), layer, "attn_q_norm")
    factors = None if windowed else b.rotation_factors(layer)
    q = g.rope(q, b.positions, factors)
    if owner != layer:
        return attend_shared(b, layer, q, owner)
    k = b.named_norm(g.reshape(k, width, kv_heads, tokens), layer, "attn_k_norm")
    v = g.like("rms_norm", g.reshape(v, width, kv_heads, tokens))
    return attend(b, layer, q, g.rope(k, b.positions, factors), v, output="attn_output")


def _owner(b: Building, layer: int) -> int:
    """Return the layer whose cache a layer reads: its own, or the last one of its kind that has one."""
    owners = b.model.layers - b.model.number("attention.shared_kv_layers")
    if layer < owners:
        return layer
    return owners - (2 if b.layout.windowed[layer] else 1)


def _feed_forward(b: Building, x: Tensor, layer: int) -> Tensor:
    g = b.g
    own = dense(b, b.named_norm(x, layer, "ffn_norm"), layer, DENSE, "gelu")
    if b.in_block(layer, "ffn_gate_inp") is None:
        return own
    own = b.named_norm(own, layer, "post_ffw_norm_1")
    normed = b.named_norm(x, layer, "pre_ffw_norm_2")
    routed = g.scale(g.like("rms_norm", x))
    routed = g.mul(routed, b.need_in_block(layer, "ffn_gate_inp", "scale"))
    logits = g.mul_mat(b.need_in_block(layer, "ffn_gate_inp"), routed)
    chosen = experts(b, normed, layer, logits=logits)
    return g.add(own, b.named_norm(chosen, layer, "post_ffw_norm_2"))
