"""The published fact group about memory: what a load will take, and what there is."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape


class MemoryPart(Shape, frozen=True, kw_only=True):
    """One part of what a load takes; both ends are equal where the figure is exact."""

    name: str
    """`weights`, `KV cache`, `windowed KV cache`, `indexer cache`, `recurrent state`, `compute`, `output`,
    `projector` ..."""
    place: Literal["host", "device"]
    """Where it lies."""
    low_bytes: int
    """Lower end."""
    high_bytes: int
    """Upper end."""
    formula: str
    """The formula and where it comes from."""


class Room(Shape, frozen=True, kw_only=True):
    """The largest settings that still fit, everything else as planned."""

    context_tokens: int | None = None
    """Largest context of all slots; none where not even the smallest fits."""
    slots: int | None = None
    """Most slots; none where not even one fits."""
    cache_type: str | None = None
    """The widest cache type that fits."""


class EngineAnswer(Shape, frozen=True, kw_only=True):
    """What an installed engine itself projects."""

    program: str
    """The program that was asked."""
    front_end: Literal["server", "fit-params"]
    """Whom it speaks for: llama-fit-params reserves results for a whole batch, the server one row a slot."""
    model_mib: float
    """Weights, rounded by the engine to MiB."""
    context_mib: float
    """Caches and recurrent state, rounded by the engine to MiB."""
    compute_mib: float
    """Compute buffers, rounded by the engine to MiB."""


class FitFacts(Shape, frozen=True, kw_only=True):
    """What a load will take, worked out before anything is loaded."""

    model_path: str
    """The model."""
    architecture: str
    """Its architecture; empty where the header names none."""
    is_described: bool
    """Whether the architecture has a description of its own; without, compute is a band."""
    front_end: Literal["server", "completion", "bench"]
    """Which program the figures are for."""
    plan: str
    """The settings as the engine resolves them."""
    context_tokens: int
    """Context of all slots."""
    slots: int
    """Slots."""
    parts: tuple[MemoryPart, ...]
    """What the load takes, by part and place."""
    unknown: tuple[str, ...] = ()
    """What could not be worked out; then all sums are lower bounds."""
    host_bytes: Fact[int]
    """Host memory, upper end; unknown where a part is."""
    host_low_bytes: int
    """Host memory, lower end."""
    device_bytes: Fact[int]
    """Memory of the card, upper end; unknown where a part is."""
    device_low_bytes: int
    """Memory of the card, lower end."""
    host_available_bytes: Fact[int]
    """What the host and the control group leave."""
    device_free_bytes: Fact[int]
    """What is free on all cards together."""
    prompt_cache_bytes: Fact[int]
    """What the server may take on top for prompts that it keeps; it grows to this only with use."""
    room: Fact[Room]
    """The largest settings that fit."""
    engine: Fact[EngineAnswer]
    """What the installed engine projects."""
    naive_bytes: int
    """What file size and a full cache would give, for comparison."""
