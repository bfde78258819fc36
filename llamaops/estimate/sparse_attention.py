"""Attention to the best keys only, which a small indexer finds (DeepSeek 3.2, GLM 5).

Source: src/models/deepseek32.cpp and glm-dsa.cpp, build_attn for llm_graph_input_attn_k_dsa and
llama_kv_cache_dsa of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.attention import absorb, attend_keys_only, store_keys, view_keys
from llamaops.estimate.building import ROTATION, Building
from llamaops.estimate.graph import F16, F32, I32, I64, Tensor
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


def _best_keys(b: Building, cur: Tensor, low: Tensor, layer: int) -> Tensor:
    g, model, tokens, streams = b.g, b.model, b.tokens, b.load.streams
    size, heads = model.number("attention.indexer.key_length"), model.number("attention.indexer.head_count")
    q = g.rope(g.reshape(b.project(low, layer, "indexer.attn_q_b"), size, heads, tokens), b.positions)
    k = b.project(cur, layer, "indexer.attn_k")
    k = b.norm(k, b.in_block(layer, "indexer.k_norm"), b.in_block(layer, "indexer.k_norm", "bias"), "layer")
    k = g.rope(g.reshape(k, size, 1, tokens), b.positions)
    if b.arch.attention == "indexed":
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
