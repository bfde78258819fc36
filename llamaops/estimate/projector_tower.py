"""The tower of a vision projector: patches of a picture, blocks of attention, and their small sequences.

Source: clip_graph in tools/mtmd/clip.cpp of llama.cpp (build_inp, build_vit, build_attn, build_ffn).
"""

from __future__ import annotations

from collections.abc import Callable

from llamaops.estimate.graph import F16, F32, I32, Graph, Tensor, row_bytes
from llamaops.estimate.model import Model

Rotate = Callable[[Tensor], Tensor]
BF16 = 30
COLORS = 3


class Tower:
    """A vision tower in the making, for a square picture of `side` pixels."""

    def __init__(self, model: Model, side: int, merge: int, *, flash: bool, casts_masks: bool) -> None:
        self.g = Graph()
        self.model = model
        self.merge = merge
        self._flash = flash
        self._casts_masks = casts_masks
        self.patch = model.number("vision.patch_size")
        self.side = side
        self.across = side // self.patch
        self.patches = self.across**2
        self.width = model.number("vision.embedding_length")
        self.heads = model.number("vision.attention.head_count")
        self.head = model.number("vision.attention.head_dim") or self.width // self.heads
        self.layers = model.number("vision.block_count")
        self.clamps = False
        self._weights: dict[str, Tensor] = {}

    def weight(self, name: str) -> Tensor | None:
        """Return a tensor of the file, None where it has none of this name."""
        found = self.model.by_name.get(name)
        if found is not None and name not in self._weights:
            self._weights[name] = Graph.weight(found.type_id, found.dimensions, name)
        return self._weights.get(name)

    def need(self, name: str) -> Tensor:
        """Return a tensor that the projector cannot do without.

        Raises: KeyError.
        """
        tensor = self.weight(name)
        if tensor is None:
            raise KeyError(name)
        return tensor

    # Small sequences

    def norm(self, x: Tensor, name: str, kind: str = "norm") -> Tensor:
        """Norm, then weight, then bias where there are such."""
        cur = self.g.like(kind, x)
        for part, op in (("weight", "mul"), ("bias", "add")):
            factor = self.weight(f"{name}.{part}")
            cur = cur if factor is None else self.g.like(op, cur, factor)
        return cur

    def product(self, x: Tensor, name: str) -> Tensor:
        """Multiply with a matrix, and add its bias where it has one."""
        cur = self.multiplied(x, f"{name}.weight")
        bias = self.weight(f"{name}.bias")
        return cur if bias is None else self.g.add(cur, bias)

    def multiplied(self, x: Tensor, name: str) -> Tensor:
        """Multiply with a matrix; some projectors cut off what goes in and what comes out."""
        x = self.g.like("clamp", x) if self.clamps else x
        cur = self.g.mul_mat(self.need(name), x)
        return self.g.like("clamp", cur) if self.clamps else cur

    def feed_forward(self, x: Tensor, up: str, down: str, gate: str = "") -> Tensor:
        """Return up, gate where there is one, activation and down."""
        cur = self.product(x, up)
        if gate and self.weight(f"{gate}.weight") is not None:
            cur = self.g.glu(self.product(x, gate), cur)
        else:
            cur = self.g.unary(cur)
        return self.product(cur, down)

    def convolve(self, kernel: Tensor, picture: Tensor) -> Tensor:
        """Convolve without overlap: columns, a product, and the result in the order of pictures."""
        g, across = self.g, self.across
        columns_type = F32 if kernel.type_id == BF16 else F16
        inner = kernel.ne[0] * kernel.ne[1] * kernel.ne[2]
        columns = Tensor("im2col", columns_type, (inner, across, across, 1), (kernel, picture))
        flat = g.reshape(columns, inner, self.patches)
        cur = g.mul_mat(flat, g.reshape(kernel, inner, kernel.ne[3]))
        cur = g.reshape(cur, across, across, 1, kernel.ne[3])
        return g.cont(g.permute(cur, 0, 1, 3, 2))

    def picture(self) -> Tensor:
        """Return the input of pixels."""
        return Graph.input(F32, (self.side, self.side, COLORS), "pixels")

    def patches_in(self) -> Tensor:
        """Return the patches as rows."""
        g = self.g
        picture = g.scale(self.picture()) if self.clamps else self.picture()
        cur = self.convolve(self.need("v.patch_embd.weight"), picture)
        cur = g.reshape(cur, self.patches, self.width)
        cur = g.cont(g.transpose(cur))
        bias = self.weight("v.patch_embd.bias")
        return cur if bias is None else g.add(cur, bias)

    def places(self) -> Tensor:
        """Return the learned places of patches, resized where the picture is of another size."""
        g, table = self.g, self.need("v.position_embd.weight")
        learned = int(table.ne[1] ** 0.5)
        if learned == self.across:
            return table
        cur = g.permute(g.reshape(table, self.width, learned, learned), 2, 0, 1, 3)
        cur = Tensor("upscale", cur.type_id, (self.across, self.across, self.width), (cur,))
        return g.cont(g.permute(cur, 1, 2, 0, 3), self.width, self.patches)

    def window_mask(self) -> Tensor:
        """Return the input that masks what is outside a window; older builds copy it into another type."""
        kind = F32 if self._casts_masks or not self._flash else F16
        mask = Graph.input(kind, (self.patches, self.patches), "window_mask")
        return self.g.cast(mask, F16) if self._casts_masks and self._flash else mask

    # Blocks

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend and project the result."""
        g = self.g
        for tensor in (q, k, v):
            g.expand(tensor)
        q, k = g.permute(q, 0, 2, 1, 3), g.permute(k, 0, 2, 1, 3)
        if self._flash:
            v = g.cast(g.permute(v, 0, 2, 1, 3), F16)
            mask = g.cast(mask, F16) if mask is not None and self._casts_masks else mask
            cur = g.flash_attention(q, g.cast(k, F16), v, mask)
            cur = g.reshape(cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])
        else:
            v = g.cont(g.permute(v, 1, 2, 0, 3))
            cur = g.permute(g.mul_mat(v, g.soft_max(g.mul_mat(k, q), mask)), 0, 2, 1, 3)
            cur = g.cont(cur, cur.ne[0] * cur.ne[1], cur.ne[2] * cur.ne[3])
        return self.product(cur, f"v.blk.{layer}.attn_out")

    def heads_of(self, x: Tensor, layer: int, tokens: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values in heads, from one matrix or three."""
        g, name = self.g, f"v.blk.{layer}.attn"
        if self.weight(f"{name}_qkv.weight") is None:
            return tuple(  # type: ignore[return-value]  # three of them
                g.reshape(self.product(x, f"{name}_{part}"), self.head, self.heads, tokens) for part in "qkv"
            )
        fused = self.product(x, f"{name}_qkv")
        shape, nb = (self.head, self.heads, tokens), (row_bytes(F32, self.head), fused.nb[1])
        return g.view(fused, shape, nb), g.view(fused, shape, nb), g.view(fused, shape, nb)

    def block(
        self,
        x: Tensor,
        layer: int,
        tokens: int,
        *,
        norm: str = "norm",
        rotate: Rotate | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return one block: attention and feed-forward part, each behind a norm."""
        g, name = self.g, f"v.blk.{layer}"
        q, k, v = self.heads_of(self.norm(x, f"{name}.ln1", norm), layer, tokens)
        v = g.like("rms_norm", v) if self.clamps else v
        q, k = (
            self.norm(t, f"{name}.{part}", norm) if self.weight(f"{name}.{part}.weight") is not None else t
            for t, part in ((q, "attn_q_norm"), (k, "attn_k_norm"))
        )
        if rotate is not None:
            q, k = rotate(q), rotate(k)
        cur = self.scaled(self.attend(layer, q, k, v, mask), f"{name}.ls1")
        x = g.add(self.outer_norm(cur, f"{name}.attn_post_norm", norm), x)
        up, down = self.ffn_names(layer)
        cur = self.feed_forward(self.norm(x, f"{name}.ln2", norm), up, down, f"{name}.ffn_gate")
        cur = self.outer_norm(cur, f"{name}.ffn_post_norm", norm)
        return self.scaled(g.add(x, self.scaled(cur, f"{name}.ls2")), f"{name}.out_scale")

    def scaled(self, x: Tensor, name: str) -> Tensor:
        """Scale by a tensor of the file where it has one."""
        factor = self.weight(f"{name}.weight")
        return x if factor is None else self.g.mul(x, factor)

    def ffn_names(self, layer: int) -> tuple[str, str]:
        """Return the names of the matrices up and down; older files have them the wrong way round."""
        up, down = f"v.blk.{layer}.ffn_up", f"v.blk.{layer}.ffn_down"
        is_swapped = self.need(f"{down}.weight").ne[0] == self.width != self.need(f"{up}.weight").ne[0]
        return (down, up) if is_swapped else (up, down)

    def tower(
        self, x: Tensor, tokens: int, *, norm: str = "norm", rotate: Rotate | None = None, layers: int = -1
    ) -> Tensor:
        """Return all blocks between the outer norms, where the file has such."""
        g = self.g
        x = g.reshape(x, self.width, tokens)
        x = self.outer_norm(x, "v.pre_ln", norm)
        for layer in range(self.layers if layers < 0 else layers):
            x = self.block(x, layer, tokens, norm=norm, rotate=rotate)
        x = self.outer_norm(x, "v.post_ln", norm)
        return g.reshape(x, self.width, tokens)

    def outer_norm(self, x: Tensor, name: str, norm: str = "norm") -> Tensor:
        """Norm in front of something or behind it, where the file has such a norm."""
        return x if self.weight(f"{name}.weight") is None else self.norm(x, name, norm)

    def rotation(self, tokens: int) -> Rotate:
        """Return what rotates the halves of heads, by row and by column."""
        first = Graph.input(I32, (tokens,), "rows")
        second = Graph.input(I32, (tokens,), "columns")
        return lambda x: self.g.rope(self.g.rope(x, first), second)

    def merged(self, x: Tensor) -> Tensor:
        """Put the patches of each square side by side, as one row."""
        g, n, width, across = self.g, self.merge, x.ne[0], self.across
        padding = -across % n
        x = g.reshape(x, width, across, across)
        if padding:
            x = g.pad(x, 0, padding, padding)
        across += padding
        x = g.permute(g.reshape(x, width * n, across // n, across), 0, 2, 1, 3)
        x = g.permute(g.cont(x, width * n * n, across // n, across // n), 0, 2, 1, 3)
        return g.cont(x, x.ne[0], x.ne[1] * x.ne[2])
