"""Mamba 2 as PLaMo 2 has it: parts laid out by heads, and norms of what the scan reads.

Source: src/models/plamo2.cpp of llama.cpp.
"""

from __future__ import annotations

from llamaops.estimate.building import Building
from llamaops.estimate.graph import Tensor
from llamaops.estimate.recurrent_mixers import conv_state, scan_state, ssm_scan


def mamba_by_heads(b: Building, cur: Tensor, layer: int) -> Tensor:
    """Return a recurrent block of PLaMo 2."""
    g, model, n = b.g, b.model, b.sequences
    kept, inner = model.number("ssm.conv_kernel") - 1, model.number("ssm.inner_size")
    states, heads = model.number("ssm.state_size"), model.number("ssm.time_step_rank")
    width, each = inner // heads, b.tokens // n
    state = conv_state(b, layer)
    conv = g.reshape(b.take_state(state), kept, inner, n)
    joint = b.project(g.reshape(cur, cur.ne[0], each, n), layer, "ssm_in")
    joint = g.cont(g.permute(joint, 0, 2, 1, 3), width * 2, heads, each, n)
    x, z = (g.view(joint, (width, heads, each, n), joint.nb[1:4]) for _ in range(2))
    x = g.cont(x, inner, each, n)
    padded = g.concat(conv, g.transpose(x), 0)
    last = g.view(padded, (kept, inner, n), padded.nb[1:3])
    g.expand(g.copy(last, g.view(state, (kept * inner * n,))))
    x = g.unary(g.ssm_conv(padded, b.need_in_block(layer, "ssm_conv1d")))
    read = b.project(x, layer, "ssm_x")
    bb, cc, dt = (
        b.norm(g.view(read, (size, each, n), read.nb[1:3]), b.in_block(layer, f"ssm_{name}_norm"))
        for size, name in ((states, "b"), (states, "c"), (read.ne[0] - 2 * states, "dt"))
    )
    dt = b.project(dt, layer, "ssm_dt")
    decay = g.reshape(b.need(f"blk.{layer}.ssm_a"), 1, heads)
    x = g.view(x, (width, heads, each, n), (width * x.nb[0], x.nb[1], x.nb[2]))
    bb, cc = (g.view(t, (states, 1, each, n), (t.nb[1], t.nb[1], t.nb[2])) for t in (bb, cc))
    scans = scan_state(b, layer)

    def scan(rows: Tensor, ids: Tensor) -> Tensor:
        return ssm_scan(g.reshape(rows, states, width, heads, b.load.slots), x, dt, decay, bb, cc, ids)

    y_ssm = b.take_state(scans, scan)
    g.expand(g.copy(g.view(y_ssm, (states * inner * n,)), g.view(scans, (states * inner * n,))))
    y = g.view(y_ssm, (width, heads, each, n), x.nb[1:4])
    y = g.add(y, g.mul(x, g.reshape(b.need(f"blk.{layer}.ssm_d"), 1, heads)))
    y = g.glu(g.cont(z), y)
    cur = b.project(g.view(y, (inner, each, n), (y.nb[2], y.nb[3])), layer, "ssm_out")
    return g.reshape(cur, cur.ne[0], b.tokens)
