"""The fact group of a load log."""

from __future__ import annotations

from typing import Literal

from llamaops.facts.load_log_buffers import Buffer
from llamaops.schema.fact import Fact, Known
from llamaops.schema.shape import Shape


class LogLine(Shape, frozen=True, kw_only=True):
    """A warning or an error of the log."""

    number: int
    """Line number, counted from 1."""
    level: Literal["error", "warn"]
    """As the engine said, or by the text where it did not say."""
    text: str
    """The line without its prefix, cut at 300 characters."""
    known: str | None = None
    """Id of the kind of message; none for one that llamaops does not know."""
    harmless: bool = False
    """Whether it is known to say nothing about load or answers."""


class LoadDevice(Shape, frozen=True, kw_only=True):
    """A device that the engine listed."""

    name: str
    """As in --list-devices, such as `CUDA0`; `CPU` is in the list of recent releases too."""
    description: str
    """Product name, or host and port for an RPC device."""
    total_bytes: int | None = None
    """Memory in bytes; none where the line does not say."""
    free_bytes: int | None = None
    """Free memory in bytes; none where the line does not say."""
    software: bool = False
    """Whether the description is of a driver that computes on the CPU, such as llvmpipe."""


class Offload(Shape, frozen=True, kw_only=True):
    """The engine's count of offloaded layers; supporting evidence only, never proof of a device."""

    layers: int
    """Layers that it calls offloaded."""
    of: int
    """Layers and the output, together."""


class BreakdownRow(Shape, frozen=True, kw_only=True):
    """One row of the engine's own memory table, in bytes rounded to MiB by the engine."""

    kind: Literal["device", "host", "buffer_type"]
    """What the row is about."""
    name: str
    """Device or buffer type."""
    model_bytes: int
    """Weights."""
    context_bytes: int
    """KV cache and recurrent state."""
    compute_bytes: int
    """Compute buffers."""


class RequestTiming(Shape, frozen=True, kw_only=True):
    """What the server logged about one request that ended."""

    slot: int | None
    """Slot id; none where the release does not say."""
    task: int | None
    """Task id; none where the release does not say."""
    prompt_tokens: int | None = None
    """Tokens of the prompt that were evaluated, without those from the cache."""
    prompt_ms: float | None = None
    """Milliseconds for them."""
    prompt_processing_per_s: float | None = None
    """Prompt processing rate as printed, in tokens per second; not a time to first token."""
    generated_tokens: int | None = None
    """Tokens generated."""
    generation_ms: float | None = None
    """Milliseconds for them."""
    token_generation_per_s: float | None = None
    """Token generation rate as printed, in tokens per second; recent releases leave out the first token."""


class LoadFacts(Shape, frozen=True, kw_only=True):
    """What the load log says; a value that verbosity hides is `not_attempted`."""

    form: Fact[str]
    """`text`, `json_lines`, `json_lines_2024` or `key_value_2024`."""
    era: Fact[str]
    """The year (`2023` to `2026`) that the wording of most recognised lines fits."""
    lines: int
    """Lines read."""
    verbosity: Fact[int]
    """The verbosity that the engine says it has."""
    library_lines: Fact[bool]
    """Whether lines of the library are in the log at all; without them nothing follows from absence."""
    build_number: Fact[int]
    """Build number in the log."""
    build_commit: Fact[str]
    """Commit (or a distributor's word) in the log."""
    devices_present: Fact[tuple[LoadDevice, ...]]
    """Devices that the engine listed; recent releases list the CPU too."""
    devices_used: Fact[tuple[str, ...]]
    """Devices that the engine says it uses for the model; supporting evidence."""
    model_path: Fact[str]
    """The file of the main model."""
    model_loaded: Fact[bool]
    """True after the engine said loaded; False after it said that it failed."""
    loaded_line: Fact[int]
    """Number of the line that says loaded."""
    router_mode: Fact[bool]
    """Whether the server runs as a router without a model of its own."""
    failure: Fact[LogLine]
    """The first error line of the last load attempt, when the load failed."""
    n_ctx_train: Fact[int]
    """Context the model was trained for, in tokens."""
    offload: Fact[Offload]
    """The count of offloaded layers; supporting evidence only."""
    weight_buffers: Fact[tuple[Buffer, ...]]
    """Buffers of the weights, by name; the proof of where they lie."""
    weights_on_devices_bytes: Fact[int]
    """Bytes of weights on devices; from the memory table where buffer lines are hidden."""
    weights_on_host_bytes: Fact[int]
    """Bytes of weights in host memory; a span of the file with memory mapping."""
    kv_buffers: Fact[tuple[Buffer, ...]]
    """Buffers of the KV cache."""
    kv_type_k: Fact[str]
    """Type of the K cache."""
    kv_type_v: Fact[str]
    """Type of the V cache."""
    state_buffers: Fact[tuple[Buffer, ...]]
    """Buffers of recurrent state."""
    compute_buffers: Fact[tuple[Buffer, ...]]
    """Compute buffers."""
    output_buffers: Fact[tuple[Buffer, ...]]
    """Output buffers."""
    breakdown: Fact[tuple[BreakdownRow, ...]]
    """The last memory table of the engine."""
    graph_splits: Fact[int]
    """Splits of the graph; many mean that work falls back to the CPU."""
    n_ctx: Fact[int]
    """Context of all sequences in tokens."""
    n_ctx_seq: Fact[int]
    """Context of one sequence in tokens."""
    n_batch: Fact[int]
    """Logical batch in tokens."""
    n_ubatch: Fact[int]
    """Physical batch in tokens."""
    n_seq_max: Fact[int]
    """Sequences."""
    kv_unified: Fact[bool]
    """Whether all slots share one KV cache."""
    flash_attention: Fact[str]
    """`enabled`, `disabled` or `auto`."""
    n_slots: Fact[int]
    """Slots of the server."""
    n_ctx_slot: Fact[int]
    """Context of a slot in tokens, capped by what the model was trained for."""
    listening: tuple[str, ...]
    """URLs that the server listens on."""
    listening_line: Fact[int]
    """Number of the line that means ready."""
    thinking: Fact[bool]
    """Whether the engine takes the chat template for one that thinks."""
    errors: tuple[LogLine, ...]
    """Error lines, the first and the last ones when there are many."""
    error_count: int
    """Error lines in all."""
    errors_after_loaded: tuple[LogLine, ...]
    """Error lines after the model was loaded, at most 20."""
    warnings: tuple[LogLine, ...]
    """Warning lines, the first and the last ones when there are many."""
    warning_count: int
    """Warning lines in all."""
    unmatched_count: int
    """Warnings and errors of a kind that llamaops does not know."""
    requests: tuple[RequestTiming, ...]
    """Timings of the last requests, at most 50."""

    @property
    def first_error(self) -> Fact[str]:
        """The text of `failure`."""
        if isinstance(self.failure, Known):
            return Known(value=self.failure.value.text, source=self.failure.source)
        return self.failure
