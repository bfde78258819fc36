"""How the drivers of cards lay out memory: to which multiples, and in pieces of which size.

Source: get_alignment and get_max_size of the buffer types in ggml-vulkan.cpp and ggml-cuda.cu of llama.cpp. A
Vulkan device names its own alignment (minStorageBufferOffsetAlignment): 16 was seen, others have 4 to 64,
which changes a sum by less than a page.
"""

from __future__ import annotations

import msgspec

ENDLESS = 2**62


class CardMemory(msgspec.Struct, frozen=True):
    """One driver's rules."""

    alignment: int
    """Bytes to a multiple of which tensors are laid out."""
    chunk_bytes: int
    """Largest piece that a buffer is made of, unless one tensor is larger."""
    host_alignment: int
    """The same as `alignment` for host memory that the card can read directly."""


_VULKAN = CardMemory(alignment=16, chunk_bytes=2**30, host_alignment=64)
_CARDS = {
    "vulkan": _VULKAN,
    "cuda": CardMemory(alignment=128, chunk_bytes=ENDLESS, host_alignment=32),
}


def memory_of(card: str) -> CardMemory:
    """Return the rules of a driver; one that we do not know is taken as Vulkan."""
    return _CARDS.get(card, _VULKAN)
