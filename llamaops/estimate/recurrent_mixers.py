"""Blocks with a recurrent state: Mamba 1 and 2, short convolutions, gated delta nets.

Source: src/models/mamba-base.cpp, lfm2.cpp, delta-net-base.cpp and qwen35.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.graph import F32, Tensor, row_bytes
from llamaops.estimate.recurrent import conv_width, state_width


def conv_state(b: Building, layer: int) -> Tensor:
    """Return a layer's convolution state as it lies in its cache."""
    return b.state_bytes_rows(layer, "r", conv_width(b.model))


def scan_state(b: Building, layer: int) -> Tensor:
    """Return a layer's scan state as it lies in its cache."""
    return b.state_bytes_rows(layer, "s", state_width(b.model))


def _per_sequence(b: Building, cur: Tensor) -> Tensor:
    return b.g.reshape(cur, cur.ne[0], b.tokens // b.sequences, b.sequences)


def _store_conv(b: Building, state: Tensor, padded: Tensor, kept: int, channels: int) -> None:
    g, n = b.g, b.sequences
    last = g.view(padded, (kept, channels, n), padded.nb[1:3])
    last = g.cont(last) if b.arch.order == "pooled" else last
    g.expand(g.copy(last, g.view(state, (kept * channels, n), (state.nb[1],))))


def mamba(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a Mamba 1 block."""
    g, model, n = b.g, b.model, b.sequences
    kept, inner = model.number("ssm.conv_kernel") - 1, model.number("ssm.inner_size")
    states, rank = model.number("ssm.state_size"), model.number("ssm.time_step_rank")
    each = b.tokens // n
    state = conv_state(b, layer)
    conv = g.reshape(b.take_state(state), kept, inner, n)
    xz = b.project(_per_sequence(b, cur), layer, "ssm_in")
    x = g.view(xz, (inner, xz.ne[1], xz.ne[2]), xz.nb[1:3])
    z = g.view(xz, (inner, xz.ne[1], xz.ne[2]), xz.nb[1:3])
    padded = g.concat(conv, g.transpose(x), 0)
    _store_conv(b, state, padded, kept, inner)
    x = g.ssm_conv(padded, b.need_in_block(layer, "ssm_conv1d"))
    x = g.unary(g.add(x, b.need_in_block(layer, "ssm_conv1d", "bias")))
    x_db = b.project(x, layer, "ssm_x")
    dt = g.view(x_db, (rank, each, n), x_db.nb[1:3])
    grouped = (states * x_db.nb[0], x_db.nb[1], x_db.nb[2])
    bb = g.view(x_db, (states, 1, each, n), grouped)
    cc = g.view(x_db, (states, 1, each, n), grouped)
    norms = b.in_block(layer, "ssm_dt_norm"), b.in_block(layer, "ssm_b_norm"), b.in_block(layer, "ssm_c_norm")
    if model.value("ssm.dt_b_c_rms", default=False) or all(norm is not None for norm in norms):
        dt, bb, cc = (b.norm(t, w, kind="rms") for t, w in zip((dt, bb, cc), norms, strict=True))
    else:
        dt = g.cont(dt)
    dt = b.project(dt, layer, "ssm_dt")
    cur = x
    x = g.reshape(x, 1, inner, each, n)
    scans = scan_state(b, layer)

    def scan(rows: Tensor, ids: Tensor) -> Tensor:
        ssm = g.reshape(rows, states, 1, inner, b.load.slots)
        return ssm_scan(ssm, x, dt, b.need(f"blk.{layer}.ssm_a"), bb, cc, ids)

    y_ssm = b.take_state(scans, scan)
    g.expand(g.copy(g.view(y_ssm, (states * inner * n,)), g.view(scans, (states * inner * n,))))
    y = g.view(y_ssm, (inner, each, n), x.nb[2:4])
    y = g.add(y, g.mul(cur, b.need(f"blk.{layer}.ssm_d")))
    y = g.glu(g.cont(z), y)
    cur = b.project(y, layer, "ssm_out")
    return g.reshape(cur, cur.ne[0], b.tokens)


def ssm_scan(*sources: Tensor) -> Tensor:
    """Return the result of a scan: what it gives for each token, and the new states behind it."""
    state, x, ids = sources[0], sources[1], sources[6]
    return Tensor(
        "ssm_scan", F32, (x.elements + state.ne[0] * state.ne[1] * state.ne[2] * ids.ne[0],), sources
    )


def mamba2(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a Mamba 2 block."""
    g, model, n = b.g, b.model, b.sequences
    kept, inner = model.number("ssm.conv_kernel") - 1, model.number("ssm.inner_size")
    states, heads = model.number("ssm.state_size"), model.number("ssm.time_step_rank")
    groups = model.number("ssm.group_count")
    width, channels, each = inner // heads, inner + 2 * groups * states, b.tokens // n
    state = conv_state(b, layer)
    conv = g.reshape(b.take_state(state), kept, channels, n)
    if b.load.build.projects_rows:
        joint = _per_sequence(b, b.project(cur, layer, "ssm_in"))
    else:
        joint = b.project(_per_sequence(b, cur), layer, "ssm_in")
    z = g.view(joint, (width, heads, each, n), (width * joint.nb[0], joint.nb[1], joint.nb[2]))
    xbc = g.view(joint, (channels, each, n), joint.nb[1:3])
    dt = g.view(joint, (heads, each, n), joint.nb[1:3])
    padded = g.concat(conv, g.transpose(xbc), 0)
    _store_conv(b, state, padded, kept, channels)
    xbc = g.ssm_conv(padded, b.need_in_block(layer, "ssm_conv1d"))
    bias = b.in_block(layer, "ssm_conv1d", "bias")
    xbc = g.unary(xbc if bias is None else g.add(xbc, bias))
    x = g.view(xbc, (width, heads, each, n), (width * xbc.nb[0], xbc.nb[1], xbc.nb[2]))
    grouped = (states * xbc.nb[0], xbc.nb[1], xbc.nb[2])
    bb = g.view(xbc, (states, groups, each, n), grouped)
    cc = g.view(xbc, (states, groups, each, n), grouped)
    dt = g.add(g.cont(dt), b.need_in_block(layer, "ssm_dt", "bias"))
    scans = scan_state(b, layer)

    def scan(rows: Tensor, ids: Tensor) -> Tensor:
        ssm = g.reshape(rows, states, width, heads, b.load.slots)
        return ssm_scan(ssm, x, dt, b.need(f"blk.{layer}.ssm_a"), bb, cc, ids)

    y_ssm = b.take_state(scans, scan)
    g.expand(g.copy(g.view(y_ssm, (states * inner, n, 1)), g.view(scans, (states * inner, n, 1))))
    y = g.view(y_ssm, (width, heads, each, n), (x.nb[1], heads * x.nb[1], each * heads * x.nb[1]))
    y = g.add(y, g.mul(x, b.need(f"blk.{layer}.ssm_d")))
    y = g.glu(g.cont(z), y)
    norm = b.in_block(layer, "ssm_norm")
    if norm is not None:
        y = b.norm(g.reshape(y, inner // groups, groups, each, n), norm, kind="rms")
    if b.load.build.projects_rows:
        return b.project(g.reshape(y, inner, b.tokens), layer, "ssm_out")
    cur = b.project(g.reshape(y, inner, each, n), layer, "ssm_out")
    return g.reshape(cur, cur.ne[0], b.tokens)


def short_convolution(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a gated short convolution."""
    g, model, n = b.g, b.model, b.sequences
    kept, width = model.number("shortconv.l_cache") - 1, model.width
    joint = b.project(_per_sequence(b, cur), layer, "shortconv.in_proj")
    part = (joint.ne[0] // 3, joint.ne[1], joint.ne[2])
    bb, cc, x = (g.view(joint, part, joint.nb[1:3]) for _ in range(3))
    bx = g.transpose(g.mul(bb, x))
    state = conv_state(b, layer)
    conv = g.reshape(b.take_state(state), kept, width, n)
    bx = g.concat(conv, bx, 0)
    _store_conv(b, state, bx, kept, width)
    out = g.ssm_conv(bx, b.need_in_block(layer, "shortconv.conv"))
    y = b.project(g.mul(cc, out), layer, "shortconv.out_proj")
    return g.reshape(y, y.ne[0], b.tokens)


def normed_length(b: Building, x: Tensor) -> Tensor:
    """Norm to length one; recent builds do so by the mean of squares."""
    if b.load.build.norms_by_mean:
        return b.g.scale(b.g.like("rms_norm", x))
    return b.g.like("l2_norm", x)


def delta_net(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a gated delta net block, computed by the engine's own operator."""
    g, model, n = b.g, b.model, b.sequences
    inner, key = model.number("ssm.inner_size"), model.number("ssm.state_size")
    key_heads, value_heads = model.number("ssm.group_count"), model.number("ssm.time_step_rank")
    value, each = inner // value_heads, b.tokens // n
    mixed, z, beta, gate = _delta_inputs(b, cur, layer, each)
    kernel = b.need_in_block(layer, "ssm_conv1d")
    kept, channels = kernel.ne[0] - 1, inner + 2 * key_heads * key
    state = conv_state(b, layer)
    conv = g.reshape(b.take_state(state), kept, channels, n)
    padded = g.concat(conv, g.transpose(mixed), 0)
    _store_conv(b, state, padded, kept, channels)
    scans = scan_state(b, layer)
    memory = g.reshape(b.take_state(scans), value, value, value_heads, n)
    out = g.unary(g.ssm_conv(padded, kernel))
    row = row_bytes(F32, key * key_heads * 2 + value * value_heads)
    key_nb = (row_bytes(F32, key), row, row * each)
    q = g.view(out, (key, key_heads, each, n), key_nb)
    k = g.view(out, (key, key_heads, each, n), key_nb)
    v = g.view(out, (value, value_heads, each, n), (row_bytes(F32, value), row, row * each))
    q, k = (normed_length(b, t) for t in (q, k))
    if b.arch.recurrent == "delta_joint" and key_heads != value_heads:
        q, k = (_repeated(b, t, value_heads) for t in (q, k))
    output = delta_step(b, q, k, v, gate, beta, memory, scans)
    z = g.reshape(z, value, value_heads, each, n)
    normed = b.norm(output, b.in_block(layer, "ssm_norm"), kind="rms")
    cur = g.reshape(g.mul(normed, g.unary(z)), value * value_heads, each, n)
    cur = b.project(cur, layer, "ssm_out")
    return g.reshape(cur, model.width, b.tokens)


def _repeated(b: Building, heads: Tensor, wanted: int) -> Tensor:
    g = b.g
    width, count, each, n = heads.ne
    flat = g.reshape(heads, width, 1, count, each * n)
    return g.reshape(g.repeat(flat, width, wanted // count, count, each * n), width, wanted, each, n)


def delta_step(
    b: Building, q: Tensor, k: Tensor, v: Tensor, gate: Tensor, beta: Tensor, memory: Tensor, scans: Tensor
) -> Tensor:
    """Run the operator of a delta net and store the new states."""
    g = b.g
    value, heads, each, n = v.ne
    shape = (value * heads, each * n + value * n)
    result = Tensor("gated_delta_net", F32, shape, (q, k, v, gate, beta, memory))
    nb = (row_bytes(F32, value), row_bytes(F32, value * heads), row_bytes(F32, value * heads * each))
    output = g.view(result, (value, heads, each, n), nb)
    nb = (
        row_bytes(F32, value),
        row_bytes(F32, value * value),
        row_bytes(F32, value * value * heads),
    )
    new = g.view(result, (value, value, heads, n), nb)
    g.expand(g.copy(new, g.view(scans, (scans.ne[0], n), (scans.nb[1],))))
    return output


def _delta_inputs(b: Building, cur: Tensor, layer: int, each: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g, n = b.g, b.sequences
    heads = b.model.number("ssm.time_step_rank")
    if b.in_block(layer, "attn_qkv") is None:
        mixed, z = _joint_inputs(b, cur, layer, each)
    else:
        mixed = _per_sequence(b, b.project(cur, layer, "attn_qkv"))
        z = b.project(cur, layer, "attn_gate")
    if b.arch.recurrent == "delta_joint":
        beta, alpha = _joint_beta(b, cur, layer, each)
    else:
        beta = g.unary(g.reshape(b.project(cur, layer, "ssm_beta"), 1, heads, each, n))
        alpha = g.reshape(b.project(cur, layer, "ssm_alpha"), heads, each, n)
    alpha = g.unary(g.add(alpha, b.need_in_block(layer, "ssm_dt", "bias")))
    gate = g.reshape(g.mul(alpha, b.need(f"blk.{layer}.ssm_a")), 1, heads, each, n)
    return mixed, z, beta, gate


def _joint_inputs(b: Building, cur: Tensor, layer: int, each: int) -> tuple[Tensor, Tensor]:
    """Return what is convolved, and the gate, where one matrix makes both (older files of qwen3next)."""
    g, n, model = b.g, b.sequences, b.model
    keys, key = model.number("ssm.group_count"), model.number("ssm.state_size")
    values = model.number("ssm.inner_size") // keys
    joint = g.reshape(b.project(cur, layer, "ssm_in"), 2 * (key + values), keys, each, n)
    q, k, v, z = (g.view(joint, (size, keys, each, n), joint.nb[1:4]) for size in (key, key, values, values))
    z = g.cont(z)
    q, k, v = (g.cont(t, t.ne[0] * keys, each, n) for t in (q, k, v))
    return g.concat(g.concat(q, k, 0), v, 0), z


def _joint_beta(b: Building, cur: Tensor, layer: int, each: int) -> tuple[Tensor, Tensor]:
    """Return beta and alpha where one matrix makes both (qwen3next)."""
    g, n = b.g, b.sequences
    heads, keys = b.model.number("ssm.time_step_rank"), b.model.number("ssm.group_count")
    both = g.reshape(b.project(cur, layer, "ssm_ba"), 2 * heads // keys, keys, each, n)
    part = (heads // keys, keys, each, n)
    beta = g.view(both, part, both.nb[1:4])
    beta = g.unary(beta if b.load.build.mixes_inputs else g.cont(beta))
    alpha = g.cont(g.view(both, part, both.nb[1:4]), heads, each, n)
    return g.reshape(beta, 1, heads, each, n), alpha
