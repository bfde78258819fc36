"""Take what the estimator needs from the headers of a model's files.

The tensor table does not belong into a record (thousands of lines); so it is handed over here, not published.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from llamaops.estimate.model import Model, Value, Weight
from llamaops.facts.gguf_probe import Probe
from llamaops.facts.gguf_walk import Array, Text

if TYPE_CHECKING:
    from llamaops.facts.gguf_header import Header

TOKENS = "tokenizer.ggml.tokens"


def model_of(probe: Probe) -> Model | None:
    """Return the model that was looked at, None where its headers are not all whole."""
    main = probe.main
    headers = [part.header for part in probe.parts]
    if main is None or main.header is None or probe.missing or not headers:
        return None
    if any(header is None or header.reached != "end" for header in headers):
        return None
    weights = tuple(
        Weight(tensor.name, tensor.type_id, tensor.dimensions, tensor.size_bytes)
        for header in headers
        if header is not None
        for tensor in header.tensors
    )
    keys = plain_values(main.header, probe.numbers)
    return Model(keys, weights, _vocabulary(main.header, keys))


def plain_values(header: Header, numbers: dict[str, tuple[int | float | bool, ...]]) -> dict[str, Value]:
    """Return the keys of a header as plain values, numbers finite; of arrays only those with numbers."""
    values: dict[str, Value] = {}
    for key, entry in header.entries.items():
        if isinstance(entry.value, Text):
            values[key] = entry.value.text
        elif isinstance(entry.value, Array):
            if key in numbers and all(map(math.isfinite, numbers[key])):
                values[key] = numbers[key]
        elif math.isfinite(entry.value):
            values[key] = entry.value
    return values


def _vocabulary(header: Header, keys: dict[str, Value]) -> int:
    tokens = header.entries.get(TOKENS)
    if tokens is not None and isinstance(tokens.value, Array):
        return tokens.value.count
    size = keys.get(f"{keys.get('general.architecture')}.vocab_size", 0)
    return int(size) if isinstance(size, int) else 0
