"""The largest context, slot count and cache type that still fit, by bisection of the same estimate."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from llamaops.estimate.kv_cache import refused_cache
from llamaops.estimate.memory import estimate
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Load
from llamaops.launch.settings import MAX_SLOTS, PAD_TOKENS, pad

CACHE_TYPES = (("f32", 0), ("f16", 1), ("q8_0", 8), ("q5_1", 7), ("q4_0", 2))


def largest_room(
    model: Model, load: Load, host_bytes: int, device_bytes: int | None
) -> tuple[int | None, int | None, str | None]:
    """Return the largest context, the most slots and the widest cache type, each with the rest as it is.

    Units: tokens; bytes.
    """

    def fits(candidate: Load) -> bool:
        if refused_cache(model, candidate):
            return False
        found = estimate(model, candidate)
        if not found.parts:  # nothing could be worked out, which is not nothing
            return False
        if found.high("host") > host_bytes:
            return False
        return device_bytes is None or found.high("device") <= device_bytes

    limit = max(model.trained_context, load.sequence_tokens, PAD_TOKENS)
    blocks = _largest(-(-limit // PAD_TOKENS), lambda n: fits(with_context(load, n * PAD_TOKENS)))
    slots = _largest(MAX_SLOTS, lambda n: fits(with_slots(load, n)))
    names = [name for name, number in CACHE_TYPES if fits(replace(load, key_type=number, value_type=number))]
    context = None if blocks is None else blocks * PAD_TOKENS * load.streams
    return context, slots, names[0] if names else None


def with_context(load: Load, sequence_tokens: int) -> Load:
    """Return the load with another context for each sequence."""
    cells = pad(sequence_tokens)
    return replace(load, sequence_tokens=cells, context_tokens=cells * load.streams)


def with_slots(load: Load, slots: int) -> Load:
    """Return the load with another number of slots; the context of each part of the cache stays."""
    outputs = slots if load.outputs == load.slots else load.outputs
    changed = replace(load, slots=slots, outputs=outputs)
    return replace(changed, context_tokens=load.sequence_tokens * changed.streams)


def _largest(most: int, holds: Callable[[int], bool]) -> int | None:
    """Return the largest number up to `most` for which something holds that holds for all smaller ones."""
    if not holds(1):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
