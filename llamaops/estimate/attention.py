"""Attention as the engine builds it: projections, cache, scores.

Source: build_qkv, build_attn and build_attn_mha in src/llama-graph.cpp; cpy_k and cpy_v in
src/llama-kv-cache.cpp; src/models/deepseek2.cpp and qwen35.cpp for their own forms.
"""

from __future__ import annotations

from llamaops.estimate.building import Building, CacheView
from llamaops.estimate.graph import F16, F32, Tensor, row_bytes


def attend_heads(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend with queries, keys and values in heads."""
    g, model, arch = b.g, b.model, b.arch
    windowed = b.layout.windowed[layer]
    width = model.rotated if arch.head_width == "rotated" else model.value_length(windowed=windowed)
    heads, kv_heads = model.heads(layer), model.kv_heads(layer)
    in_rows = arch.head_norm == "rows"
    key = model.key_length(windowed=windowed) if arch.head_width == "own" else width
    q, k, v = project_heads(
        b, cur, layer, (key, heads), (key, kv_heads), v=(width, kv_heads), in_heads=not in_rows
    )
    if in_rows:
        q, k = b.named_norm(q, layer, "attn_q_norm"), b.named_norm(k, layer, "attn_k_norm")
        q = g.reshape(q, width, heads, b.tokens)
        k = g.reshape(k, width, kv_heads, b.tokens)
        v = g.reshape(v, width, kv_heads, b.tokens)
    has_norms = b.in_block(layer, "attn_q_norm") is not None
    if arch.head_norm == "joined" and has_norms:
        q, k = _joined_norm(b, q, layer, "attn_q_norm"), _joined_norm(b, k, layer, "attn_k_norm")
    if arch.head_norm == "heads" and has_norms:
        q = b.named_norm(q, layer, "attn_q_norm", arch.head_norm_kind)
    ropes, factors = does_rope(b, layer), b.rotation_factors(layer)
    if ropes:
        q = g.rope(q, b.positions, factors)
    if arch.head_norm == "heads" and b.in_block(layer, "attn_k_norm") is not None:
        k = b.named_norm(k, layer, "attn_k_norm", arch.head_norm_kind)
    if ropes:
        k = g.rope(k, b.positions, factors)
    if arch.head_norm == "behind_rope" and has_norms:
        q, k = b.named_norm(q, layer, "attn_q_norm"), b.named_norm(k, layer, "attn_k_norm")
    if arch.bare_head_norm and ropes and b.model.uses_head_norm:
        q, k = g.like("rms_norm", q), g.like("rms_norm", k)
    if b.attention_scale is not None and (not arch.scales_attention or not ropes):
        q = g.mul(q, b.attention_scale)
    if arch.scales_query:
        q = g.scale(q)
    if not arch.gates_result:
        cur = attend(b, layer, q, k, v, output="attn_output")
        scales = arch.scales_result and b.model.real("attention.value_scale") not in {0.0, 1.0}
        return g.scale(cur) if scales else cur
    attended = attend(b, layer, q, k, v, output="")
    return b.project(_gated_result(b, attended, cur, layer), layer, "attn_output")


def _gated_result(b: Building, attended: Tensor, cur: Tensor, layer: int) -> Tensor:
    """Gate the result of attention, element by element or head by head."""
    g, heads = b.g, b.model.heads(layer)
    gate = b.project(cur, layer, "attn_gate")
    if gate.ne[0] == attended.ne[0]:
        return g.mul(attended, g.unary(gate))
    by_head = g.reshape(attended, attended.ne[0] // heads, heads, b.tokens)
    if b.arch.attention == "mla":
        return g.cont(g.mul(by_head, g.unary(g.reshape(gate, 1, heads, b.tokens))), *attended.ne)
    return g.reshape(g.mul(by_head, g.reshape(g.unary(gate), 1, heads, b.tokens)), *attended.ne)


def _joined_norm(b: Building, heads: Tensor, layer: int, name: str) -> Tensor:
    """Norm all heads of a token together."""
    g = b.g
    joined = g.reshape(heads, heads.ne[0] * heads.ne[1], heads.ne[2])
    return g.reshape(b.named_norm(joined, layer, name), *heads.ne[:3])


def does_rope(b: Building, layer: int) -> bool:
    """Return whether a layer rotates by position."""
    rope = b.arch.rope
    if b.arch.rope_blocks:
        return b.model.layers == b.arch.rope_blocks
    pattern = b.model.value("attention.rope_pattern")
    if isinstance(pattern, tuple):
        return bool(pattern[layer]) if layer < len(pattern) else True
    if rope == "windowed_or_all":
        return b.layout.windowed[layer] or not b.has_windows
    if rope == "windowed_or_dense" and layer < b.model.number("leading_dense_block_count"):
        return True
    if rope in {"windowed", "windowed_or_dense"}:
        return b.layout.windowed[layer]
    if rope == "step":
        step = b.model.number("attention.no_rope_layer_step", 4)
        return not step or (layer + 1) % step != 0
    if rope == "switch":
        return bool(b.model.value("rope.scaling.finetuned", default=True))
    return rope == "all"


def project_heads(
    b: Building,
    cur: Tensor,
    layer: int,
    q: tuple[int, int],
    kv: tuple[int, int],
    *,
    in_heads: bool,
    v: tuple[int, int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Make queries, keys and values: from one fused matrix or from three; pairs are width and heads."""
    v = v or kv
    g, tokens = b.g, b.tokens
    if b.in_block(layer, "attn_qkv") is None:
        parts = []
        clamps = in_heads and b.model.real("attention.clamp_kqv") > 0
        for name, (width, heads) in (("attn_q", q), ("attn_k", kv), ("attn_v", v)):
            part = b.project(cur, layer, name)
            if clamps:
                part = g.like("clamp", part)
            parts.append((part, width, heads))
        if not in_heads:
            return parts[0][0], parts[1][0], parts[2][0]
        return tuple(g.reshape(part, w, h, tokens) for part, w, h in parts)  # type: ignore[return-value]
    fused = b.project(cur, layer, "attn_qkv")
    if in_heads and b.model.real("attention.clamp_kqv") > 0:
        fused = g.like("clamp", fused)
    views = []
    for width, heads in (q, kv, v):
        if in_heads:
            views.append(g.view(fused, (width, heads, tokens), (row_bytes(F32, width), fused.nb[1])))
        else:
            views.append(g.cont(g.view(fused, (width * heads, tokens), (fused.nb[1],))))
    return views[0], views[1], views[2]


def attend_shared(b: Building, layer: int, q: Tensor, owner: int) -> Tensor:
    """Attend with the keys and values that another layer stored, and project the result."""
    g = b.g
    windowed = b.layout.windowed[layer]
    cache = b.window_cache if windowed else b.full_cache
    if cache.rotation_k is not None:
        q = b.rotate(q, cache.rotation_k)
    g.expand(q)
    cur = _read(b, layer, owner, cache, q, None, windowed=windowed)
    return b.project(cur, layer, "attn_output")


def attend(
    b: Building, layer: int, q: Tensor, k: Tensor, v: Tensor, *, output: str, kq_bias: Tensor | None = None
) -> Tensor:
    """Store keys and values, attend, and project the result."""
    if b.arch.is_encoder:
        cur = _attend_without_cache(b, layer, q, k, v, kq_bias)
    else:
        cur = _attend_with_cache(b, layer, q, k, v, kq_bias)
    if b.in_block(layer, "attn_sub_norm") is not None:
        cur = b.named_norm(cur, layer, "attn_sub_norm")
    if output and b.in_block(layer, output) is not None:
        cur = b.project(cur, layer, output)
    return cur


def _attend_without_cache(
    b: Building, layer: int, q: Tensor, k: Tensor, v: Tensor, kq_bias: Tensor | None
) -> Tensor:
    for tensor in (q, k, v):
        b.g.expand(tensor)
    mask = b.encoder_mask(windowed=b.layout.windowed[layer])
    if b.load.build.pads_encoders:
        more = mask.ne[0] - b.tokens
        k, v = b.g.pad(k, 0, 0, more), b.g.pad(v, 0, 0, more)
        kq_bias = b.g.pad(kq_bias, more) if kq_bias is not None and more else kq_bias
    return scores(b, q, k, v, mask, layer, kq_bias=kq_bias)


def _attend_with_cache(
    b: Building, layer: int, q: Tensor, k: Tensor, v: Tensor, kq_bias: Tensor | None
) -> Tensor:
    g = b.g
    windowed = b.layout.windowed[layer]
    cache = b.window_cache if windowed else b.full_cache
    if cache.rotation_k is not None:
        q, k = b.rotate(q, cache.rotation_k), b.rotate(k, cache.rotation_k)
    if cache.rotation_v is not None:
        v = b.rotate(v, cache.rotation_v)
    # The engine lists values before keys where there is only one cache.
    for tensor in (q, k, v) if b.has_windows else (q, v, k):
        g.expand(tensor)
    keys, values = cache_tensors(b, layer, cache, windowed=windowed)
    g.expand(store_keys(b, cache.ids_k, keys, k))
    g.expand(store_values(b, cache, values, v))
    return _read(b, layer, layer, cache, q, kq_bias, windowed=windowed)


def _read(
    b: Building,
    layer: int,
    owner: int,
    cache: CacheView,
    q: Tensor,
    kq_bias: Tensor | None,
    *,
    windowed: bool,
) -> Tensor:
    keys, values = cache_tensors(b, owner, cache, windowed=windowed)
    kv_heads = b.model.kv_heads(owner)
    key_view = view_keys(b, cache, keys, b.model.key_length(windowed=windowed), kv_heads)
    value_view = view_values(b, cache, values, b.model.value_length(windowed=windowed), kv_heads)
    cur = scores(b, q, key_view, value_view, cache.mask, layer, kq_bias=kq_bias)
    if cache.rotation_v is not None:
        cur = b.rotate(cur, cache.rotation_v)
    return cur


def cache_tensors(b: Building, layer: int, cache: CacheView, *, windowed: bool) -> tuple[Tensor, Tensor]:
    """Return the K and V caches of a layer."""
    model, load = b.model, b.load
    heads = model.kv_heads(layer)
    value_width = model.value_length(windowed=windowed) * heads
    if cache.is_transposed:
        value_width = b.widest_value
    shape_k = (model.key_length(windowed=windowed) * heads, cache.cells, load.streams)
    keys = b.lasting(load.key_type, shape_k, f"cache_k.{layer}")
    values = b.lasting(load.value_type, (value_width, cache.cells, load.streams), f"cache_v.{layer}")
    return keys, values


def store_keys(b: Building, ids: Tensor, keys: Tensor, k: Tensor) -> Tensor:
    """Write new keys into the cache, to the places that an input names."""
    g = b.g
    rows = g.view(k, (k.ne[0] * k.ne[1], k.ne[2]), (k.nb[2],))
    if b.load.streams > 1:
        keys = g.reshape(keys, keys.ne[0], keys.ne[1] * keys.ne[2])
    return g.set_rows(keys, rows, ids)


def store_values(b: Building, cache: CacheView, values: Tensor, v: Tensor) -> Tensor:
    """Write new values into the cache, element by element where it is transposed."""
    g = b.g
    width, tokens = v.ne[0] * v.ne[1], v.ne[2]
    if not cache.is_transposed:
        rows = g.view(v, (width, tokens), (v.nb[2],))
        if b.load.streams > 1:
            values = g.reshape(values, values.ne[0], values.ne[1] * values.ne[2])
        return g.set_rows(values, rows, cache.ids_v)
    rows = g.reshape(v, width, tokens) if row_bytes(v.type_id, width) == v.nb[2] else g.cont(v, width, tokens)
    if width < values.ne[0]:
        rows = g.pad(rows, values.ne[0] - width)
    return g.set_rows(g.reshape(values, 1, values.elements), g.reshape(rows, 1, rows.elements), cache.ids_v)


def view_keys(b: Building, cache: CacheView, keys: Tensor, width: int, heads: int) -> Tensor:
    """Return the keys of the cache in heads."""
    row = row_bytes(keys.type_id, keys.ne[0])
    nb = (row_bytes(keys.type_id, width), row, row * keys.ne[1])
    return b.g.view(keys, (width, heads, cache.cells, b.load.streams), nb)


def view_values(b: Building, cache: CacheView, values: Tensor, width: int, heads: int) -> Tensor:
    """Return the values of the cache in heads."""
    type_id, cells = values.type_id, values.ne[1]
    if not cache.is_transposed:
        row = row_bytes(type_id, values.ne[0])
        nb = (row_bytes(type_id, width), row, row * cells)
        return b.g.view(values, (width, heads, cache.cells, b.load.streams), nb)
    nb = (
        row_bytes(type_id, cells * width),
        row_bytes(type_id, cells),
        row_bytes(type_id, cells * values.ne[0]),
    )
    return b.g.view(values, (cache.cells, heads, width, b.load.streams), nb)


def scores(
    b: Building,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    layer: int,
    *,
    decompress: Tensor | None = None,
    kq_bias: Tensor | None = None,
) -> Tensor:
    """Attend: with flash attention in one operator, else with the scores in memory."""
    g = b.g
    is_transposed = v.nb[1] > v.nb[2]
    streams = k.ne[3]
    rows = q.ne[2] // streams
    q = g.view(q, (q.ne[0], q.ne[1], rows, streams), (q.nb[1], q.nb[2], q.nb[2] * rows))
    q, k, v = (g.permute(t, 0, 2, 1, 3) for t in (q, k, v))
    sinks = b.in_block(layer, "attn_sinks")
    if b.load.flash_attention and kq_bias is None:
        cur = _flash(b, q, k, v, mask, sinks, layer, is_transposed=is_transposed, decompress=decompress)
    else:
        cur = _slow(b, q, k, v, mask, sinks, kq_bias, is_transposed=is_transposed, decompress=decompress)
    g.expand(cur)
    return cur


def _flash(  # noqa: PLR0913 - the operands of the operator
    b: Building,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    sinks: Tensor | None,
    layer: int,
    *,
    is_transposed: bool,
    decompress: Tensor | None,
) -> Tensor:
    g = b.g
    if is_transposed:
        v = g.transpose(v)
    if k.type_id == F32:
        k = g.cast(k, F16)
    if v.type_id == F32:
        v = g.cast(v, F16)
    cur = g.flash_attention(q, k, v, mask, sinks)
    cur.name = str(layer)
    if decompress is not None:
        cur = g.mul_mat(decompress, g.permute(cur, 0, 2, 1, 3))
        cur = g.cont(g.permute(cur, 0, 2, 1, 3))
    return g.reshape(cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])


def _slow(  # noqa: PLR0913 - the operands of the operator
    b: Building,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    sinks: Tensor | None,
    kq_bias: Tensor | None,
    *,
    is_transposed: bool,
    decompress: Tensor | None,
) -> Tensor:
    g = b.g
    kq = g.mul_mat(k, q)
    if b.arch.caps_scores and b.model.real("attn_logit_softcapping", 50.0):
        kq = g.scale(g.unary(g.scale(kq)))
    if kq_bias is not None:
        kq = g.add(kq, kq_bias)
    kq = g.soft_max(kq, mask, sinks)
    if not is_transposed:
        v = g.cont(g.transpose(v))
    kqv = g.mul_mat(v, kq)
    if decompress is not None:
        kqv = g.mul_mat(decompress, kqv)
    cur = g.permute(kqv, 0, 2, 1, 3)
    return g.cont(cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])


def attend_compressed(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend with keys and values cached in their compressed form (MLA).

    Source: src/models/deepseek2.cpp.
    """
    g, model, tokens = b.g, b.model, b.tokens
    if b.in_block(layer, "attn_q") is None:
        low = b.named_norm(b.project(cur, layer, "attn_q_a"), layer, "attn_q_a_norm")
        q = b.project(low, layer, "attn_q_b")
    else:
        q = b.project(cur, layer, "attn_q")
    if model.is_mla:
        q = g.reshape(q, model.number("attention.key_length_mla"), model.heads(layer), tokens)
        return attend_keys_only(b, layer, *absorb(b, cur, q, layer), gated_by=cur)
    heads, key, value = model.heads(layer), model.key_length(), model.value_length()
    compressed, k_rotated = _compressed(b, cur, layer)
    plain = key - model.rotated
    kv = g.mul_mat(b.need_in_block(layer, "attn_kv_b"), compressed)
    part = row_bytes(F32, plain + value)
    k_plain = g.view(kv, (plain, heads, tokens), (part, part * heads))
    v = g.cont(g.view(kv, (value, heads, tokens), (part, part * heads)))
    q = g.reshape(q, key, heads, tokens)
    q = g.rope(q, b.positions) if does_rope(b, layer) else q
    k = g.concat(k_plain, g.repeat(k_rotated, model.rotated, heads, tokens), 0)
    return attend(b, layer, _scaled(b, q), k, v, output="attn_output")


def _compressed(b: Building, cur: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    """Return the compressed keys and values, and the part of the keys that is rotated."""
    g, tokens = b.g, b.tokens
    rotated, rank = b.model.rotated, b.model.number("attention.kv_lora_rank")
    joint = g.mul_mat(b.need_in_block(layer, "attn_kv_a_mqa"), cur)
    row = row_bytes(F32, rank + rotated)
    k_rotated = g.view(joint, (rotated, 1, tokens), (row, row))
    if does_rope(b, layer):
        k_rotated = g.rope(k_rotated, b.positions)
    return b.named_norm(g.view(joint, (rank, tokens), (row,)), layer, "attn_kv_a_norm"), k_rotated


def _scaled(b: Building, q: Tensor) -> Tensor:
    return q if b.attention_scale is None else b.g.mul(q, b.attention_scale)


def absorb(b: Building, cur: Tensor, q: Tensor, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries that have taken in what keys are decompressed with, and keys and values compressed."""
    g, model, tokens = b.g, b.model, b.tokens
    key, rotated = model.number("attention.key_length_mla"), model.rotated
    heads, plain = model.heads(layer), key - rotated
    compressed, k_rotated = _compressed(b, cur, layer)
    nb = row_bytes(F32, key), row_bytes(F32, key * heads)
    q_plain, q_rotated = (g.view(q, (width, heads, tokens), nb) for width in (plain, rotated))
    if does_rope(b, layer):
        q_rotated = g.rope(q_rotated, b.positions)
    absorbed = g.mul_mat(b.need_in_block(layer, "attn_k_b"), g.permute(q_plain, 0, 2, 1, 3))
    q = g.concat(g.permute(absorbed, 0, 2, 1, 3), q_rotated, 0)
    compressed = g.reshape(compressed, compressed.ne[0], 1, tokens)
    return _scaled(b, q), g.concat(compressed, k_rotated, 0), compressed


def attend_keys_only(
    b: Building,
    layer: int,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    gated_by: Tensor | None = None,
) -> Tensor:
    """Attend where the cache of keys also serves as values."""
    g, cache = b.g, b.full_cache
    for tensor in (q, v, k):
        g.expand(tensor)
    keys = b.lasting(b.load.key_type, (k.ne[0], cache.cells, b.load.streams), f"cache_k.{layer}")
    g.expand(store_keys(b, cache.ids_k, keys, k))
    key_view = view_keys(b, cache, keys, k.ne[0], 1)
    value_view = g.view(key_view, (v.ne[0], *key_view.ne[1:]), key_view.nb[1:])
    decompress = b.need_in_block(layer, "attn_v_b")
    cur = scores(b, q, key_view, value_view, mask or cache.mask, layer, decompress=decompress)
    has_gate = b.arch.gates_result and b.in_block(layer, "attn_gate") is not None
    if has_gate and gated_by is not None:
        cur = _gated_result(b, cur, gated_by, layer)
    return b.project(cur, layer, "attn_output")


def attend_gated(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend where the projection of queries also makes a gate for the result.

    Source: src/models/qwen35.cpp and qwen3next.cpp.
    """
    g, model, tokens = b.g, b.model, b.tokens
    width, heads, kv_heads = model.value_length(), model.heads(layer), model.kv_heads(layer)
    both, k, v = project_heads(b, cur, layer, (width * 2, heads), (width, kv_heads), in_heads=False)
    nb = (row_bytes(F32, width * 2), row_bytes(F32, width * 2 * heads))
    if b.arch.gate_is_late:
        both = g.reshape(both, width * 2, heads, tokens)
    q = b.named_norm(g.view(both, (width, heads, tokens), nb), layer, "attn_q_norm")
    k = b.named_norm(g.reshape(k, width, kv_heads, tokens), layer, "attn_k_norm")
    gate = g.view(both, (width, heads, tokens), nb)
    if not b.arch.gate_is_late:
        gate = g.cont(gate, width * heads, tokens)
    v = g.reshape(v, width, kv_heads, tokens)
    q, k = g.rope(q, b.positions), g.rope(k, b.positions)
    cur = attend(b, layer, q, k, v, output="")
    if b.arch.gate_is_late:
        gate = g.cont(gate, width * heads, tokens)
    cur = g.mul(cur, g.unary(gate))
    return b.project(cur, layer, "attn_output")
