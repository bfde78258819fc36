"""Attention to the best keys only, which a small indexer finds (DeepSeek 3.2, GLM 5).

Source: src/models/deepseek32.cpp and glm-dsa.cpp, build_attn for llm_graph_input_attn_k_dsa and
llama_kv_cache_dsa of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import absorb, attend_keys_only, scores, store_keys, view_keys
from llamaops.estimate.building import ROTATION, Building
from llamaops.estimate.graph import F16, F32, I32, I64, Tensor, row_bytes
from llamaops.estimate.plan import has_indexer


def attend_indexed(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend with compressed keys to those that the indexer of this layer, or of one before it, found."""
    low = b.project(cur, layer, "attn_q_a")
    low = b.named_norm(low, layer, "attn_q_a_norm")
    if has_indexer(b.model, b.arch, layer):
        b.best_keys = _best_keys(b, cur, low, layer)
    if b.best_keys is None:
        raise KeyError(f"blk.{layer}.indexer.proj.weight")
    mask = mask_of_best(b, b.full_cache.mask, b.best_keys)
    q, k, v = absorb(b, cur, b.project(low, layer, "attn_q_b"), layer)
    return attend_keys_only(b, layer, q, k, v, mask=mask, gated_by=cur)


def attend_indexed_or_near(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend with compressed keys to the best of all, or to those in a window, which have sizes of their own.

    Source: src/models/dots3note.cpp.
    """
    g, model, tokens, heads = b.g, b.model, b.tokens, b.model.heads(layer)
    is_near = b.layout.windowed[layer]
    end = "_swa" if is_near else ""
    rank, key = model.number(f"attention.kv_lora_rank{end}"), model.number(f"attention.key_length_mla{end}")
    turned = model.rotated
    low = b.named_norm(b.project(cur, layer, "attn_q_a"), layer, "attn_q_a_norm")
    best = None if is_near else _best_keys(b, cur, low, layer)
    both = b.project(low, layer, "attn_q_b")
    nb = (row_bytes(F32, key), row_bytes(F32, key * heads))
    plain, q = (g.view(both, (size, heads, tokens), nb) for size in (key - turned, turned))
    joint = b.project(cur, layer, "attn_kv_a_mqa")
    v = b.named_norm(g.view(joint, (rank, tokens), (joint.nb[1],)), layer, "attn_kv_a_norm")
    v = g.reshape(v, rank, 1, tokens)
    k = b.named_norm(g.view(joint, (turned, 1, tokens), (joint.nb[1], joint.nb[1])), layer, "attn_k_norm")
    plain = g.mul_mat(b.need_in_block(layer, "attn_k_b"), g.permute(plain, 0, 2, 1, 3))
    q = g.concat(g.permute(plain, 0, 2, 1, 3), g.rope(q, b.positions), 0)
    k = g.concat(v, g.rope(k, b.positions), 0)
    for tensor in (q, v, k):
        g.expand(tensor)
    cache = b.window_cache if is_near else b.full_cache
    keys = b.lasting(b.load.key_type, (k.ne[0], cache.cells, b.load.streams), f"cache_k.{layer}")
    g.expand(store_keys(b, cache.ids_k, keys, k))
    held = view_keys(b, cache, keys, k.ne[0], 1)
    values = g.view(held, (rank, *held.ne[1:]), held.nb[1:])
    mask = cache.mask if best is None else mask_of_best(b, cache.mask, best)
    out = scores(b, q, held, values, mask, layer, decompress=b.need_in_block(layer, "attn_v_b"))
    gate = g.reshape(g.unary(b.project(cur, layer, "attn_gate")), 1, heads, tokens)
    out = g.reshape(g.mul(g.reshape(out, out.ne[0] // heads, heads, tokens), gate), *out.ne)
    return b.project(out, layer, "attn_output")


def _best_keys(b: Building, cur: Tensor, low: Tensor, layer: int) -> Tensor:
    g, model, tokens, streams = b.g, b.model, b.tokens, b.load.streams
    size, heads = model.number("attention.indexer.key_length"), model.number("attention.indexer.head_count")
    q = g.rope(g.reshape(b.project(low, layer, "indexer.attn_q_b"), size, heads, tokens), b.positions)
    k = b.project(cur, layer, "indexer.attn_k")
    k = b.norm(k, b.in_block(layer, "indexer.k_norm"), b.in_block(layer, "indexer.k_norm", "bias"), "layer")
    k = g.rope(g.reshape(k, size, 1, tokens), b.positions)
    if b.arch.attention != "mla":
        rotation = b.shared_input(F32, (power_of_two(size),) * 2, "indexer_rotation")
        q, k = g.mul_mat(rotation, q), g.mul_mat(rotation, k)
    cache = b.full_cache
    keys = b.lasting(b.load.key_type, (size, cache.cells, streams), f"cache_i.{layer}")
    ids = b.shared_input(I64, (tokens,), "indexer_ids")
    g.expand(store_keys(b, ids, keys, k))
    weights = b.project(cur, layer, "indexer.proj")
    k = view_keys(b, cache, keys, size, 1)
    q = g.view(q, (size, heads, tokens // streams, streams), (q.nb[1], q.nb[2], q.nb[3] // streams))
    weights = g.view(weights, (heads, tokens // streams, 1, streams), (weights.nb[1],))
    weights = g.scale(weights)
    mask = b.shared_input(F16, (cache.cells, tokens // streams, 1, streams), "indexer_mask")
    shape = (cache.cells, tokens // streams, 1, streams)
    found = Tensor("lightning_indexer", F32, shape, (q, k, weights, mask))
    used = min(cache.cells, model.number("attention.indexer.top_k"))
    return g.cont(Tensor("top_k", I32, (used, *shape[1:]), (found,)))


def power_of_two(size: int) -> int:
    """Return the size of the rotation of an indexer's keys."""
    if size <= 0:
        raise ValueError("an indexer without a key length")
    found = ROTATION
    while size % (found * 2) == 0:
        found *= 2
    return found


def mask_of_best(b: Building, mask: Tensor, best: Tensor, *, zeros: int = F32) -> Tensor:
    """Return the mask of attention, open only where a key is among the best."""
    g = b.g
    closed = g.like("fill", mask)
    rows = g.view(closed, (1, closed.ne[0], closed.ne[1], closed.ne[3]), closed.nb[0:3])
    chosen = g.view(best, (best.ne[0], best.ne[1], best.ne[3], 1), best.nb[1:3])
    ones = g.like("fill", Tensor("none", zeros, (1, *chosen.ne[:3])))
    opened = g.set_rows(rows, ones, chosen)
    opened = g.view(opened, mask.ne, (opened.nb[2], opened.nb[3], opened.nb[3]))
    return g.add(opened, mask)
