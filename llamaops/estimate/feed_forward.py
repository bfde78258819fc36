"""Feed-forward parts: dense and with experts.

Source: build_ffn and build_moe_ffn in src/llama-graph.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.card_support import PRECISE
from llamaops.estimate.graph import F32, I32, Tensor

DENSE = ("ffn_up", "ffn_gate", "ffn_down")
NARROW = ("ffn_latent", "ffn_routed")
"""Names of matrices that make the input of the experts narrower, and their result as wide as before."""
SHARED = ("ffn_up_shexp", "ffn_gate_shexp", "ffn_down_shexp")
LEAST_LIMIT = 1e-6
"""Smaller limits of an activation are none."""
SOFT_MAX, SIGMOID, SOFT_MAX_WEIGHT, SQRT_SOFTPLUS = 1, 2, 3, 4


def feed_forward(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return the feed-forward part of a layer, of whichever kind its tensors are."""
    if b.in_block(layer, "ffn_gate_inp") is None:
        return dense(b, cur, layer, DENSE, b.arch.ffn)
    if b.in_block(layer, "ffn_up_chexps") is not None:
        return _experts_twice(b, cur, layer)
    narrow = next((name for name in NARROW if b.in_block(layer, f"{name}_down") is not None), "")
    if not narrow:
        out = experts(b, cur, layer)
    else:
        logits = b.project(cur, layer, "ffn_gate_inp")
        out = experts(b, b.project(cur, layer, f"{narrow}_down"), layer, logits=logits)
        if b.in_block(layer, f"{narrow}_norm") is not None:
            out = b.named_norm(out, layer, f"{narrow}_norm")
        out = b.project(out, layer, f"{narrow}_up")
    if b.arch.has_dense_beside and b.in_block(layer, "ffn_up") is not None:
        return b.g.scale(b.g.add(dense(b, cur, layer, DENSE, b.arch.ffn), out))
    if b.in_block(layer, "ffn_up_shexp") is None:
        return out
    is_fused = b.arch.ffn == "silu" and b.in_block(layer, "ffn_gate_shexp") is None
    shared = dense(b, cur, layer, SHARED, "fused" if is_fused else b.arch.ffn)
    if b.arch.shared_expert in {"gated", "divided"}:
        raw = b.project(cur, layer, "ffn_gate_inp_shexp")
        gate = b.g.unary(raw)
        if b.arch.shared_expert == "divided":
            gate = b.g.like("div", gate, raw)
        shared = b.g.mul(shared, gate)
    total = b.g.add(out, shared)
    return b.g.scale(total) if b.arch.shared_expert == "halved" else total


def _experts_twice(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return experts, and what smaller ones, each for a group of them, make of their result (grovemoe)."""
    g = b.g
    logits = b.project(cur, layer, "ffn_gate_inp")
    out = experts(b, cur, layer, logits=logits)
    return g.add(out, g.scale(experts(b, out, layer, logits=logits, kind="chexps")))


def dense(b: Building, cur: Tensor, layer: int, names: tuple[str, str, str], kind: str) -> Tensor:
    """Return a dense part: up, gate, activation, down."""
    g = b.g
    up_name, gate_name, down_name = names
    up = b.project(cur, layer, up_name)
    has_gate = b.in_block(layer, gate_name) is not None
    if kind == "fused" or (kind == "fused_if_ungated" and not has_gate):
        cur = g.glu(up)
    elif has_gate and kind not in {"gelu_plain", "relu_squared"}:
        gate = b.project(cur, layer, gate_name)
        cur = _gated(b, gate, up, layer, "swiglu_clamp_shexp")
    elif kind == "relu_squared":
        cur = g.like("sqr", g.unary(up))
    else:
        cur = g.unary(up)
    if b.in_block(layer, "ffn_sub_norm") is not None:
        cur = b.named_norm(cur, layer, "ffn_sub_norm")
    return b.project(cur, layer, down_name)


def experts(
    b: Building, cur: Tensor, layer: int, *, logits: Tensor | None = None, kind: str = "exps"
) -> Tensor:
    """Return the experts' part: choose (by `logits` where given), weight, compute the chosen ones, sum."""
    g, model, arch = b.g, b.model, b.arch
    count = model.number("expert_count")
    held = b.need_in_block(layer, f"ffn_down_{kind}").ne[2]
    used = min(held, model.at("expert_used_count", layer))
    width, tokens = cur.ne[0], cur.ne[1]
    if logits is None:
        logits = b.project(cur, layer, "ffn_gate_inp")
    probabilities = _probabilities(b, logits)
    selection = probabilities
    bias = b.in_block(layer, "exp_probs_b", "bias") or b.in_block(layer, "exp_probs_b")
    if bias is not None:
        selection = g.add(probabilities, bias)
    if arch.weights_before_experts:
        selection = logits
    if arch.selects_by_sigmoid:
        selection = g.unary(logits)
    if model.number("expert_group_count") > 1:
        selection = _best_groups(b, selection, count)
    table = b.in_block(layer, "ffn_gate_tid2eid")
    if table is None:
        chosen = g.top_k(selection, used)
    else:  # each token of the vocabulary has its experts
        chosen = g.get_rows(table, b.shared_input(I32, (tokens,), "tokens"))
    if held != count:
        chosen = g.cast(g.scale(g.cast(chosen, F32)), I32)
    weights = _weights(b, g.reshape(probabilities, 1, count, tokens), chosen, used)
    g.expand(weights)
    cur = g.reshape(cur, width, 1, tokens)
    if arch.weights_before_experts:
        cur = g.mul(g.repeat(cur, width, used, tokens), weights)
    cur = _activated(b, cur, layer, chosen, kind)
    out = _by_expert(b, cur, layer, f"ffn_down_{kind}", chosen)
    if not arch.weights_before_experts:
        out = g.mul(out, weights)
    g.expand(out)
    return _sum(b, out, width, used)


def _probabilities(b: Building, logits: Tensor) -> Tensor:
    g, kind = b.g, gate_kind(b)
    if kind == SOFT_MAX:
        return g.soft_max(logits)
    if kind == SIGMOID:
        return g.unary(logits)
    if kind == SQRT_SOFTPLUS:
        return g.like("sqrt", g.unary(logits))
    return logits


def gate_kind(b: Building) -> int:
    """Return how the experts' scores become probabilities."""
    named = {"soft_max": SOFT_MAX, "sigmoid": SIGMOID, "soft_max_weight": SOFT_MAX_WEIGHT}
    kind = named.get(b.arch.expert_gate)
    if kind is not None:
        return kind
    return b.model.number("expert_gating_func") or b.arch.expert_gate_default


def _best_groups(b: Building, selection: Tensor, count: int) -> Tensor:
    g, model = b.g, b.model
    groups, used = model.number("expert_group_count"), model.number("expert_group_used_count")
    tokens = selection.ne[1]
    grouped = g.reshape(selection, count // groups, groups, tokens)
    best = g.top_k(grouped, 2)
    found = g.get_rows(g.reshape(grouped, 1, *grouped.ne[:3]), best)
    sums = g.sum_rows(g.reshape(found, *found.ne[1:]))
    sums = g.reshape(sums, sums.ne[1], sums.ne[2])
    chosen = g.top_k(sums, used)
    rows = g.get_rows(grouped, chosen)
    masked = g.set_rows(g.like("fill", grouped), rows, chosen)
    return g.reshape(masked, count, tokens)


def _weights(b: Building, probabilities: Tensor, chosen: Tensor, used: int) -> Tensor:
    g, model, tokens = b.g, b.model, b.tokens_of(chosen)
    weights = g.get_rows(probabilities, chosen)
    if gate_kind(b) == SOFT_MAX_WEIGHT:
        weights = g.soft_max(g.reshape(weights, used, tokens))
        weights = g.reshape(weights, 1, used, tokens)
    norms = b.arch.expert_norm
    if norms == "yes" or (norms == "key" and bool(model.value("expert_weights_norm", default=False))):
        weights = g.reshape(weights, used, tokens)
        total = g.like("clamp", g.sum_rows(weights))
        weights = g.reshape(g.like("div", weights, total), 1, used, tokens)
    scale = model.real("expert_weights_scale")
    if b.arch.expert_scale == "key" and scale not in {0.0, 1.0}:
        weights = g.scale(weights)
    return weights


def _by_expert(b: Building, cur: Tensor, layer: int, name: str, chosen: Tensor) -> Tensor:
    g = b.g
    out = g.mul_mat_id(b.need_in_block(layer, name), cur, chosen)
    if b.arch.is_precise_down and name.startswith("ffn_down"):
        out.name = PRECISE
    scale = b.in_block(layer, name, "scale")
    if scale is not None:
        count = scale.ne[0]
        rows = g.repeat(g.reshape(scale, 1, count, 1), 1, count, cur.ne[2])
        out = g.mul(out, g.get_rows(rows, chosen))
    bias = b.in_block(layer, name, "bias")
    return out if bias is None else g.like("add_id", out, bias, chosen)


def _activated(b: Building, cur: Tensor, layer: int, chosen: Tensor, kind: str) -> Tensor:
    g = b.g
    if b.in_block(layer, "ffn_gate_up_exps") is not None:
        both = _by_expert(b, cur, layer, "ffn_gate_up_exps", chosen)
        half = (both.ne[0] // 2, both.ne[1], both.ne[2])
        gate, up = g.view(both, half, both.nb[1:3]), g.view(both, half, both.nb[1:3])
        return Tensor("glu", F32, half, (gate, up))
    up = _by_expert(b, cur, layer, f"ffn_up_{kind}", chosen)
    if b.in_block(layer, f"ffn_gate_{kind}") is None:
        up = g.unary(up)
        return g.like("sqr", up) if b.arch.expert_ffn == "relu_squared" else up
    gate = _by_expert(b, cur, layer, f"ffn_gate_{kind}", chosen)
    return _gated(b, gate, up, layer, "swiglu_clamp_exp")


def _gated(b: Building, gate: Tensor, up: Tensor, layer: int, limit: str) -> Tensor:
    """Gate, within limits where the header has some for this layer."""
    g = b.g
    if b.arch.ffn == "bounded":
        up = g.scale(g.unary(g.scale(up))) if b.model.real("activation.situ_linear_beta") else up
        return g.mul(g.mul(g.scale(g.unary(g.scale(gate))), g.unary(gate)), up)
    limits = b.model.value(limit)
    found = limits[layer] if isinstance(limits, tuple) and layer < len(limits) else limits
    if not isinstance(found, float) or found <= LEAST_LIMIT or b.arch.limits_in_one:
        return g.glu(gate, up)
    return g.mul(g.like("clamp", g.unary(gate)), g.like("clamp", up))


def _sum(b: Building, out: Tensor, width: int, used: int) -> Tensor:
    g = b.g
    views = [g.view(out, (width, out.ne[2]), (out.nb[2],)) for _ in range(used)]
    for view in views:
        g.expand(view)
    total = views[0]
    for view in views[1:]:
        total = g.add(total, view)
        g.expand(total)
    return g.cont(total) if used == 1 else total


__all__ = ["DENSE", "I32", "dense", "experts", "feed_forward"]
