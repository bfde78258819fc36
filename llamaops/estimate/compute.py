"""Bytes of the compute buffer, by replaying the engine's allocator on the graph it would reserve.

Source: llama_context::sched_reserve: the graph of a whole batch, one row of results for each sequence.
"""

from __future__ import annotations

from llamaops.estimate.allocator import CPU_ALIGNMENT, Replay
from llamaops.estimate.architectures import Architecture
from llamaops.estimate.decoder import reserved_graph
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load


def host_compute_bytes(model: Model, architecture: Architecture, load: Load) -> int:
    """Return the size of the compute buffer of a model that runs on the processor.

    Units: bytes. Raises: KeyError when the file lacks a tensor that the architecture needs.
    """
    graph = reserved_graph(model, architecture, load)
    return Replay((CPU_ALIGNMENT,)).run(graph)[0]
