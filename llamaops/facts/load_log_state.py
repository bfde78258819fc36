"""What a reader of a load log remembers; every part has a bound."""

from __future__ import annotations

from collections import deque

from llamaops.facts.load_log_requests import Requests
from llamaops.facts.load_log_types import BreakdownRow, LoadDevice, LogLine

MAX_NAMES = 128
MAX_PASSES = 8
MAX_CONTEXTS = 4
KEPT_LINES = 25


class Sizes:
    """Bytes by buffer name."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}

    def add(self, name: str, size_bytes: int) -> None:
        """Add to a name: one buffer type may have many lines, most of them of no size."""
        size, lines = self._sizes.get(name, (0, 0))
        if lines or len(self._sizes) < MAX_NAMES:
            self._sizes[name] = (size + size_bytes, lines + 1)

    def set(self, name: str, size_bytes: int) -> None:
        """Replace the size of a name: it is printed again when it was reserved again."""
        if name in self._sizes or len(self._sizes) < MAX_NAMES:
            self._sizes[name] = (size_bytes, 1)

    def clear(self) -> None:
        """Forget everything."""
        self._sizes.clear()

    def names(self) -> dict[str, tuple[int, int]]:
        """Return bytes and number of lines by name."""
        return self._sizes


class Context:
    """One llama_context."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.kv = Sizes()
        self.state = Sizes()
        self.output = Sizes()
        self.compute = Sizes()
        self.kv_types: tuple[str, str] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was said about it yet."""
        return not (self.values or self.kv.names() or self.compute.names() or self.state.names())


class Pass:
    """One load of one file: dry for the fit step, real, of a draft model, or a reload."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.dry = False
        self.devices_used: list[str] = []
        self.n_ctx_train: int | None = None
        self.offload: tuple[int, int] | None = None
        self.weights = Sizes()
        self.contexts: list[Context] = [Context()]

    @property
    def context(self) -> Context:
        """The context that lines belong to now."""
        return self.contexts[-1]

    def begin_context(self) -> None:
        """Begin the next context unless the present one is still empty."""
        if self.context.empty:
            return
        if len(self.contexts) >= MAX_CONTEXTS:
            self.contexts.pop(1)  # the first is the model's own; later ones are for speculation
        self.contexts.append(Context())


class Ends:
    """The first and the last lines of many, and how many there were."""

    def __init__(self) -> None:
        self._first: list[LogLine] = []
        self._last: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self.count = 0

    def add(self, line: LogLine) -> None:
        """Count a line and keep it if it is one of the first, or until newer ones push it out."""
        self.count += 1
        if len(self._first) < KEPT_LINES:
            self._first.append(line)
        else:
            self._last.append(line)

    def kept(self) -> tuple[LogLine, ...]:
        """Return what was kept, in order."""
        return (*self._first, *self._last)


class State:
    """Everything a reader knows so far."""

    errors_after_limit = 20

    def __init__(self) -> None:
        self.lines = 0
        self.form: str | None = None
        self.eras: dict[str, int] = {}
        self.verbosity: int | None = None
        self.library_lines = False
        self.build: tuple[int, str] | None = None
        self.devices: dict[str, LoadDevice] = {}
        self.device_list_seen = False
        self.numbered_backend: str | None = None
        self.backend_2023: str | None = None
        self.named_model: str | None = None
        self.local_model: str | None = None
        self.passes: list[Pass] = [Pass(None)]
        self.loaded_line: int | None = None
        self.failed_line: int | None = None
        self.start_failed_line: int | None = None
        self.router = False
        self.attempt_error: LogLine | None = None
        self.previous_error: LogLine | None = None
        self.breakdown: list[BreakdownRow] | None = None
        self.n_slots: int | None = None
        self.n_ctx_slot: int | None = None
        self.slots_unified: bool | None = None
        self.urls: list[str] = []
        self.ready_line: int | None = None
        self.thinking: bool | None = None
        self.errors = Ends()
        self.errors_after: list[LogLine] = []
        self.warnings = Ends()
        self.unmatched = 0
        self.requests = Requests()

    @property
    def current(self) -> Pass:
        """The load that lines belong to now."""
        return self.passes[-1]

    def begin_pass(self, path: str | None) -> None:
        """Begin the next load. What was said about devices before the file belongs to it."""
        last = self.current
        following = Pass(path)
        if last.path is None and not last.weights.names():
            following.devices_used = last.devices_used
            self.passes[-1] = following
            return
        self.passes.append(following)
        if len(self.passes) > MAX_PASSES:
            self.passes.pop(0)

    def main_pass(self) -> Pass:
        """Return the last load of the main model.

        A draft model is loaded after the main one and has another path; where the log does not say
        which file is the main one, the last load counts.
        """
        main = self.local_model or self.named_model
        if main is not None:
            for one in reversed(self.passes):
                if one.path is not None and _same_file(one.path, main):
                    return one
        return self.passes[-1]


def _same_file(path: str, main: str) -> bool:
    return path == main or path.rsplit("/", 1)[-1] == main.rsplit("/", 1)[-1]
