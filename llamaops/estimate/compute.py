"""Bytes of the compute buffers, by replaying the engine's allocator on the graph it would reserve.

Source: llama_context::sched_reserve: the graph of a whole batch, one row of results for each sequence.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from llamaops.estimate.allocator import CPU_ALIGNMENT, Buffer, Replay
from llamaops.estimate.architectures import Architecture
from llamaops.estimate.cards import memory_of
from llamaops.estimate.decoder import reserved_graph
from llamaops.estimate.model import Model
from llamaops.estimate.placement import flash_runs_beside_layers, place_graph
from llamaops.estimate.plan import Layout, Load

Band = tuple[int, int]
SAFETY = 1.3
"""By how much an architecture that we do not know may need more than any kind that we know."""


class ComputeBytes(msgspec.Struct, frozen=True):
    """Bytes of the compute buffers on both sides, each as a band."""

    host: Band
    device: Band
    is_replay: bool
    """Whether it is a replay of the architecture's own graph."""


def compute_bytes(
    model: Model, architecture: Architecture | None, layout: Layout, load: Load
) -> ComputeBytes | None:
    """Return the sizes of the compute buffers, None where no graph can be made.

    Units: bytes.
    """
    if architecture is not None:
        try:
            host, device = replayed(model, architecture, load)
        except (KeyError, ValueError, ZeroDivisionError, IndexError):
            pass
        else:
            return ComputeBytes((host, host), (device, device), is_replay=True)
    return _band(model, layout, load)


def settled(model: Model, architecture: Architecture | None, load: Load) -> Load:
    """Return the load as the engine will run it: it may switch automatic flash attention off.

    Source: llama_context::resolve_fused_ops: off where the operator would not run where its layer lies.
    """
    if architecture is not None and architecture.order == "compressed":
        load = replace(load, is_unified=False)  # each sequence has a cache, as large as all would share
    if not (load.flash_is_auto and load.flash_attention and load.has_card and architecture is not None):
        return load
    try:
        graph = reserved_graph(model, architecture, replace(load, batch_tokens=load.slots))
        runs = flash_runs_beside_layers(graph, model, load)
    except (KeyError, ValueError, ZeroDivisionError, IndexError):
        return load
    return load if runs else replace(load, flash_attention=False, was_switched_off=True)


def replayed(model: Model, architecture: Architecture, load: Load) -> tuple[int, int]:
    """Return the bytes on the host and on the card.

    Units: bytes. Raises: KeyError when the file lacks a tensor that the architecture needs.
    """
    graph = reserved_graph(model, architecture, load)
    if not load.has_card:
        return Replay([Buffer(CPU_ALIGNMENT)]).run(graph)[0], 0
    placed = place_graph(graph, model, load)
    card = memory_of(load.card)
    buffers = [Buffer(card.host_alignment, card.chunk_bytes), Buffer(card.alignment, card.chunk_bytes)]
    host, device = Replay(buffers).run(placed)
    return host, device


_KINDS = (
    Architecture(),
    Architecture(order="parallel"),
    Architecture(head_norm="rows"),
    Architecture(ffn="fused"),
    Architecture(attention="mla"),
)


def _band(model: Model, layout: Layout, load: Load) -> ComputeBytes | None:
    """Return the span of the replays of the kinds of block that the tensors allow."""
    found = []
    for kind in _KINDS:
        try:
            found.append(replayed(model, kind, load))
        except (KeyError, ValueError, ZeroDivisionError, IndexError):
            continue
    if not found:
        found = [(_smallest(model, layout, load), 0)]
    hosts, devices = [host for host, _ in found], [device for _, device in found]
    return ComputeBytes(
        (min(hosts), int(max(hosts) * SAFETY)), (min(devices), int(max(devices) * SAFETY)), is_replay=False
    )


def _smallest(model: Model, layout: Layout, load: Load) -> int:
    """Return what any graph needs: the mask, the residual and the widest matrix's result."""
    del layout
    tokens = load.batch_tokens
    widest = max(
        (w.dimensions[1] for w in model.weights if w.block is not None and len(w.dimensions) > 1), default=0
    )
    mask = load.sequence_tokens * tokens * (2 if load.flash_attention else 4)
    return mask + 4 * tokens * (3 * model.width + 2 * widest)
