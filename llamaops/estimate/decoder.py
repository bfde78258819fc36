"""Put the blocks of an architecture together into the graph that the engine reserves memory for.

Source: src/models/*.cpp of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable

from llamaops.estimate import (
    attention,
    block_attention,
    compressed_blocks,
    encoder_decoder,
    hyper_connections,
    linear_mixers,
    mamba_variants,
    pooled_attention,
    recurrent_mixers,
    residual_attention,
    sparse_attention,
    stacked_layers,
)
from llamaops.estimate.alternating import alternating_layers
from llamaops.estimate.architectures import Architecture
from llamaops.estimate.building import Building
from llamaops.estimate.feed_forward import DENSE, dense, experts, feed_forward
from llamaops.estimate.graph import F32, I32, Graph, Tensor
from llamaops.estimate.model import Model
from llamaops.estimate.per_layer_inputs import per_layer_layers
from llamaops.estimate.plan import Load
from llamaops.estimate.rwkv import rwkv_layers
from llamaops.estimate.rwkv_with_ffn import rwkv_with_ffn_layers

Mixer = Callable[[Building, Tensor, int], Tensor]

MIXERS: dict[str, Mixer] = {
    "heads": attention.attend_heads,
    "mla": attention.attend_compressed,
    "indexed": sparse_attention.attend_indexed,
    "indexed_or_near": sparse_attention.attend_indexed_or_near,
    "blocks": block_attention.attend_blocks,
    "gated": attention.attend_gated,
    "mamba": recurrent_mixers.mamba,
    "mamba2": recurrent_mixers.mamba2,
    "shortconv": recurrent_mixers.short_convolution,
    "delta": recurrent_mixers.delta_net,
    "delta_joint": recurrent_mixers.delta_net,
    "kimi_delta": linear_mixers.kimi_delta,
    "bounded_delta": linear_mixers.kimi_delta,
    "lightning": linear_mixers.lightning,
    "mamba_by_heads": mamba_variants.mamba_by_heads,
}
NO_POOLING, MEAN, FIRST, LAST, RANK = range(5)
RANK_BY_MEAN, RANK_WITH_SOFT_MAX = frozenset({"modern-bert"}), frozenset({"qwen3", "qwen3vl"})
"""Architectures whose rerankers take the mean of all tokens, and whose end in a soft-max."""


def reserved_graph(model: Model, architecture: Architecture, load: Load) -> Graph:
    """Return the graph of a whole batch, for which the engine reserves its compute buffer.

    Raises: KeyError when the file lacks a tensor that the architecture needs.
    """
    tokens = load.batch_tokens
    outputs = min(tokens, load.outputs)
    tokens = -(-tokens // load.slots) * load.slots
    b = Building(model, architecture, load, tokens=tokens, outputs=outputs)
    cur = b.embed()
    cur = _first(b, cur)
    build = _WHOLE.get(architecture.recurrent) or _WHOLE.get(architecture.order, _layers)
    _finish(b, build(b, cur))
    return b.g


_WHOLE: dict[str, Callable[[Building, Tensor], Tensor]] = {
    "rwkv6": rwkv_layers,
    "rwkv7": rwkv_layers,
    "qrwkv6": rwkv_with_ffn_layers,
    "arwkv7": rwkv_with_ffn_layers,
    "alternating": alternating_layers,
    "per_layer": per_layer_layers,
    "compressed": compressed_blocks.compressed_layers,
    "stacks": stacked_layers.stacked_layers,
    "pooled": pooled_attention.pooled_layers,
    "hyper": hyper_connections.hyper_layers,
    "banked": residual_attention.banked_layers,
    "decoder": encoder_decoder.decoder_layers,
    "encoder_half": encoder_decoder.encoder_layers,
}
"""What builds all layers of an architecture at once, by its recurrent part or its order."""


def _first(b: Building, cur: Tensor) -> Tensor:
    g = b.g
    if b.arch.order == "encoder":
        kinds = b.weight("token_types.weight")
        if kinds is not None:
            cur = g.add(cur, g.view(kinds, (b.model.width,)))
    table = b.weight("position_embd.weight") if b.arch.has_position_table else None
    if table is not None:
        rows = b.early_rows or g.get_rows(table, b.positions)
        cur = g.add(rows, cur) if b.arch.order == "encoder" else g.add(cur, rows)
    norm = None if b.arch.recurrent == "shortconv" else b.weight("token_embd_norm.weight")
    if norm is not None:
        cur = b.norm(cur, norm, b.weight("token_embd_norm.bias"), kind="layer")
    if b.arch.norms_input:
        cur = b.input_embeddings = b.norm(cur, None)
    return cur


def _layers(b: Building, cur: Tensor) -> Tensor:
    last = b.model.layers - 1
    for layer in range(b.model.layers):
        wants = layer == last and not b.gathers_late and not b.arch.wants_all_rows
        build = _LAYERS.get(b.arch.order, _layer)
        cur = b.add_deep_input(build(b, cur, layer, wants), layer)
        if b.model.own(layer + 1) == 0 and layer != last:
            cur = _between_loops(b, cur)
    return cur


def _between_loops(b: Building, cur: Tensor) -> Tensor:
    """Return what the next round through the same layers takes (nanbeige)."""
    return cur if b.model.value("skip_loop_final_norm", default=False) else _last_norm(b, cur)


def _mix(b: Building, cur: Tensor, layer: int) -> Tensor:
    kind = b.arch.recurrent if b.layout.recurrent[layer] else b.arch.attention
    return MIXERS[kind](b, cur, layer)


def _layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    g, arch = b.g, b.arch
    residual = x
    has_norm = arch.order == "before" and (not arch.is_encoder or b.in_block(layer, "attn_norm") is not None)
    cur = b.named_norm(x, layer, "attn_norm") if has_norm else x
    if arch.recurrent.startswith(("delta", "kimi")):
        g.expand(cur)
    if arch.recurrent_layers == "beside":
        return _beside(b, x, cur, layer, wants)
    cur = _mix(b, cur, layer)
    gathers_late = wants and arch.gathers_behind_norm
    if wants and not gathers_late:
        cur, residual = g.get_rows(cur, b.wanted_rows), g.get_rows(residual, b.wanted_rows)
    if arch.post_attention_norm and b.in_block(layer, arch.post_attention_norm) is not None:
        cur = b.named_norm(cur, layer, arch.post_attention_norm)
    if gathers_late:
        cur, residual = g.get_rows(cur, b.wanted_rows), g.get_rows(residual, b.wanted_rows)
    cur = _scaled(b, cur)
    cur = _sum(b, cur, residual, is_first=arch.residual_first in {"always", "attention"})
    if not _has_ffn(b, layer):
        return cur
    return _ffn(b, cur, layer)


def _has_ffn(b: Building, layer: int) -> bool:
    return any(b.in_block(layer, name) is not None for name in ("ffn_down", "ffn_down_exps"))


def _ffn(b: Building, x: Tensor, layer: int) -> Tensor:
    arch = b.arch
    cur = x if arch.order == "after" else b.named_norm(x, layer, arch.ffn_norm)
    cur = feed_forward(b, cur, layer)
    for name in arch.post_ffn_norm.split():
        if b.in_block(layer, name) is not None:
            cur = b.named_norm(cur, layer, name)
    return _sum(b, _scaled(b, cur), x, is_first=arch.residual_first in {"always", "ffn"})


def _scaled(b: Building, cur: Tensor) -> Tensor:
    return b.g.scale(cur) if b.model.real("residual_scale") or b.arch.scales_residual else cur


def _sum(b: Building, cur: Tensor, residual: Tensor, *, is_first: bool) -> Tensor:
    return b.g.add(residual, cur) if is_first else b.g.add(cur, residual)


def _beside(b: Building, x: Tensor, cur: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer in which attention and a recurrent part stand side by side (falcon-h1)."""
    g = b.g
    attended = MIXERS[b.arch.attention](b, cur, layer)
    mixed = MIXERS[b.arch.recurrent](b, b.named_norm(x, layer, "attn_norm"), layer)
    cur = g.add(attended, mixed)
    residual = g.add(cur, x)
    if wants:
        residual = g.get_rows(residual, b.wanted_rows)
    return _ffn(b, residual, layer)


def _parallel_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    g = b.g
    normed = b.named_norm(x, layer, "attn_norm")
    own = normed
    if b.in_block(layer, "attn_norm_2") is not None:
        own = b.named_norm(x, layer, "attn_norm_2")
    attended = _mix(b, own, layer)
    if wants:
        attended, x, normed = (g.get_rows(t, b.wanted_rows) for t in (attended, x, normed))
    if b.in_block(layer, "ffn_norm") is not None:
        if not b.model.value("use_parallel_residual", default=True):
            return _ffn(b, g.add(attended, x), layer)
        normed = b.named_norm(x, layer, "ffn_norm")
    cur = feed_forward(b, normed, layer)
    if b.arch.parallel_sum == "attention":
        return g.add(g.add(attended, cur), x)
    if b.arch.parallel_sum == "onto_attention":
        return g.add(g.add(cur, attended), x)
    return g.add(g.add(cur, x), attended)


def _stable_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer whose feed-forward part has a norm of its own or takes that of attention (stablelm)."""
    g = b.g
    normed = b.named_norm(x, layer, "attn_norm")
    attended = _mix(b, normed, layer)
    if wants:
        attended, x, normed = (g.get_rows(t, b.wanted_rows) for t in (attended, x, normed))
    total = g.add(attended, x)
    cur = normed if b.in_block(layer, "ffn_norm") is None else b.named_norm(total, layer, "ffn_norm")
    return g.add(feed_forward(b, cur, layer), total)


def _single_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer that is one part only: recurrent, attention or feed-forward (nemotron-h)."""
    g = b.g
    normed = b.named_norm(x, layer, "attn_norm")
    if b.layout.recurrent[layer] or not b.model.at("feed_forward_length", layer):
        cur = _mix(b, normed, layer)
    else:
        cur = feed_forward(b, normed, layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    return g.add(cur, x)


def _routed_first_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer whose input already chooses the experts (smallthinker)."""
    g = b.g
    logits = b.project(x, layer, "ffn_gate_inp")
    cur = _mix(b, b.named_norm(x, layer, "attn_norm"), layer)
    if wants:
        cur, x, logits = (g.get_rows(t, b.wanted_rows) for t in (cur, x, logits))
    total = g.add(cur, x)
    return g.add(experts(b, b.named_norm(total, layer, "ffn_norm"), layer, logits=logits), total)


def _dense_and_experts_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer whose experts take its input, beside a dense part that takes attention's (arctic)."""
    g = b.g
    cur = _mix(b, b.named_norm(x, layer, "attn_norm"), layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    total = g.add(cur, x)
    cur = dense(b, b.named_norm(total, layer, "ffn_norm"), layer, DENSE, b.arch.ffn)
    own = g.add(cur, total)
    return g.add(experts(b, b.named_norm(x, layer, "ffn_norm_exps"), layer), own)


def _normed_residual_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer that adds what its parts take, normed and scaled, instead of its input (minimax-01)."""
    g = b.g
    normed = b.named_norm(x, layer, "attn_norm")
    cur = _mix(b, normed, layer)
    if wants:
        cur, normed = g.get_rows(cur, b.wanted_rows), g.get_rows(normed, b.wanted_rows)
    cur = b.named_norm(g.add(cur, g.scale(normed)), layer, "ffn_norm")
    return g.add(feed_forward(b, cur, layer), g.scale(cur))


def _skipping_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer that adds a part of the model's input (talkie)."""
    g, own = b.g, b.input_embeddings
    cur = _layer_with_norms(b, x, layer, wants)
    if wants:
        own = g.get_rows(own, b.wanted_rows)
    return g.add(cur, g.mul(own, b.need_in_block(layer, "layer_output_scale")))


def _layer_with_norms(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    g = b.g
    cur = _mix(b, b.named_norm(x, layer, "attn_norm"), layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    return _ffn(b, g.add(cur, x), layer)


def _swin_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer with norms behind its parts where the header asks for them (chameleon)."""
    g = b.g
    if not b.model.value("swin_norm", default=False):
        return _layer_with_norms(b, x, layer, wants)
    cur = _mix(b, x, layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    normed = b.named_norm(cur, layer, "attn_norm")  # the engine does not feed the sum forward
    cur = b.named_norm(feed_forward(b, normed, layer), layer, "ffn_norm")
    return g.add(cur, g.add(normed, x))


def _optional_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    """Return a layer that may lack attention, have a matrix instead, or lack the other part (deci)."""
    g, heads = b.g, b.model.heads(layer)
    cur, residual = x, x
    if heads and not b.model.kv_heads(layer):
        cur = b.project(b.named_norm(x, layer, "attn_norm"), layer, "attn_output")
    elif heads:
        cur = _mix(b, b.named_norm(x, layer, "attn_norm"), layer)
    if wants:
        cur, residual = g.get_rows(cur, b.wanted_rows), g.get_rows(residual, b.wanted_rows)
    if not b.model.at("feed_forward_length", layer):
        return x
    return _ffn(b, g.add(cur, residual) if heads else cur, layer)


def _encoder_layer(b: Building, x: Tensor, layer: int, wants: bool) -> Tensor:
    g = b.g
    cur = _mix(b, x, layer)
    if wants:
        cur, x = g.get_rows(cur, b.wanted_rows), g.get_rows(x, b.wanted_rows)
    cur = b.named_norm(g.add(cur, x), layer, "attn_output_norm")
    if b.in_block(layer, "attn_norm_2") is not None:
        cur = b.named_norm(g.add(cur, x), layer, "attn_norm_2")
    cur = g.add(feed_forward(b, cur, layer), cur)
    return b.named_norm(cur, layer, "layer_output_norm")


_LAYERS: dict[str, Callable[[Building, Tensor, int, bool], Tensor]] = {
    "parallel": _parallel_layer,
    "encoder": _encoder_layer,
    "stablelm": _stable_layer,
    "single": _single_layer,
    "dense_and_experts": _dense_and_experts_layer,
    "normed_residual": _normed_residual_layer,
    "skipping": _skipping_layer,
    "swin": _swin_layer,
    "optional": _optional_layer,
    "routed_first": _routed_first_layer,
}


def _finish(b: Building, cur: Tensor) -> None:
    g, arch = b.g, b.arch
    hidden = cur if arch.keeps_hidden and b.load.build.mixes_inputs else None
    if b.gathers_late and not arch.norms_before_gathering:
        hidden = cur
        cur = g.get_rows(cur, b.wanted_rows)
    if arch.order not in {"encoder", "pooled", "stacks"}:
        cur = _last_norm(b, cur)
    if b.gathers_late and arch.norms_before_gathering:
        hidden = cur
        cur = g.get_rows(cur, b.wanted_rows)
    embedded = cur
    logits = None
    if arch.scales_hidden:
        cur = g.scale(cur)
    if _computes_logits(b):
        logits = _logits(b, cur)
        cur = logits
    g.expand(cur)
    _pool(b, embedded)
    for tensor in (hidden, embedded, logits):
        if tensor is not None:
            tensor.is_output = True


def _computes_logits(b: Building) -> bool:
    """Return whether there are logits: builds that mix inputs leave them out where results are pooled."""
    pools = b.load.pooling and b.load.build.mixes_inputs
    if b.load.embeddings and (pools or b.arch.embeds_without_logits):
        return False
    return not b.arch.is_encoder or b.arch.has_logits


def _last_norm(b: Building, cur: Tensor) -> Tensor:
    """Norm the result; models with short convolutions keep its weights under the input's name."""
    name = "token_embd_norm" if b.arch.recurrent == "shortconv" else "output_norm"
    prefixes = (prefix for prefix in ("dec.", "enc.") if b.weight(f"{prefix}{name}.weight") is not None)
    name = f"{next(prefixes, '')}{name}"
    return b.norm(cur, b.weight(f"{name}.weight"), b.weight(f"{name}.bias"))


def _logits(b: Building, cur: Tensor) -> Tensor:
    g = b.g
    head = b.weight("output.weight") or b.tied_head()
    cur = g.mul_mat(head, cur)
    bias = b.weight("output.bias")
    if bias is not None:
        cur = g.add(cur, bias)
    kind = b.arch.scales_logits
    if kind == "always" or (kind == "key" and b.model.real("logit_scale")):
        cur = g.scale(cur)
    if kind in {"soft_cap", "always"} and b.model.real("final_logit_softcapping", b.arch.default_soft_cap):
        cur = g.scale(g.unary(g.scale(cur)))
    if b.arch.hides_logits:
        hidden = g.like("clamp", Tensor("none", F32, (b.arch.hides_logits,)))
        cur = g.like("set", cur, hidden)
    return cur


def _pool(b: Building, embedded: Tensor) -> None:
    """Add what pools embeddings, where embeddings are asked for."""
    load, g = b.load, b.g
    if not load.embeddings:
        return
    cur = embedded
    default = MEAN if b.model.architecture in RANK_BY_MEAN else FIRST
    by_mean = load.pooling == RANK and b.model.number("classifier.pooling_type", default) == MEAN
    if load.pooling == MEAN or by_mean:
        mean = Graph.input(F32, (b.tokens, b.sequences), "mean")
        cur = g.mul_mat(g.cont(g.transpose(embedded)), mean)
    elif load.pooling in {FIRST, LAST, RANK}:
        cur = g.get_rows(embedded, Graph.input(I32, (b.sequences,), "chosen"))
    if load.pooling == RANK:
        cur = _rank(b, cur)
    cur.is_output = True
    g.expand(cur)
    for name in ("dense_2.weight", "dense_3.weight"):
        matrix = b.weight(name)
        if matrix is not None:
            cur = g.mul_mat(matrix, cur)
    cur.is_output = True
    g.expand(cur)


def _rank(b: Building, cur: Tensor) -> Tensor:
    """Return what a reranker's head makes of the pooled result."""
    g = b.g
    head, norm, last = (b.weight(f"{name}.weight") for name in ("cls", "cls.norm", "cls.output"))
    if head is not None:
        cur = g.unary(_with_bias(b, g.mul_mat(head, cur), "cls"))
        cur = cur if norm is None else b.norm(cur, norm, kind="layer")
    if last is not None:
        cur = _with_bias(b, g.mul_mat(last, cur), "cls.output")
    return g.soft_max(cur) if b.model.architecture in RANK_WITH_SOFT_MAX else cur


def _with_bias(b: Building, cur: Tensor, name: str) -> Tensor:
    bias = b.weight(f"{name}.bias")
    return cur if bias is None else b.g.add(cur, bias)
