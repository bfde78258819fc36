"""Attention to the best blocks of keys only, chosen head by head by an indexer (MiniMax M3).

Source: src/models/minimax-m3.cpp and llama_kv_cache_msa of llama.cpp. Without flash attention, or where
several sequences share one cache, the engine attends to everything instead.
"""

from __future__ import annotations

from llamaops.estimate.attention import (
    attend_heads,
    cache_tensors,
    project_heads,
    store_keys,
    store_values,
    view_keys,
    view_values,
)
from llamaops.estimate.building import Building
from llamaops.estimate.graph import F16, F32, I32, I64, Tensor
from llamaops.estimate.plan import has_indexer

POSITIONS = 256
"""Positions of an empty cache, for which the graph is reserved."""


def attend_blocks(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Attend to the best blocks where the layer has an indexer, else to everything."""
    load = b.load
    if not (load.flash_attention and (load.slots == 1 or not load.is_unified)):
        return attend_heads(b, cur, layer)
    if not has_indexer(b.model, b.arch, layer):
        return attend_heads(b, cur, layer)
    queries, best_keys = _indexer(b, cur, layer)
    q, k, v = _stored(b, cur, layer)
    streams = [_of_stream(b, queries, best_keys, (q, k, v), layer) for _ in range(load.streams)]
    out = streams[0]
    for more in streams[1:]:
        out = b.g.concat(out, more, 1)
    if b.full_cache.rotation_v is not None:
        out = b.rotate(out, b.full_cache.rotation_v)
    return b.project(out, layer, "attn_output")


def _indexer(b: Building, cur: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    """Return the indexer's queries, and its keys as they lie in their cache."""
    g, model, tokens, load = b.g, b.model, b.tokens, b.load
    size, heads = model.number("attention.indexer.key_length"), model.number("attention.indexer.head_count")
    q, k = (
        g.rope(
            b.named_norm(
                g.reshape(b.project(cur, layer, f"indexer.{name}_proj"), size, count, tokens),
                layer,
                f"indexer.{name}_norm",
            ),
            b.positions,
        )
        for name, count in (("q", heads), ("k", 1))
    )
    cache = b.full_cache
    keys = b.lasting(load.key_type, (size, cache.cells, load.streams), f"cache_i.{layer}")
    g.expand(store_keys(b, b.shared_input(I64, (tokens,), "indexer_ids"), keys, k))
    return q, view_keys(b, cache, keys, size, 1)


def _stored(b: Building, cur: Tensor, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, and keys and values of the cache with the new ones in it."""
    g, model, cache = b.g, b.model, b.full_cache
    width, heads, kv_heads = model.value_length(), model.heads(layer), model.kv_heads(layer)
    q, k, v = project_heads(b, cur, layer, (width, heads), (width, kv_heads), in_heads=True)
    q = g.rope(b.named_norm(q, layer, "attn_q_norm"), b.positions)
    k = g.rope(b.named_norm(k, layer, "attn_k_norm"), b.positions)
    if cache.rotation_k is not None:
        q, k = b.rotate(q, cache.rotation_k), b.rotate(k, cache.rotation_k)
    if cache.rotation_v is not None:
        v = b.rotate(v, cache.rotation_v)
    for tensor in (q, k, v):
        g.expand(tensor)
    keys, values = cache_tensors(b, layer, cache, windowed=False)
    g.expand(store_keys(b, cache.ids_k, keys, k))
    g.expand(store_values(b, cache, values, v))
    return q, view_keys(b, cache, keys, width, kv_heads), view_values(b, cache, values, width, kv_heads)


def _of_stream(
    b: Building, queries: Tensor, best_keys: Tensor, attended: tuple[Tensor, Tensor, Tensor], layer: int
) -> Tensor:
    """Return attention of one stream's tokens."""
    g, tokens = b.g, b.tokens // b.load.streams
    q, k, v = attended
    width, heads, groups, cells = q.ne[0], q.ne[1], k.ne[1], k.ne[2]
    each = heads // groups
    q = g.view(q, (width, heads, tokens), (q.nb[1], q.nb[2]))
    q = g.permute(g.reshape(q, width, each, groups, tokens), 0, 2, 3, 1)
    k, v = (g.permute(g.view(t, (width, groups, cells, 1), t.nb[1:4]), 0, 3, 1, 2) for t in (k, v))
    mask = _mask(b, queries, best_keys, tokens, cells)
    cur = g.flash_attention(q, k, v, mask)
    cur.name = str(layer)
    cur = g.permute(cur, 0, 1, 3, 2)
    cur = cur if cur.is_contiguous else g.cont(cur)
    return g.reshape(cur, width * heads, tokens)


def _mask(b: Building, queries: Tensor, best_keys: Tensor, tokens: int, cells: int) -> Tensor:
    """Return a mask for each group of heads that is open in its best blocks only."""
    g, streams, model = b.g, b.load.streams, b.model
    size, heads = queries.ne[0], queries.ne[1]
    block = model.number("attention.indexer.block_size")
    positions = POSITIONS + -POSITIONS % block
    blocks = positions // block
    places = g.view(b.shared_input(I32, (positions, streams), "places"), (positions,))
    keys = g.get_rows(g.view(best_keys, (size, cells), (best_keys.nb[2],)), places)
    q = g.view(queries, (size, heads, tokens), (queries.nb[1], queries.nb[2]))
    found = g.mul_mat(keys, g.reshape(q, size, heads * tokens))
    found = g.reshape(found, positions, heads, tokens)
    seen = b.shared_input(F32, (positions, b.tokens), "seen")
    seen = g.view(seen, (positions, 1, tokens), (seen.nb[1], seen.nb[1]))
    found = Tensor("add", F32, found.ne, (found, seen), view_of=found, nb=found.nb)
    best = Tensor("pool_2d", F32, (blocks, heads, tokens), (found,))
    forced = b.shared_input(F32, (blocks, b.tokens), "forced")
    forced = g.view(forced, (blocks, 1, tokens), (forced.nb[1], forced.nb[1]))
    used = min(blocks, model.number("attention.indexer.top_k"))
    chosen = Tensor("top_k", I32, (used, heads, tokens), (g.add(best, forced),))
    closed = g.repeat(g.cast(g.scale(forced), F16), blocks, heads, tokens)
    zeros = g.scale(g.cast(chosen, F32))
    opened = g.set_rows(
        g.reshape(closed, 1, blocks, heads * tokens),
        g.reshape(zeros, 1, used, heads * tokens),
        g.reshape(chosen, used, heads * tokens),
    )
    opened = g.cont(g.permute(g.reshape(opened, blocks, heads, tokens), 0, 2, 1, 3))
    opened = g.cont(g.transpose(g.reshape(opened, blocks, tokens * heads)))
    of_cells = g.view(b.shared_input(I32, (cells, streams), "blocks_of_cells"), (cells,))
    opened = g.cont(g.transpose(g.get_rows(opened, of_cells)))
    opened = g.reshape(opened, cells, tokens, heads)
    whole = b.shared_cast(b.full_cache.mask, F32)
    whole = g.view(whole, (cells, tokens), (whole.nb[1], whole.nb[3]))
    opened = Tensor("add", F32, opened.ne, (opened, whole), view_of=opened, nb=opened.nb)
    return g.cast(g.reshape(opened, cells, tokens, 1, heads), F16)
