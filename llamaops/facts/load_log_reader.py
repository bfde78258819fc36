"""Reads a load log line by line and can be asked at any time.

One method per name in `load_log_patterns.PATTERNS`. State is bounded: nothing grows with the log
except counters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from llamaops.facts import load_log_facts
from llamaops.facts.load_log_buffers import MIB, SOFTWARE, mib_to_bytes
from llamaops.facts.load_log_lines import Line, lines_of
from llamaops.facts.load_log_patterns import (
    CRASHED,
    FIT_FAILED,
    KNOWN_LINES,
    LIBRARY_TAGS,
    LOAD_FAILED,
    PATTERNS,
    READY,
    READY_TAGS,
    START_FAILED,
    Pattern,
    compiled,
    written_by,
)
from llamaops.facts.load_log_requests import number_of
from llamaops.facts.load_log_rows import level_by_text, printed_row, structured_row
from llamaops.facts.load_log_state import Context, Pass, State
from llamaops.facts.load_log_types import LoadDevice, LoadFacts, LogLine
from llamaops.schema.fact import Source

MAX_DEVICES = 64
MAX_URLS = 16
MAX_TEMPLATE_LINES = 400
LINE_CHARS = 300


class LoadLogReader:
    """A load log that streams in."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._state = State()
        self._template_lines = 0
        self._announced: str | None = None
        self._seen_prefix = False

    def feed(self, line: str) -> None:
        """Take one line, with or without its line end."""
        self._state.lines += 1
        if not line:
            return
        for part in lines_of(line):
            self._take(part)

    def facts(self) -> LoadFacts:
        """Return what the lines so far say."""
        return load_log_facts.facts_of(self._state, self._source)

    @property
    def ready_url(self) -> str | None:
        """The URL once the server is ready: it listens and its model is loaded."""
        state = self._state
        if state.ready_line is not None or (self._announced and state.loaded_line is not None):
            return state.urls[-1] if state.urls else self._announced
        return None

    @property
    def failed(self) -> bool:
        """Whether the engine said that the start or the load failed, and has not loaded since."""
        state = self._state
        if state.loaded_line is None and state.start_failed_line is not None:
            return True
        return load_log_facts.loaded(state) is False

    # One line.

    def _take(self, line: Line) -> None:
        state = self._state
        if line.output:
            return  # generated text: whatever it says is not a message of the engine
        if line.record is not None:
            self._record(line)
            return
        if line.prefixed:
            state.form = line.form
            # Before 2026 only the server's own lines had a form; the library's came bare.
            self._seen_prefix = self._seen_prefix or line.form in {"text", "json_lines"}
            self._template_lines = 0
        elif self._in_template(line):
            return
        self._severity(line)
        if line.prefixed or not self._seen_prefix:
            self._message(line)
        else:
            self._state.requests.take_bare(line)

    def _in_template(self, line: Line) -> bool:
        """Say whether a raw line is inside the example of the chat template, which may say anything."""
        if not self._template_lines:
            return False
        ends = line.text.rstrip() == "'" or self._template_lines >= MAX_TEMPLATE_LINES
        self._template_lines = 0 if ends else self._template_lines + 1
        return True

    def _message(self, line: Line) -> None:
        state = self._state
        if "example_format: '" in line.message and not line.message.endswith("'"):
            self._template_lines = 1
        if line.tag in LIBRARY_TAGS and line.level not in {"error", "warn"}:
            state.library_lines = True
        state.requests.take(line)
        if "listening on" in line.message and line.tag in READY_TAGS:
            self._listening(line)
            return
        for pattern in PATTERNS:
            if pattern.needle in line.text:
                found = _match(pattern, line)
                if found:
                    for era in pattern.eras:
                        state.eras[era] = state.eras.get(era, 0) + 1
                    _HANDLERS[pattern.name](self, found, line)
                    break

    def _listening(self, line: Line) -> None:
        found = compiled(READY).match(line.message)
        if found is None:
            return
        state = self._state
        if len(state.urls) < MAX_URLS and found[1] not in state.urls:
            state.urls.append(found[1])
        if state.ready_line is None:
            state.ready_line = state.lines

    # Warnings and errors.

    def _severity(self, line: Line) -> None:
        level: str | None = line.level
        if level is None:
            level = level_by_text(line.text)
        if level not in {"error", "warn"}:
            return
        state = self._state
        known = next((kind for kind in KNOWN_LINES if compiled(kind.regex).search(line.text)), None)
        entry = LogLine(
            number=state.lines,
            level="error" if level == "error" else "warn",
            text=line.text.strip()[:LINE_CHARS],
            known=known.id if known else None,
            harmless=bool(known and known.harmless),
        )
        if known is None:
            state.unmatched += 1
        if level == "warn":
            state.warnings.add(entry)
            return
        self._error(entry, line)

    def _error(self, entry: LogLine, line: Line) -> None:
        state = self._state
        state.errors.add(entry)
        if state.loaded_line is not None and len(state.errors_after) < state.errors_after_limit:
            state.errors_after.append(entry)
        if FIT_FAILED in line.text:
            state.previous_error, state.attempt_error = state.attempt_error or entry, None
        elif state.attempt_error is None:
            state.attempt_error = entry
        if FIT_FAILED not in line.text and compiled(LOAD_FAILED).match(line.text):
            # What breaks down later was loaded all the same.
            crashed_later = state.loaded_line is not None and compiled(CRASHED).match(line.text)
            state.failed_line = state.failed_line if crashed_later else state.lines
        elif compiled(START_FAILED).match(line.text):
            state.start_failed_line = state.lines

    # Structured records.

    def _record(self, line: Line) -> None:
        record = line.record or {}
        state = self._state
        state.form = "json_lines"
        self._seen_prefix = True
        if record.get("type") != "fit_memory_breakdown":
            return
        state.eras["2026"] = state.eras.get("2026", 0) + 1
        data = record.get("data")
        rows = data.get("rows") if isinstance(data, dict) else None
        if isinstance(rows, list):
            parsed = [structured_row(row) for row in rows[:MAX_DEVICES] if isinstance(row, dict)]
            state.breakdown = [row for row in parsed if row is not None]

    # One method for each name in PATTERNS.

    def _on_verbosity_seen(self, found: re.Match[str], _line: Line) -> None:
        self._state.verbosity = int(found[1])

    def _on_build(self, found: re.Match[str], _line: Line) -> None:
        self._state.build = (int(found[1]), found[2])

    def _on_build_2024(self, _found: re.Match[str], line: Line) -> None:
        number, commit = line.fields.get("build", ""), line.fields.get("commit", "")
        if number.isdecimal() and len(number) <= 10 and commit:  # noqa: PLR2004 - as in the other wordings
            self._state.build = (int(number), commit[:80])

    def _on_device_table(self, _found: re.Match[str], _line: Line) -> None:
        self._state.devices.clear()
        self._state.device_list_seen = True

    def _on_device_row(self, found: re.Match[str], _line: Line) -> None:
        if self._state.device_list_seen:
            self._device(found[1], found[2], int(found[3]) * MIB, int(found[4]) * MIB)

    def _on_device_count(self, found: re.Match[str], _line: Line) -> None:
        self._state.numbered_backend = found[2]

    def _on_device_numbered(self, found: re.Match[str], _line: Line) -> None:
        if self._state.numbered_backend:
            self._device(f"{self._state.numbered_backend}{found[1]}", found[2])

    def _on_device_vulkan(self, found: re.Match[str], _line: Line) -> None:
        self._device(f"Vulkan{found[1]}", found[2])

    def _on_device_metal(self, found: re.Match[str], _line: Line) -> None:
        self._device("Metal", found[1])

    def _on_device_metal_named(self, found: re.Match[str], _line: Line) -> None:
        self._device(found[1], found[2] or found[1])

    def _on_device_used(self, found: re.Match[str], _line: Line) -> None:
        used = self._state.current.devices_used
        if found[1] not in used and len(used) < MAX_DEVICES:
            used.append(found[1])
        known = self._state.devices.get(found[1])
        if known is None or known.free_bytes is None:
            self._device(found[1], found[2], None, int(found[3]) * MIB)

    def _on_backend_2023(self, found: re.Match[str], _line: Line) -> None:
        self._state.backend_2023 = found[1]

    def _on_model_named(self, found: re.Match[str], line: Line) -> None:
        self._state.named_model = found[1]
        self._state.local_model = None
        # A server that loads again (or a router's child) begins a new attempt.
        self._state.attempt_error = None
        del line

    def _on_model_local(self, found: re.Match[str], _line: Line) -> None:
        self._state.local_model = found[1]

    def _on_pass_begins(self, found: re.Match[str], _line: Line) -> None:
        self._state.begin_pass(found[2])

    def _on_dry_pass(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.dry = found[1] == "1"

    def _on_trained_context(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.n_ctx_train = int(found[1])

    def _on_offloaded(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.offload = (int(found[1]), int(found[2]))

    def _on_weights(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.weights.add(found[1], mib_to_bytes(found[2]))

    def _on_weights_2023_host(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.weights.set("RAM", mib_to_bytes(found[1]))

    def _on_weights_2023_device(self, found: re.Match[str], _line: Line) -> None:
        name = f"VRAM ({self._state.backend_2023})" if self._state.backend_2023 else "VRAM"
        self._state.current.weights.set(name, mib_to_bytes(found[1]))

    def _on_weights_2023_metal(self, found: re.Match[str], _line: Line) -> None:
        self._state.current.weights.add("Metal", mib_to_bytes(found[1]))

    def _on_context_begins(self, _found: re.Match[str], _line: Line) -> None:
        self._state.current.begin_context()

    def _on_context_value(self, found: re.Match[str], _line: Line) -> None:
        key = "n_ctx_seq" if found[1] == "n_ctx_per_seq" else found[1]
        self._context_for(key).values[key] = found[2]

    def _on_kv_buffer(self, found: re.Match[str], _line: Line) -> None:
        self._context().kv.add(found[1], mib_to_bytes(found[2]))

    def _on_kv_size_2024(self, found: re.Match[str], _line: Line) -> None:
        context = self._context()
        if found[2]:
            context.kv_types = (found[2], found[3])
        if not context.kv.names():
            # The 2023 line does not say where the cache lies.
            context.kv.set("unknown", mib_to_bytes(found[1]))

    def _on_kv_types(self, found: re.Match[str], _line: Line) -> None:
        self._context().kv_types = (found[2], found[3])

    def _on_state_buffer(self, found: re.Match[str], _line: Line) -> None:
        self._context().state.add(found[1], mib_to_bytes(found[2]))

    def _on_output_buffer(self, found: re.Match[str], _line: Line) -> None:
        self._context().output.set(found[1], mib_to_bytes(found[2]))

    def _on_compute_begins(self, _found: re.Match[str], _line: Line) -> None:
        self._context().compute.clear()

    def _on_compute_buffer(self, found: re.Match[str], _line: Line) -> None:
        self._context().compute.set(found[1], mib_to_bytes(found[2]))

    def _on_flash_attention(self, found: re.Match[str], _line: Line) -> None:
        self._context().values["flash_attn"] = "disabled" if found[1].endswith("disabled") else "enabled"

    def _on_graph_splits(self, found: re.Match[str], _line: Line) -> None:
        self._context().values["splits"] = found[1]

    def _on_breakdown_begins(self, _found: re.Match[str], _line: Line) -> None:
        self._state.breakdown = []

    def _on_breakdown_row(self, found: re.Match[str], _line: Line) -> None:
        row = printed_row(found[1], found[2])
        if row is not None and len(self._state.breakdown or ()) < MAX_DEVICES:
            self._state.breakdown = [*(self._state.breakdown or []), row]

    def _on_slots(self, found: re.Match[str], _line: Line) -> None:
        state = self._state
        state.n_slots = int(found[1])
        if found[2]:
            state.n_ctx_slot = int(found[2])
            state.slots_unified = found[3] == "true"

    def _on_slots_2024(self, _found: re.Match[str], line: Line) -> None:
        self._state.n_slots = number_of(line.fields.get("n_slots")) or self._state.n_slots

    def _on_slot(self, found: re.Match[str], _line: Line) -> None:
        self._state.n_ctx_slot = int(found[1])

    def _on_slot_2024(self, _found: re.Match[str], line: Line) -> None:
        self._state.n_ctx_slot = number_of(line.fields.get("n_ctx_slot")) or self._state.n_ctx_slot

    def _on_slot_2023(self, found: re.Match[str], _line: Line) -> None:
        self._state.n_slots = int(found[1]) + 1
        self._state.n_ctx_slot = int(found[2])

    def _on_thinking(self, found: re.Match[str], _line: Line) -> None:
        self._state.thinking = found[1] == "1"

    def _on_router(self, _found: re.Match[str], _line: Line) -> None:
        self._state.router = True

    def _on_loaded(self, _found: re.Match[str], _line: Line) -> None:
        self._state.loaded_line = self._state.lines
        self._state.errors_after.clear()
        self._template_lines = 0

    _on_generating = _on_loaded

    def _on_announced(self, found: re.Match[str], _line: Line) -> None:
        self._announced = found[1]
        self._announce()

    def _on_announced_2024(self, _found: re.Match[str], line: Line) -> None:
        host, port = line.fields.get("hostname"), line.fields.get("port")
        if host and port and port.isdigit():
            bracketed = f"[{host}]" if ":" in host else host
            self._announced = f"http://{bracketed}:{port}"
            self._announce()

    def _announce(self) -> None:
        state = self._state
        if self._announced and self._announced not in state.urls and len(state.urls) < MAX_URLS:
            state.urls.append(self._announced)
        # These releases may say it before the load; then `model loaded` is what makes it ready.
        if state.current.weights.names() or state.loaded_line is not None:
            state.ready_line = state.ready_line or state.lines

    # Small steps.

    def _device(self, name: str, description: str, total: int | None = None, free: int | None = None) -> None:
        devices = self._state.devices
        if len(devices) < MAX_DEVICES or name in devices:
            devices[name] = LoadDevice(
                name=name,
                description=description.strip()[:LINE_CHARS],
                total_bytes=total,
                free_bytes=free,
                software=bool(SOFTWARE.search(description)),
            )

    def _context(self) -> Context:
        return self._state.current.context

    def _context_for(self, key: str) -> Context:
        """Return the context a parameter belongs to: one that comes again begins the next."""
        current: Pass = self._state.current
        if key in current.context.values and key != "flash_attn":
            current.begin_context()
        return current.context


def _match(pattern: Pattern, line: Line) -> re.Match[str] | None:
    if not written_by(pattern.tags, line.tag, line.function):
        return None
    return compiled(pattern.regex).match(line.text if pattern.where == "text" else line.message)


_HANDLERS: dict[str, Callable[[LoadLogReader, re.Match[str], Line], None]] = {
    pattern.name: getattr(LoadLogReader, f"_on_{pattern.name}") for pattern in PATTERNS
}
