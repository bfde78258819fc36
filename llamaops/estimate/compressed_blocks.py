"""Layers that attend to a window and to blocks of earlier tokens, each pressed into one key (DeepSeek 4).

Source: src/models/deepseek4.cpp and src/llama-kv-cache-dsv4.cpp of llama.cpp.
"""

from __future__ import annotations

import msgspec

from llamaops.estimate.attention import scores, store_keys, view_keys
from llamaops.estimate.building import ROTATION, Building, is_quantized
from llamaops.estimate.feed_forward import feed_forward
from llamaops.estimate.graph import F16, F32, I32, I64, Tensor, row_bytes
from llamaops.estimate.hyper_connections import mixed
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load
from llamaops.estimate.sparse_attention import mask_of_best, power_of_two
from llamaops.launch.settings import pad

RATIOS = "attention.compress_ratios"
OVERLAPPING = 4
"""Tokens of a block of the finer kind, whose blocks overlap and which an indexer chooses among."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of blocks, and where its tensors are."""

    name: str
    """Of its inputs and states."""
    tensors: str
    """Beginning of the names of its tensors in the file."""
    ratio: int
    size: int
    """Elements of one key."""

    @property
    def overlaps(self) -> bool:
        """Return whether each block also takes from the one before it."""
        return self.ratio == OVERLAPPING

    @property
    def state_width(self) -> int:
        """Return the elements of what is kept of one token of an unfinished block."""
        return self.size * (2 if self.overlaps else 1)

    @property
    def state_rows(self) -> int:
        """Return of how many tokens something is kept."""
        return self.ratio * (2 if self.overlaps else 1)


def kinds_of(model: Model, layer: int) -> tuple[Kind, ...]:
    """Return the kinds of blocks that a layer keeps: of its own keys, and of its indexer's."""
    ratio = model.at(RATIOS, layer)
    if ratio <= 0:
        return ()
    own = Kind("blocks", "attn_compressor", ratio, model.key_length())
    if ratio != OVERLAPPING:
        return (msgspec.structs.replace(own, name="coarse"),)
    return own, Kind("indexer", "indexer_compressor", ratio, model.number("attention.indexer.key_length"))


def block_cells(load: Load, kind: Kind) -> int:
    """Return the blocks that the cache of each sequence holds."""
    return pad(max(1, -(-load.sequence_tokens // kind.ratio)))


def block_bytes(model: Model, load: Load, *, indexer: bool) -> dict[int, int]:
    """Return the bytes of the caches of blocks by layer: of keys, or of the indexer's keys.

    Units: bytes.
    """
    found: dict[int, int] = {}
    for layer in range(model.layers):
        for kind in kinds_of(model, layer):
            if (kind.name == "indexer") == indexer:
                found[layer] = block_cells(load, kind) * load.slots * row_bytes(load.key_type, kind.size)
    return found


def unfinished_bytes(model: Model, load: Load) -> dict[int, int]:
    """Return the bytes of what is kept of the tokens of unfinished blocks, by layer.

    Units: bytes.
    """
    found: dict[int, int] = {}
    for layer in range(model.layers):
        for kind in kinds_of(model, layer):
            size = 2 * row_bytes(F32, kind.state_width) * kind.state_rows * load.slots
            found[layer] = found.get(layer, 0) + size
    return found


def compressed_layers(b: Building, x: Tensor) -> Tensor:
    """Return the rows that are wanted of the last layer's streams, mixed into one."""
    g, width, streams = b.g, b.model.width, b.model.number("hyper_connection.count")
    g.expand(b.window_cache.mask)
    x = g.repeat(g.reshape(x, width, 1, b.tokens), width, streams, b.tokens)
    for layer in range(b.model.layers):
        cur, given, moved = _read(b, x, layer, "hc_attn")
        cur = _attend(b, b.named_norm(cur, layer, "attn_norm"), layer)
        x = _written(cur, x, given, moved)
        cur, given, moved = _read(b, x, layer, "hc_ffn")
        for tensor in (x, given, moved):
            g.expand(tensor)
        cur = feed_forward(b, b.named_norm(cur, layer, "ffn_norm"), layer)
        x = _written(cur, x, given, moved)
    rows = g.get_rows(g.reshape(x, width * streams, b.tokens), b.wanted_rows)
    x = g.reshape(rows, width, streams, b.outputs)
    shares = g.mul(mixed(b, x, b.need("output_hc_fn.weight")), b.need("output_hc_scale.weight"))
    shares = g.scale(g.unary(g.add(shares, b.need("output_hc_base.weight"))))
    total: Tensor | None = None
    for _ in range(streams):
        one = g.view(x, (width, b.outputs), (x.nb[2],))
        one = g.mul(one, g.view(shares, (1, b.outputs), (shares.nb[1],)))
        total = one if total is None else g.add(total, one)
    return rows if total is None else total


def _read(b: Building, x: Tensor, layer: int, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return what a part of a layer takes, how much it gives each stream, and how streams are mixed."""
    g, streams, tokens = b.g, x.ne[1], x.ne[2]
    mixes = mixed(b, x, b.need_in_block(layer, f"{name}_fn"))
    scale, base = b.need_in_block(layer, f"{name}_scale"), b.need_in_block(layer, f"{name}_base")
    taken, given = (
        g.scale(
            g.unary(
                g.add(
                    g.mul(g.view(mixes, (streams, tokens), (mixes.nb[1],)), g.view(scale, (1,))),
                    g.view(base, (streams,)),
                )
            )
        )
        for _ in range(2)
    )
    moved = Tensor("hc_comb", F32, (streams, streams, tokens), (mixes, scale, base))
    return Tensor("hc_pre", F32, (x.ne[0], tokens), (x, taken)), given, moved


def _written(cur: Tensor, x: Tensor, given: Tensor, moved: Tensor) -> Tensor:
    return Tensor("hc_post", F32, x.ne, (cur, x, given, moved))


def _attend(b: Building, cur: Tensor, layer: int) -> Tensor:
    g, model, tokens = b.g, b.model, b.tokens
    size, heads = model.key_length(), model.heads(layer)
    low = b.named_norm(b.project(cur, layer, "attn_q_a"), layer, "attn_q_a_norm")
    q = g.like("rms_norm", g.reshape(b.project(low, layer, "attn_q_b"), size, heads, tokens))
    q = _rotated(b, q, b.positions)
    kv = b.named_norm(b.project(cur, layer, "attn_kv"), layer, "attn_kv_a_norm")
    kv = _rotated(b, g.reshape(kv, size, 1, tokens), b.positions)
    kinds = kinds_of(model, layer)
    for kind in kinds:
        _press(b, cur, layer, kind)
    best = _best_blocks(b, cur, low, layer, kinds[1]) if len(kinds) > 1 else None
    rotation = _rotation(b, size, "window", always=size == model.number("attention.indexer.key_length"))
    if rotation is not None:
        q, kv = b.rotate(q, rotation), b.rotate(kv, rotation)
    g.expand(q)
    g.expand(kv)
    cache = b.window_cache
    keys = b.lasting(b.load.key_type, (size, cache.cells, b.load.streams), f"cache_k.{layer}")
    g.expand(store_keys(b, cache.ids_k, keys, kv))
    k, mask = view_keys(b, cache, keys, size, 1), cache.mask
    if kinds:
        k = g.concat(k, _view_blocks(b, layer, kinds[0]), 2)
        more = _mask(b, kinds[0], F16 if b.load.flash_attention else F32)
        more = more if best is None else mask_of_best(b, more, best, zeros=more.type_id)
        mask = g.concat(mask, more, 0)
    out = scores(b, q, k, k, mask, layer)
    out = out if rotation is None else b.rotate(out, rotation)
    out = _rotated(b, g.reshape(out, size, heads, tokens), b.positions)
    return _joined(b, out, layer)


def _rotated(b: Building, x: Tensor, positions: Tensor) -> Tensor:
    """Rotate the last elements of each head by position."""
    g, build = b.g, b.load.build
    if build.presses_apart:
        return g.rope(x, positions)
    last = b.model.number("rope.dimension_count")
    first, turned = (g.view(x, (size, *x.ne[1:]), x.nb[1:]) for size in (x.ne[0] - last, last))
    return g.concat(first, g.rope(turned, positions), 0)


def _joined(b: Building, out: Tensor, layer: int) -> Tensor:
    """Return the heads' results, projected group by group and then all together."""
    g, tokens = b.g, b.tokens
    groups, rank = (b.model.number(f"attention.output_{name}") for name in ("group_count", "lora_rank"))
    width = out.ne[0] * out.ne[1] // groups
    out = g.permute(g.reshape(out, width, groups, tokens), 0, 2, 1, 3)
    name = f"blk.{layer}.attn_output_a.weight"
    first = b.lasting(b.model.by_name[name].type_id, (width, rank, groups), name)
    out = g.permute(g.mul_mat(first, out), 0, 2, 1, 3)
    return b.project(g.cont(out, rank * groups, tokens), layer, "attn_output_b")


def _rotation(b: Building, size: int, name: str, *, always: bool) -> Tensor | None:
    is_needed = is_quantized(b.load.key_type) and b.model.key_length() % ROTATION == 0
    if not always and not is_needed:
        return None
    return b.shared_input(F32, (power_of_two(size),) * 2, f"{name}.rotation")


def _mask(b: Building, kind: Kind, type_id: int) -> Tensor:
    streams = b.load.streams
    shape = (block_cells(b.load, kind), b.tokens // streams, 1, streams)
    return b.shared_input(type_id, shape, f"{kind.name}.mask")


def _blocks(b: Building, layer: int, kind: Kind) -> Tensor:
    shape = (kind.size, block_cells(b.load, kind), b.load.streams)
    return b.lasting(b.load.key_type, shape, f"{kind.name}.cache.{layer}")


def _view_blocks(b: Building, layer: int, kind: Kind) -> Tensor:
    """Return the cache of blocks as attention takes it: a view of a view."""
    keys = _blocks(b, layer, kind)
    nb = (row_bytes(keys.type_id, kind.size), keys.nb[1], keys.nb[2])
    shape = (kind.size, 1, keys.ne[1], b.load.streams)
    return b.g.view(b.g.view(keys, shape, nb), shape, nb)


def _press(b: Building, cur: Tensor, layer: int, kind: Kind) -> None:
    """Press each finished block into one key, store it, and keep the tokens of unfinished ones."""
    g, tokens, name = b.g, b.tokens, kind.name
    if b.load.build.presses_apart:
        blocks = tokens // kind.ratio + b.load.slots
    else:
        blocks = b.load.slots * -(-tokens // (b.load.slots * kind.ratio))
    rows = kind.state_rows * b.load.slots
    kept = {
        what: b.lasting(F32, (kind.state_width, kind.state_rows, b.load.slots), f"{name}.{what}.{layer}")
        for what in ("kv", "score")
    }
    kv = b.project(cur, layer, f"{kind.tensors}_kv")
    score = b.project(cur, layer, f"{kind.tensors}_gate")
    order = g.get_rows(
        b.need_in_block(layer, f"{kind.tensors}_ape"), b.shared_input(I32, (tokens,), f"{name}.pos")
    )
    score = g.add(score, order)
    views = {what: g.view(state, (kind.state_width, rows), (state.nb[1],)) for what, state in kept.items()}
    reads = b.shared_input(I32, (kind.state_rows * blocks,), f"{name}.reads")
    values, weights = (
        _gathered(b, g.concat(g.view(view, view.ne, view.nb[1:]), new, 1), reads, kind, blocks)
        for view, new in ((views["kv"], kv), (views["score"], score))
    )
    key = g.sum_rows(g.mul(values, g.soft_max(weights)))
    key = b.named_norm(g.cont(g.permute(key, 1, 0, 2, 3)), layer, f"{kind.tensors}_norm")
    key = _rotated(b, key, b.shared_input(I32, (blocks,), f"{name}.write_pos"))
    is_always = kind.size == b.model.number("attention.indexer.key_length")
    rotation = _rotation(b, kind.size, name, always=is_always)
    key = key if rotation is None else b.rotate(key, rotation)
    places = b.shared_input(I64, (blocks,), f"{name}.writes")
    g.expand(store_keys(b, places, _blocks(b, layer, kind), key))
    count = min(tokens, rows)
    source, target = (b.shared_input(I32, (count,), f"{name}.persist_{end}") for end in ("from", "to"))
    stored = [
        g.set_rows(
            g.view(kept[what], (kind.state_width, rows), (kept[what].nb[1],)), g.get_rows(new, source), target
        )
        for what, new in (("kv", kv), ("score", score))
    ]
    for tensor in stored:
        g.expand(tensor)


def _gathered(b: Building, rows: Tensor, reads: Tensor, kind: Kind, blocks: int) -> Tensor:
    """Return what each block takes, the tokens of a block in a row."""
    g = b.g
    if not kind.overlaps:
        found = g.reshape(g.get_rows(rows, reads), kind.size, kind.ratio, blocks)
        return g.cont(g.permute(found, 1, 0, 2, 3))
    nothing = g.reshape(g.scale(g.view(rows, (rows.ne[0],))), rows.ne[0], 1)
    found = g.get_rows(g.concat(rows, nothing, 1), reads)
    before, own = (
        g.reshape(
            g.cont(g.view(found, (kind.size, kind.ratio * blocks), (found.nb[1],))),
            kind.size, kind.ratio, blocks,
        )
        for _ in range(2)
    )  # fmt: skip
    return g.cont(g.permute(g.concat(before, own, 1), 1, 0, 2, 3))


def _best_blocks(b: Building, cur: Tensor, low: Tensor, layer: int, kind: Kind) -> Tensor:
    """Return which blocks the indexer finds best."""
    g, tokens, streams, heads = b.g, b.tokens, b.load.streams, b.model.number("attention.indexer.head_count")
    q = g.reshape(b.project(low, layer, "indexer.attn_q_b"), kind.size, heads, tokens)
    q = _rotated(b, q, b.positions)
    rotation = _rotation(b, kind.size, kind.name, always=True)
    q = q if rotation is None else b.rotate(q, rotation)
    weights = g.scale(b.project(cur, layer, "indexer.proj"))
    k = _view_blocks(b, layer, kind)
    q = g.view(q, (kind.size, heads, tokens // streams, streams), (q.nb[1], q.nb[2], q.nb[3] // streams))
    weights = g.view(weights, (heads, tokens // streams, 1, streams), (weights.nb[1],))
    shape = (k.ne[2], tokens // streams, 1, streams)
    found = Tensor("lightning_indexer", F32, shape, (q, k, weights, _mask(b, kind, F16)))
    used = min(k.ne[2], b.model.number("attention.indexer.top_k"))
    return g.cont(Tensor("top_k", I32, (used, *shape[1:]), (found,)))
