"""Layers of several streams, of which some attend to the best groups of keys only (Qwen 4).

Source: src/models/qwen4exp.cpp and llama_memory_hybrid_idx of llama.cpp.
"""

from __future__ import annotations

from typing import NamedTuple

from llamaops.estimate.attention import (
    cache_tensors,
    scores,
    store_keys,
    store_values,
    view_keys,
    view_values,
)
from llamaops.estimate.building import PER_LAYER_TABLE, Building
from llamaops.estimate.feed_forward import feed_forward
from llamaops.estimate.graph import F16, F32, I32, I64, Tensor, row_bytes
from llamaops.estimate.plan import has_indexer
from llamaops.estimate.recurrent import history_width
from llamaops.estimate.recurrent_mixers import delta_net
from llamaops.estimate.sparse_attention import mask_of_best

GROUPS = 64
"""Multiple to which recent builds pad the groups of keys that an indexer sees."""


def pooled_layers(b: Building, x: Tensor) -> Tensor:
    """Return the rows that are wanted of the last layer's streams, mixed into one."""
    g, width, streams = b.g, b.model.width, b.model.number("hyper_connection.count")
    pieces = _pieces(b)
    x = g.repeat(g.reshape(x, width, 1, b.tokens), width, streams, b.tokens)
    for layer in range(b.model.layers):
        if pieces is not None and b.in_block(layer, "ple_key") is not None:
            x = _with_pieces(b, x, pieces, layer)
        cur, share = _mixed(b, x, f"blk.{layer}.hc_attn", is_last=False)
        g.expand(cur)
        cur = delta_net(b, cur, layer) if b.layout.recurrent[layer] else _attend(b, cur, layer)
        if layer == b.model.layers - 1 and share is not None:
            cur, share = g.get_rows(cur, b.wanted_rows), g.get_rows(share, b.wanted_rows)
            rows = g.get_rows(g.reshape(x, width * streams, b.tokens), b.wanted_rows)
            x = g.reshape(rows, width, streams, b.outputs)
        x = _written(b, cur, x, share)
        cur, share = _mixed(b, x, f"blk.{layer}.hc_ffn", is_last=False)
        x = _written(b, feed_forward(b, cur, layer), x, share)
    if b.load.build.mixes_inputs:
        hidden = g.reshape(x, width * streams, b.outputs)
        hidden.is_output = True
        g.expand(hidden)
    return _mixed(b, x, "output_hc", is_last=True)[0]


def _streams_norm(b: Building, x: Tensor, name: str) -> Tensor:
    """Norm each stream, with one weight for all of them."""
    g = b.g
    weight = b.model.by_name[name]
    held = b.lasting(weight.type_id, (x.ne[0], x.ne[1]), name)
    return g.mul(g.like("rms_norm", x), held)


def _mixed(b: Building, x: Tensor, name: str, *, is_last: bool) -> tuple[Tensor, Tensor | None]:
    """Return the streams mixed into one, and how much of a result goes to each."""
    g = b.g
    width, streams, tokens = x.ne[:3]
    normed = g.reshape(_streams_norm(b, x, f"{name}_norm.weight"), width * streams, tokens)
    low = g.unary(g.scale(g.mul_mat(b.need(f"{name}_down.weight"), normed)))
    gate = g.mul_mat(b.need(f"{name}_up.weight"), low)
    if not is_last:
        parts = (g.reshape(t, width, streams, tokens) for t in (normed, gate))
        cur = Tensor("hc_pre", F32, (width, tokens), tuple(parts))
        return cur, g.mul_mat(b.need(f"{name}_inject.weight"), normed)
    gated = g.reshape(g.mul(normed, g.unary(gate)), width, streams, tokens)
    total = g.cont(g.view(gated, (width, tokens), (gated.nb[2],)))
    for _ in range(streams - 1):
        total = g.add(total, g.view(gated, (width, tokens), (gated.nb[2],)))
    return g.scale(total), None


def _written(b: Building, cur: Tensor, x: Tensor, share: Tensor | None) -> Tensor:
    g = b.g
    if share is None:
        return x
    return Tensor("hc_post", F32, x.ne, (cur, x, g.scale(g.unary(g.scale(share)))))


def _attend(b: Building, cur: Tensor, layer: int) -> Tensor:
    g, model, tokens, cache = b.g, b.model, b.tokens, b.full_cache
    width, heads, kv_heads = model.value_length(), model.heads(layer), model.kv_heads(layer)
    chooses = has_indexer(model, b.arch, layer)
    chosen = _chosen(b, cur, layer) if chooses and b.load.build.mixes_inputs else None
    best = _best_keys(b, cur, layer) if chooses and chosen is None else None
    both = b.project(cur, layer, "attn_q")
    nb = (row_bytes(F32, width * 2), row_bytes(F32, width * 2 * heads))
    q = b.named_norm(g.view(both, (width, heads, tokens), nb), layer, "attn_q_norm")
    k, v = (g.reshape(b.project(cur, layer, f"attn_{x}"), width, kv_heads, tokens) for x in "kv")
    k = b.named_norm(k, layer, "attn_k_norm")
    gate = g.cont(g.view(both, (width, heads, tokens), nb), width * heads, tokens)
    q, k = g.rope(q, b.positions), g.rope(k, b.positions)
    if cache.rotation_k is not None:
        q, k = b.rotate(q, cache.rotation_k), b.rotate(k, cache.rotation_k)
    if cache.rotation_v is not None:
        v = b.rotate(v, cache.rotation_v)
    for tensor in (q, v, k):
        g.expand(tensor)
    keys, values = cache_tensors(b, layer, cache, windowed=False)
    g.expand(store_keys(b, cache.ids_k, keys, k))
    g.expand(store_values(b, cache, values, v))
    mask = cache.mask if best is None else mask_of_best(b, cache.mask, best)
    mask = mask if chosen is None else _opened(b, mask, chosen)
    k, v = view_keys(b, cache, keys, width, kv_heads), view_values(b, cache, values, width, kv_heads)
    out = scores(b, q, k, v, mask, layer)
    if cache.rotation_v is not None:
        out = b.rotate(out, cache.rotation_v)
    return b.project(g.mul(out, g.unary(gate)), layer, "attn_output")


def _best_keys(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return which keys are in the groups that the indexer finds best."""
    g, model, tokens, streams, cache = b.g, b.model, b.tokens, b.load.streams, b.full_cache
    size, heads = model.number("attention.indexer.key_length"), model.number("attention.indexer.head_count")
    ratio, each, cells = model.at("attention.compress_ratios", layer), tokens // streams, cache.cells
    groups = -(-cells // ratio)
    held = b.lasting(b.load.key_type, (size, cells, streams), f"cache_i.{layer}")
    new = g.reshape(b.project(cur, layer, "indexer.k_proj"), size, 1, tokens)
    g.expand(store_keys(b, b.shared_input(I64, (tokens,), f"{ratio}.ids"), held, new))
    every = view_keys(b, cache, held, size, 1)
    every = g.view(every, (size, cells, streams), every.nb[2:4])
    members = g.get_rows(every, b.shared_input(I32, (ratio * groups, streams), f"{ratio}.members"))
    members = g.reshape(members, size, ratio, groups, streams)
    pooled: Tensor | None = None
    for _ in range(ratio):
        one = g.cont(g.view(members, (size, groups, streams), members.nb[2:4]))
        pooled = one if pooled is None else g.add(pooled, one)
    if pooled is None:
        raise ValueError("no members")
    pooled = b.named_norm(g.reshape(g.scale(pooled), size, groups * streams, 1), layer, "indexer.k_norm")
    places = b.shared_input(I32, (4 * groups * streams,), f"{ratio}.places")
    pooled = g.rope(g.reshape(pooled, size, 1, groups * streams), places)
    pooled = g.reshape(pooled, size, groups, streams)
    q = g.reshape(b.project(cur, layer, "indexer.q_proj"), size, heads, tokens)
    q = g.rope(b.named_norm(q, layer, "indexer.q_norm"), b.positions)
    found = g.mul_mat(pooled, g.reshape(q, size, heads * each, streams))
    found = g.unary(g.reshape(found, groups, heads, each, streams))
    total: Tensor | None = None
    for _ in range(heads):
        one = g.view(found, (groups, each, streams), found.nb[2:4])
        total = g.cont(one) if total is None else g.add(total, one)
    if total is None:
        raise ValueError("no heads")
    total = g.add(total, b.shared_input(F32, (groups, each, streams), f"{ratio}.seen"))
    of_cells = b.shared_input(I32, (cells, streams), f"{ratio}.of_cells")
    spread = g.get_rows(g.cont(g.permute(total, 1, 0, 2, 3)), of_cells)
    spread = g.cont(g.permute(spread, 1, 0, 2, 3))
    mask = cache.mask if cache.mask.type_id == F32 else g.cast(cache.mask, F32)
    spread = g.add(spread, g.reshape(mask, cells, each, streams))
    used = min(cells, model.number("attention.indexer.top_k") + ratio - 1)
    best = g.cont(Tensor("top_k", I32, (used, each, streams), (spread,)))
    return g.reshape(best, used, each, 1, streams)


class Chosen(NamedTuple):
    """What the indexer of recent builds found."""

    keys: Tensor
    groups: Tensor
    scores: Tensor
    last: Tensor
    ratio: int


def _chosen(b: Building, cur: Tensor, layer: int) -> Chosen:
    """Return the keys of the best groups; recent builds keep the groups' own keys beside those of tokens.

    Source: the graph that 0.7.0 (b11669) reserves.
    """
    g, model, tokens, cache = b.g, b.model, b.tokens, b.full_cache
    size, heads = model.number("attention.indexer.key_length"), model.number("attention.indexer.head_count")
    ratio, cells = model.at("attention.compress_ratios", layer), cache.cells * b.load.streams
    groups = b.load.slots * -(-cache.cells // ratio)
    seen = (groups // GROUPS + 1) * GROUPS
    held = b.lasting(b.load.key_type, (2 * size, cache.cells, b.load.streams), f"cache_i.{layer}")
    new = b.project(cur, layer, "indexer.k_proj")
    new = g.concat(new, g.like("fill", Tensor("none", F32, (size, tokens))), 0)
    ids = b.shared_input(I64, (tokens,), f"{ratio}.new_ids")
    g.expand(store_keys(b, ids, held, g.reshape(new, 2 * size, 1, tokens)))
    members = b.shared_input(I32, (ratio, groups), f"{ratio}.members")
    found = g.get_rows(g.view(held, (size, cells), (held.nb[1],)), g.reshape(members, ratio * groups))
    found = g.reshape(found, size, ratio, groups)
    one = g.view(found, (size, groups), (found.nb[2],))
    pooled = g.cont(one)
    for _ in range(ratio - 1):
        pooled = g.add(pooled, g.view(found, (size, groups), (found.nb[2],)))
    pooled = b.named_norm(g.scale(pooled), layer, "indexer.k_norm")
    places = b.shared_input(I32, (4 * groups,), f"{ratio}.places")
    pooled = g.reshape(g.rope(g.reshape(pooled, size, 1, groups), places), size, groups)
    beside = g.view(held, (size, cells), (held.nb[1],))
    g.expand(g.set_rows(beside, pooled, b.shared_input(I64, (groups,), f"{ratio}.ids")))
    q = g.reshape(b.project(cur, layer, "indexer.q_proj"), size, heads, tokens)
    q = g.rope(b.named_norm(q, layer, "indexer.q_norm"), b.positions)
    k = g.get_rows(beside, b.shared_input(I32, (seen,), f"{ratio}.groups"))
    weights = g.like("fill", Tensor("none", F32, (heads, tokens)))
    mask = b.shared_input(F16, (seen, tokens), f"{ratio}.seen")
    sources = q, g.reshape(k, size, 1, seen), weights, mask
    marks = Tensor("lightning_indexer", F32, (seen, tokens), sources)
    used = min(seen, model.number("attention.indexer.top_k") // ratio)
    best = Tensor("top_k", I32, (used, tokens), (marks,))
    of_groups = b.shared_input(I32, (ratio, seen), f"{ratio}.of_groups")
    keys = g.reshape(g.get_rows(of_groups, g.reshape(best, used * tokens)), ratio * used, tokens)
    last = b.shared_input(I32, (ratio - 1, tokens), f"{ratio}.last")
    keys = g.concat(keys, last, 0)
    g.expand(keys)
    return Chosen(keys, best, marks, last, ratio)


def _opened(b: Building, mask: Tensor, chosen: Chosen) -> Tensor:
    """Return the mask of attention, open only where a key was chosen and is there."""
    g, tokens, kind = b.g, b.tokens, mask.type_id
    width, used, seen = chosen.keys.ne[0], chosen.groups.ne[0], chosen.scores.ne[0]
    opened = _row(b, kind, width)
    marks = g.get_rows(g.reshape(chosen.scores, 1, seen, tokens), chosen.groups)
    marks = g.repeat(g.like("clamp", g.scale(marks)), chosen.ratio, used, tokens)
    last = g.like("clamp", g.scale(g.cast(chosen.last, F32)))
    there = g.concat(g.reshape(marks, chosen.ratio * used, tokens), last, 0)
    beyond = g.scale(g.like("cumsum", g.like("fill", there)))
    places = g.add(g.mul(g.sub(g.cast(chosen.keys, F32), beyond), there), beyond)
    places = g.reshape(g.cast(places, I32), width, tokens)
    closed = _row(b, kind, mask.ne[0] + width)
    written = g.set_rows(closed, opened, places)
    row = row_bytes(kind, closed.ne[1])
    return g.add(g.view(written, mask.ne, (row, row * mask.ne[1], row * mask.ne[1])), mask)


def _row(b: Building, kind: int, width: int) -> Tensor:
    """Return one value for each key and token, each in a row of its own."""
    g = b.g
    row = g.repeat(g.like("fill", Tensor("none", kind, (width,))), width, b.tokens)
    return g.reshape(row, 1, width, b.tokens)


def _pieces(b: Building) -> Tensor | None:
    """Return the embeddings of each token with those before it, None where the model has none."""
    g, model = b.g, b.model
    if not model.has(PER_LAYER_TABLE):
        return None
    rows = b.early_rows or g.get_rows(b.need(PER_LAYER_TABLE), b.per_layer_ids)
    found = g.reshape(rows, rows.elements // b.tokens, b.tokens)
    g.expand(found)
    return found


def _with_pieces(b: Building, x: Tensor, pieces: Tensor, layer: int) -> Tensor:
    """Add to the streams what the pieces say, convolved along the tokens."""
    g, model, n = b.g, b.model, b.sequences
    width, streams, tokens = x.ne[:3]
    wide, each = width * streams, b.tokens // n
    kernel, apart = model.number("ple.conv_kernel"), model.number("ple.ngram_size")
    kept = (kernel - 1) * apart
    name = f"blk.{layer}.ple_norm"
    key, value = b.project(pieces, layer, "ple_key"), b.project(pieces, layer, "ple_value")
    key = _streams_norm(b, g.reshape(key, width, streams, tokens), f"{name}_key.weight")
    query = _streams_norm(b, g.reshape(x, width, streams, tokens), f"{name}_query.weight")
    score = g.scale(g.sum_rows(g.mul(key, query)))
    size = g.like("sqrt", g.like("clamp", g.unary(score)))
    gate = g.unary(g.mul(g.unary(score), size))
    value = g.repeat(g.reshape(value, width, 1, tokens), width, streams, tokens)
    gated = g.mul(value, gate)
    flat = g.reshape(g.reshape(gated, wide, tokens), width, streams, tokens)
    normed = g.reshape(_streams_norm(b, flat, f"{name}_conv.weight"), wide, tokens)
    state = b.state_bytes_rows(layer, "p", history_width(model))
    past = g.reshape(b.take_state(state), kept, wide, n)
    padded = g.concat(past, g.transpose(g.reshape(normed, wide, each, n)), 0)
    last = g.cont(g.view(padded, (kept, wide, n), padded.nb[1:3]))
    g.expand(g.copy(last, g.view(state, (kept * wide, n), (state.nb[1],))))
    weights = b.need_in_block(layer, "ple_conv1d")
    total: Tensor | None = None
    for _ in range(kernel):
        moved = g.cont(g.transpose(g.view(padded, (each, wide, n), padded.nb[1:3])))
        weight = g.reshape(g.cont(g.view(weights, (1, wide), (weights.nb[1],))), wide)
        weight = weight if weight.type_id == F32 else g.cast(weight, F32)
        one = g.mul(moved, weight)
        total = one if total is None else g.add(total, one)
    if total is None:
        raise ValueError("no kernel")
    out = g.reshape(g.cont(g.unary(total)), width, streams, tokens)
    return g.add(x, g.add(gated, out))
