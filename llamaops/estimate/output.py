"""Bytes of the buffer that results are handed out in.

Source: llama_context::output_reserve: a row of logits for each sequence, and one of
embeddings where asked for.
"""

from __future__ import annotations

from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load, architecture_of

F32_BYTES = 4


def output_bytes(model: Model, load: Load) -> int:
    """Return the bytes of the output buffer, which lies in host memory.

    Units: bytes.
    """
    out_width = model.number("embedding_length_out", model.width)
    architecture = architecture_of(model)
    if architecture is not None and architecture.order in {"compressed", "pooled"}:
        out_width *= model.number("hyper_connection.count")
    keeps = load.embeddings or (architecture is not None and architecture.reads_encoder)
    return F32_BYTES * load.slots * (model.vocabulary + (out_width if keeps else 0))
