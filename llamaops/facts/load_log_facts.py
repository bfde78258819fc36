"""From what a reader remembers to the fact group: which load counts, and why a value is unknown."""

from __future__ import annotations

from typing import TypeVar

from llamaops.facts.load_log_buffers import Buffer, buffer_of
from llamaops.facts.load_log_state import Context, Pass, Sizes, State
from llamaops.facts.load_log_types import LoadFacts, LogLine, Offload
from llamaops.schema.fact import Fact, Known, Source, Unknown

T = TypeVar("T")

SHOWS_LIBRARY_LINES = 4
"""The verbosity from which builds since May 2026 show the lines of the library."""
EVIDENCE_HINT = "run with -lv 4 (or --verbosity 4), see --help"


def loaded(state: State) -> bool | None:
    """Say whether the model was loaded, whether that failed, or None when the log says neither."""
    if state.loaded_line is not None and state.loaded_line > (state.failed_line or 0):
        return True
    return False if state.failed_line is not None else None


def facts_of(state: State, source: Source) -> LoadFacts:
    """Make the fact group."""
    say = _Words(state, source)
    main = state.main_pass()
    context = main.contexts[0]
    weights = _buffers(main.weights, state)
    devices = say.known_or(
        tuple(state.devices.values()) if state.devices or state.device_list_seen else None, "the devices"
    )
    return LoadFacts(
        form=say.plain(state.form or ("text" if state.lines else None), "anything"),
        era=say.plain(_era(state), "a recognised message"),
        lines=state.lines,
        verbosity=say.plain(state.verbosity, "the verbosity"),
        library_lines=_library_lines(state, say),
        build_number=say.known_or(state.build[0] if state.build else None, "the build"),
        build_commit=say.known_or(state.build[1] if state.build else None, "the build"),
        devices_present=devices,
        devices_used=say.known_or(_devices_used(state, main), "a device that it uses"),
        model_path=say.plain(state.local_model or state.named_model or main.path, "the model file"),
        model_loaded=_model_loaded(state, say),
        loaded_line=say.plain(state.loaded_line, "that the model is loaded"),
        router_mode=_router(state, say),
        failure=_failure(state, say),
        n_ctx_train=say.known_or(main.n_ctx_train, "the trained context"),
        offload=say.known_or(_offload(main), "offloaded layers"),
        weight_buffers=say.known_or(weights or None, "a buffer of the weights"),
        weights_on_devices_bytes=_weights(state, say, weights, on_devices=True),
        weights_on_host_bytes=_weights(state, say, weights, on_devices=False),
        kv_buffers=say.known_or(_buffers(context.kv, state) or None, "a KV buffer"),
        kv_type_k=say.known_or(_kv_type(context, 0), "the type of the K cache"),
        kv_type_v=say.known_or(_kv_type(context, 1), "the type of the V cache"),
        state_buffers=say.known_or(_buffers(context.state, state) or None, "recurrent state"),
        compute_buffers=say.known_or(_buffers(context.compute, state) or None, "a compute buffer"),
        output_buffers=say.known_or(_buffers(context.output, state) or None, "an output buffer"),
        breakdown=say.known_or(tuple(state.breakdown) if state.breakdown else None, "a memory table"),
        graph_splits=say.number(context, "splits"),
        n_ctx=say.number(context, "n_ctx"),
        n_ctx_seq=say.number(context, "n_ctx_seq"),
        n_batch=say.number(context, "n_batch"),
        n_ubatch=say.number(context, "n_ubatch"),
        n_seq_max=say.number(context, "n_seq_max"),
        kv_unified=say.known_or(_kv_unified(state, context), "whether the KV cache is unified"),
        flash_attention=say.known_or(_flash_attention(context), "flash attention"),
        n_slots=say.plain(state.n_slots, "the slots"),
        n_ctx_slot=say.plain(state.n_ctx_slot, "the context of a slot"),
        listening=tuple(state.urls),
        listening_line=say.plain(state.ready_line, "that the server is ready"),
        thinking=say.known_or(state.thinking, "whether the chat template thinks"),
        errors=state.errors.kept(),
        error_count=state.errors.count,
        errors_after_loaded=tuple(state.errors_after),
        warnings=state.warnings.kept(),
        warning_count=state.warnings.count,
        unmatched_count=state.unmatched,
        requests=state.requests.kept(),
    )


class _Words:
    """Makes facts, with the right reason where a value is missing."""

    def __init__(self, state: State, source: Source) -> None:
        self._state = state
        self._source = source

    def plain(self, value: T | None, what: str) -> Fact[T]:
        """Return a fact that every verbosity from the default on would show."""
        if value is not None:
            return Known(value=value, source=self._source)
        quiet = self._state.verbosity is not None and self._state.verbosity < 3  # noqa: PLR2004 - the default
        if quiet:
            return self._hidden(what)
        return Unknown(why="absent", detail=f"the load log does not say {what}", source=self._source)

    def known_or(self, value: T | None, what: str) -> Fact[T]:
        """Return a fact whose line belongs to the library, or is shown with its lines only."""
        if value is not None:
            return Known(value=value, source=self._source)
        if not self._state.library_lines:
            return self._hidden(what)
        return Unknown(
            why="absent",
            detail=f"the load log shows the library's lines, and none says {what}",
            source=self._source,
        )

    def unknown(self, detail: str) -> Unknown:
        """Return that it was looked for and is not there."""
        return Unknown(why="absent", detail=detail, source=self._source)

    def not_tried(self, detail: str) -> Unknown:
        """Return that it never came to that."""
        return Unknown(why="not_attempted", detail=detail, source=self._source)

    def known(self, value: T) -> Fact[T]:
        """Return a known fact."""
        return Known(value=value, source=self._source)

    def number(self, context: Context, key: str) -> Fact[int]:
        """Return a parameter of the context."""
        text = context.values.get(key, "")
        return self.known_or(int(text) if text.isdecimal() and len(text) < 19 else None, key)  # noqa: PLR2004 - 64 bits

    def _hidden(self, what: str) -> Unknown:
        verbosity = self._state.verbosity
        if verbosity is not None and verbosity >= SHOWS_LIBRARY_LINES:
            detail = f"the log ended before the library said {what}"
            return Unknown(why="absent", detail=detail, source=self._source)
        level = "this verbosity" if verbosity is None else f"verbosity {verbosity}"
        detail = f"nothing about {what}: the library's lines are hidden at {level}; {EVIDENCE_HINT}"
        return Unknown(why="not_attempted", detail=detail, source=self._source)


def _library_lines(state: State, say: _Words) -> Fact[bool]:
    if state.library_lines:
        return say.known(value=True)
    if state.lines == 0:
        return say.unknown("the log is empty")
    return say.known(value=False)


def _devices_used(state: State, main: Pass) -> tuple[str, ...] | None:
    used = main.devices_used or [name for one in state.passes for name in one.devices_used]
    return tuple(dict.fromkeys(used)) or None


def _model_loaded(state: State, say: _Words) -> Fact[bool]:
    value = loaded(state)
    if value is None and state.start_failed_line is not None:
        return say.not_tried("the program ended before it loaded a model")
    if value is None:
        return say.unknown("the load log says neither that the model was loaded nor that it failed")
    return say.known(value)


def _router(state: State, say: _Words) -> Fact[bool]:
    if state.router:
        return say.known(value=True)
    if state.named_model or state.local_model or state.n_slots is not None:
        return say.known(value=False)
    return say.unknown("the load log shows neither a model of the server's own nor router mode")


def _failure(state: State, say: _Words) -> Fact[LogLine]:
    if loaded(state) is True:
        return say.unknown("the model was loaded")
    first = state.attempt_error or state.previous_error
    if first is None:
        return say.unknown("the load log has no error line")
    return say.known(first)


def _buffers(sizes: Sizes, state: State) -> tuple[Buffer, ...]:
    known = frozenset(name for name in state.devices if name not in {"CPU", "BLAS"})
    return tuple(buffer_of(name, size, lines, known) for name, (size, lines) in sizes.names().items())


def _weights(state: State, say: _Words, buffers: tuple[Buffer, ...], *, on_devices: bool) -> Fact[int]:
    where = "devices" if on_devices else "the host"
    if any(buffer.place == "unrecognised" and buffer.size_bytes for buffer in buffers):
        names = ", ".join(buffer.name for buffer in buffers if buffer.place == "unrecognised")
        return say.unknown(f"weights lie in a buffer of a kind that llamaops does not know: {names}")
    if buffers:
        return say.known(sum(b.size_bytes for b in buffers if b.on_device is on_devices))
    if state.breakdown:
        # Shown at every verbosity with --log-jsonl; rounded to MiB.
        return say.known(
            sum(row.model_bytes for row in state.breakdown if (row.kind == "device") is on_devices)
        )
    return say.known_or(None, f"weights on {where}")


def _era(state: State) -> str | None:
    """Return the year that most wordings fit; of equals the latest."""
    return max(state.eras, key=lambda era: (state.eras[era], era), default=None)


def _offload(main: Pass) -> Offload | None:
    return Offload(layers=main.offload[0], of=main.offload[1]) if main.offload else None


def _kv_type(context: Context, index: int) -> str | None:
    return context.kv_types[index] if context.kv_types else None


def _kv_unified(state: State, context: Context) -> bool | None:
    text = context.values.get("kv_unified")
    if text in {"true", "false", "0", "1"}:
        return text in {"true", "1"}
    return state.slots_unified


def _flash_attention(context: Context) -> str | None:
    text = context.values.get("flash_attn")
    return {"0": "disabled", "1": "enabled", "off": "disabled", "on": "enabled", "-1": "auto"}.get(
        text or "", text
    )
