"""The graphs of vision projectors of the usual types.

Source: tools/mtmd/models/siglip.cpp, pixtral.cpp, qwen2vl.cpp, qwen3vl.cpp, internvl.cpp, llava.cpp,
llama4.cpp, kimivl.cpp, gemma4v.cpp and glm4v.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.graph import F16, F32, I32, Graph, Tensor, row_bytes
from llamaops.estimate.projector_tower import BF16, Tower

RMS_WIDTH, RMS_BLOCKS = 3200, 45
"""Size of the InternVL tower that has another kind of norm."""


def gemma3(t: Tower) -> Tensor:
    """Average squares of patches, norm and project (Gemma 3)."""
    g, across = t.g, t.across
    cur = g.transpose(t.tower(g.add(t.patches_in(), t.places()), t.patches))
    cur = g.cont(cur, across, across, t.width)
    pooled = across // t.merge
    cur = Tensor("pool_2d", F32, (pooled, pooled, t.width), (cur,))
    cur = g.cont(g.transpose(g.reshape(cur, pooled * pooled, t.width)))
    cur = g.mul(g.like("rms_norm", cur), t.need("mm.soft_emb_norm.weight"))
    return g.mul_mat(g.cont(g.transpose(t.need("mm.input_projection.weight"))), cur)


def idefics3(t: Tower) -> Tensor:
    """Put squares of patches side by side and project (Idefics 3, SmolVLM)."""
    cur = t.tower(t.g.add(t.patches_in(), t.places()), t.patches)
    return t.product(t.merged(cur), "mm.model.fc")


def lfm2(t: Tower) -> Tensor:
    """The same with a norm and two matrices (LFM2-VL)."""
    places = t.places()
    cur = t.merged(t.tower(t.g.add(t.patches_in(), places), t.patches))
    if t.weight("mm.input_norm.weight") is not None:
        cur = t.norm(cur, "mm.input_norm")
    return t.feed_forward(cur, "mm.1", "mm.2")


def pixtral(t: Tower) -> Tensor:
    """Rotate by row and column; merge patches where the file says how (Pixtral, Mistral Small)."""
    g, merged = t.g, t.across // t.merge
    rotation = t.rotation(t.patches)
    cur = t.tower(t.patches_in(), t.patches, norm="rms_norm", rotate=rotation)
    if t.weight("mm.patch_merger.weight") is not None:
        cur = g.mul(g.like("rms_norm", cur), t.need("mm.input_norm.weight"))
        cur = g.cont(g.permute(g.reshape(cur, t.width, t.across, t.across), 2, 0, 1, 3))
        kernel = g.view(cur, (t.merge, t.merge, cur.ne[2]), (0, 0))
        inner = t.merge * t.merge * cur.ne[2]
        cur = Tensor("im2col", F32, (inner, merged, merged), (kernel, cur))
        cur = t.product(g.reshape(cur, inner, merged * merged), "mm.patch_merger")
    cur = t.feed_forward(cur, "mm.1", "mm.2")
    end = t.weight("v.token_embd.img_break")
    if end is None:
        return cur
    rows = g.reshape(cur, cur.ne[0], merged, merged)
    blank = Tensor("none", F32, (cur.ne[0], 1, merged))
    joined = g.concat(rows, g.add(g.scale(blank), end), 1)
    return g.view(joined, (cur.ne[0], merged * merged + merged - 1), (row_bytes(F32, cur.ne[0]),))


def _squares(t: Tower, x: Tensor) -> Tensor:
    """Put the four patches of each square one after the other."""
    g, across = t.g, t.across
    x = g.cont(x, t.width * 2, across // 2, across)
    x = g.permute(g.reshape(x, t.width * 2, across // 2, 2, across // 2), 0, 2, 1, 3)
    return g.cont(x, t.width, t.patches)


def _two_frames(t: Tower) -> Tensor:
    g, picture = t.g, t.picture()
    frames = [t.convolve(t.need(f"v.patch_embd.weight{end}"), picture) for end in ("", ".1")]
    return _squares(t, g.permute(g.add(*frames), 1, 2, 0, 3))


def qwen2(t: Tower, norm: str = "norm") -> Tensor:
    """Two frames, squares of patches in a row, windows where the header says so (Qwen2-VL)."""
    g, every = t.g, t.model.number("vision.n_wa_pattern")
    x = _two_frames(t)
    positions = Graph.input(I32, (t.patches * 4,), "positions")
    x = t.outer_norm(x, "v.pre_ln", norm)
    mask = None
    if every:
        mask = t.window_mask()
        x = g.get_rows(
            g.reshape(x, t.width * 4, t.patches // 4), Graph.input(I32, (t.patches // 4,), "order")
        )
        x = g.reshape(x, t.width, t.patches)
    for layer in range(t.layers):
        is_full = not every or (layer + 1) % every == 0
        x = t.block(
            x, layer, t.patches, norm=norm, rotate=lambda heads: g.rope(heads, positions),
            mask=None if is_full else mask,
        )  # fmt: skip
    x = t.outer_norm(x, "v.post_ln", norm)
    x = t.feed_forward(g.reshape(x, t.width * 4, t.patches // 4), "mm.0", "mm.2")
    if not every:
        return x
    return g.get_rows(x, Graph.input(I32, (t.patches // 4,), "order_back"))


def qwen25(t: Tower) -> Tensor:
    """Norm by the root of squares, with windows (Qwen2.5-VL)."""
    return qwen2(t, "rms_norm")


def qwen3(t: Tower) -> Tensor:
    """Learned places, and features of several blocks (Qwen3-VL)."""
    g = t.g
    x = g.add(_two_frames(t), t.need("v.patch_embd.bias"))
    x = g.add(x, _squares(t, t.places()))
    positions = Graph.input(I32, (t.patches * 4,), "positions")
    x = t.outer_norm(x, "v.pre_ln")
    deep: Tensor | None = None
    each = t.merge**2
    for layer in range(t.layers):
        x = t.block(x, layer, t.patches, rotate=lambda heads: g.rope(heads, positions))
        name = f"v.deepstack.{layer}"
        if t.weight(f"{name}.fc1.weight") is not None:
            part = t.norm(g.reshape(x, t.width * each, t.patches // each), f"{name}.norm")
            part = t.feed_forward(part, f"{name}.fc1", f"{name}.fc2")
            deep = part if deep is None else g.concat(deep, part, 0)
    x = t.outer_norm(x, "v.post_ln")
    x = t.feed_forward(g.reshape(x, t.width * 4, t.patches // 4), "mm.0", "mm.2")
    return x if deep is None else g.concat(x, deep, 0)


def internvl(t: Tower) -> Tensor:
    """With a token of the class that is taken away again (InternVL)."""
    g, n, across = t.g, t.merge, t.across
    x, token = t.patches_in(), t.need("v.class_embd")
    x = g.concat(x, g.repeat(token, token.ne[0]), 1)
    norm = "rms_norm" if (t.width, t.layers) == (RMS_WIDTH, RMS_BLOCKS) else "norm"
    x = t.tower(g.add(x, t.need("v.position_embd.weight")), t.patches + 1, norm=norm)
    x = g.cont(g.view(x, (t.width, t.patches), x.nb[1:2]))
    x = g.permute(g.reshape(x, t.width * n, across // n, across), 0, 2, 1, 3)
    x = g.permute(g.cont(x, t.width * n * n, across // n, across // n), 0, 2, 1, 3)
    x = g.cont(x, x.ne[0], x.ne[1] * x.ne[2])
    return t.feed_forward(t.norm(x, "mm.model.mlp.0"), "mm.model.mlp.1", "mm.model.mlp.3")


def llava(t: Tower) -> Tensor:
    """All blocks but the last, and two matrices (LLaVA)."""
    g, token = t.g, t.weight("v.class_embd")
    if isinstance(t.model.value("vision.feature_layer", ""), tuple):
        raise KeyError("vision.feature_layer")
    x = t.patches_in()
    tokens = t.patches + (token is not None)
    if token is not None:
        x = g.concat(x, token, 1)
    rows = g.get_rows(t.need("v.position_embd.weight"), Graph.input(I32, (tokens,), "positions"))
    x = t.outer_norm(g.add(x, rows), "v.pre_ln")
    for layer in range(t.layers - 1):
        x = t.block(x, layer, tokens)
    x = t.outer_norm(x, "v.post_ln")
    x = g.reshape(x, x.ne[0], x.ne[1])
    x = g.get_rows(x, Graph.input(I32, (t.patches,), "patches"))
    if t.weight("mm.2.weight") is None:
        return g.unary(t.product(x, "mm.0"))
    return t.feed_forward(x, "mm.0", "mm.2")


def llama4(t: Tower) -> Tensor:
    """Patches as columns, rotation by row and column, two activations (Llama 4)."""
    g, n, across, kernel = t.g, t.merge, t.across, t.need("v.patch_embd.weight")
    rotation = t.rotation(t.patches + 1)
    inner = t.patch * t.patch * 3
    shaped = g.reshape(kernel, t.patch, t.patch, 3, t.width)
    x = Tensor("im2col", F32, (inner, across, across), (shaped, t.picture()))
    x = g.reshape(g.mul_mat(kernel, x), t.width, t.patches)
    x = g.concat(x, t.need("v.class_embd"), 1)
    x = t.tower(g.add(x, t.need("v.position_embd.weight")), t.patches + 1, rotate=rotation)
    x = g.view(x, (t.width, t.patches), x.nb[1:2])
    x = g.permute(g.reshape(x, t.width * n, across // n, across), 0, 2, 1, 3)
    x = g.cont(x, t.width * n * n, across // n, across // n)
    x = g.cont(x, t.width * n * n, t.patches // n // n)
    for name in ("mm.model.mlp.1", "mm.model.mlp.2"):
        x = g.unary(t.product(x, name))
    return t.product(x, "mm.model.fc")


def kimi(t: Tower) -> Tensor:
    """Rotation by row and column beside learned places (Kimi-VL)."""
    g, each = t.g, t.merge**2
    rotation = t.rotation(t.patches)
    places = t.places()
    x = t.merged(t.tower(g.add(t.patches_in(), places), t.patches, rotate=rotation))
    wide = x.ne
    x = g.view(x, (t.width, wide[1] * each), (row_bytes(F32, t.width),))
    x = t.norm(x, "mm.input_norm")
    x = g.view(x, (wide[0], wide[1]), (row_bytes(F32, wide[0]),))
    return t.feed_forward(x, "mm.1", "mm.2")


def gemma4(t: Tower) -> Tensor:
    """Products cut off at both ends, places by row and column, squares averaged (Gemma 4)."""
    g, table = t.g, t.need("v.position_embd.weight")
    t.clamps = True
    x = t.patches_in()
    ids = [Graph.input(I32, (t.patches,), name) for name in ("columns", "rows")]
    for place in ids:
        x = g.add(x, g.get_rows(g.view(table, table.ne[:2]), place))
    x = t.tower(x, t.patches, norm="rms_norm", rotate=lambda heads: g.rope(g.rope(heads, ids[0]), ids[1]))
    x = g.cont(g.transpose(x), t.across, t.across, t.width)
    pooled = t.across // t.merge
    x = Tensor("pool_2d", F32, (pooled, pooled, t.width), (x,))
    x = g.scale(g.cont(g.transpose(g.reshape(x, pooled * pooled, t.width))))
    bias, factor = t.weight("v.std_bias"), t.weight("v.std_scale")
    if bias is not None and factor is not None:
        x = g.mul(g.sub(x, bias), factor)
    return t.multiplied(g.like("rms_norm", x), "mm.input_projection.weight")


def glm4(t: Tower) -> Tensor:
    """Learned places, squares convolved into one, three matrices (GLM-4V)."""
    g, n = t.g, t.merge
    positions = Graph.input(I32, (t.patches * 4,), "positions")
    x = g.add(_two_frames(t), t.need("v.patch_embd.bias"))
    x = t.outer_norm(x, "v.norm_embd", "rms_norm")
    if t.weight("v.position_embd.weight") is not None:
        x = g.add(x, _squares(t, t.places()))
    x = t.tower(x, t.patches, norm="rms_norm", rotate=lambda heads: g.rope(heads, positions))
    merged = t.patches // n // n
    x = g.cont(g.permute(g.reshape(x, t.width, n, n, merged), 2, 0, 1, 3))
    kernel = t.need("mm.patch_merger.weight")
    inner = kernel.ne[0] * kernel.ne[1] * kernel.ne[2]
    columns = Tensor("im2col", F32 if kernel.type_id == BF16 else F16, (inner, 1, 1, merged), (kernel, x))
    x = g.mul_mat(g.reshape(columns, inner, merged), g.reshape(kernel, inner, kernel.ne[3]))
    x = g.cont(g.permute(g.reshape(x, 1, 1, merged, kernel.ne[3]), 0, 1, 3, 2))
    x = g.add(g.reshape(x, kernel.ne[3], merged), t.need("mm.patch_merger.bias"))
    x = g.unary(t.norm(t.product(x, "mm.model.fc"), "mm.post_norm"))
    return t.feed_forward(x, "mm.up", "mm.down", "mm.gate")
