"""One pass over one part: the lines that matter, with their numbers, in bounded memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

import msgspec

from llamaops.diagnosis.engine import Matcher
from llamaops.diagnosis.finding import Needles
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import Signal
from llamaops.facts.load_log import LoadFacts, LoadLogReader
from llamaops.facts.load_log_lines import Line, lines_of
from llamaops.facts.load_log_patterns import ERROR_TEXT, NOT_AN_ERROR, compiled
from llamaops.schema.fact import Source

LOG_KINDS = ("log", "text")
GENERATED_TEXT = re.compile(r'("(?:content|reasoning_content|reasoning|text|prompt)":\s*")(?:[^"\\]|\\.)*"')
MAX_LINE_BYTES = 256 * 1024
WINDOW_BYTES = 8192
FIRST_HITS = 4
"""Hits kept of a signal from the start of a part; the last one is kept too."""
MAX_UNKNOWN_ERRORS = 12
SMALL_BYTES = 256 * 1024
MAX_FED_LINES = 2048
MAX_ERROR_LINES = 1024
MAX_TAKEN_LINES = 3072
SAMPLE_LINES = 128
SAMPLE_EVERY = 128
SHOWN_CHARS = 600
BLOCK_BYTES = 1 << 20
ENDS_BYTES = 128 * 1024

# What the load log's facts are in; its reader sees only these lines of a large log.
FACT_NEEDLES = (
    "buffer size", "offloaded ", "n_ctx ", "n_ctx_slot = ", "n_slots", "listening", "model loaded",
    "loading model", "splits", "kv_unified ", "flash_attn ", "build: ", "build ", "loaded meta data",
    "using device", "self size", "ggml_vulkan: ", "  Device ", " MiB free)", "verbosity = ", "n_ubatch",
    "n_seq_max", "n_ctx_train", "router", "new slot", "n_ctx_per_seq", "n_ctx_seq ", "cells,", "no_alloc",
    "memory breakdown", "Flash Attention",
)  # fmt: skip
ERROR_NEEDLES = (
    "rror", "ailed", "atal", "bort", "xception", "Traceback", "panic", "refused", "denied", "annot ",
    "egmentation", "ASSERT", "Killed", "terminate called", "couldn't", "could not", "Could not",
    "unable to", "Unable to", " E ", "invalid", "unsupported", "nknown", "not found", "timed out",
    "out of memory",
)  # fmt: skip
# Where a start begins, where it is over, and where text was generated: the first is kept, and the last.
START = (
    r"^build: \d+ \(|^main: build = |llama_server: initializing|build_info: |systemd\[1\]: Started |"
    r"^warning: not compiled with GPU|common_params_print_info: build "
)
READY = (
    r"server is listening on http|: model loaded$|all slots are idle|initializing(?: slots)?, n_slots = \d|"
    r"llama server listening at http|^srv .*listening on http|router server is listening"
)
GENERATED = (
    r"^(?:\S+: )?\s*(?:slot print_timing.*|prompt )?eval time =\s*[\d.]+ ms|done request: POST \S+ \S+ 200"
)
MARK_NEEDLES = (
    "build: ", "build = ", "llama_server: initializing", "build_info: ", ": Started ",
    "not compiled with GPU", "listening ", "model loaded",
    "slots are idle", "n_slots = ", "eval time =", "done request: POST",
)  # fmt: skip
ERROR_WORDS = (
    r"(?i)(?:^|[^a-z_])(?:error|fatal|panic|exception|traceback|segmentation fault|aborted|core dumped|"
    r"permission denied|connection refused|no such file|not found|timed out|out of memory|"
    r"failed|cannot|can't|could not|couldn't|unable to|killed)(?:$|[^a-z_])"
)
NO_ERROR_WORDS = (
    r"(?i)(?:no|0|without|zero) (?:error|failure)s?|errors?[:=] ?(?:0|none|null)\b|error correction|"
    r"fail(?:ed)?[:=] ?0\b|on-?error|ignore.?errors?|no (?:usable )?gpu found|nothing failed"
)


class Hit(msgspec.Struct, frozen=True):
    """A signal in a line."""

    signal: int
    part: int
    number: int
    text: str
    """The line as patterns see it: without time stamp and level."""
    shown: str
    """The line as it stands in the part, cut."""
    kind: str


class ErrorSeen(msgspec.Struct):
    """A line that looks like an error and that no rule looks for."""

    part: int
    number: int
    text: str
    before: tuple[str, ...]
    after: list[str]


class Scanned(msgspec.Struct):
    """What one pass over a part found."""

    part: Part
    lines: int = 0
    hits: dict[int, list[Hit]] = {}
    counts: dict[int, int] = {}
    errors: list[ErrorSeen] = []
    error_count: int = 0
    load: LoadFacts | None = None
    cut_lines: int = 0
    ready: list[tuple[int, str]] = []
    starts: list[tuple[int, str]] = []
    generated: list[tuple[int, str]] = []


class Scanner:
    """Takes the bytes of one part as they come."""

    def __init__(self, index: int, part: Part, signals: tuple[Signal, ...], *, many_lines: bool) -> None:
        self.found = Scanned(part)
        self._index = index
        self._kind = part.kind
        self._matcher = Matcher(signals, many_lines=many_lines)
        facts = FACT_NEEDLES if part.kind in LOG_KINDS else ()
        self._every_line = not many_lines
        self._wanted = frozenset(
            index
            for index, signal in enumerate(signals)
            if signal.concerns(part.kind) and (signal.needles or part.kind not in LOG_KINDS)
        )
        self._of_answers = frozenset(i for i, s in enumerate(signals) if "http-response" in s.kinds)
        self._explaining = frozenset(i for i, signal in enumerate(signals) if signal.explains)
        marks = MARK_NEEDLES if facts else ()
        self._needles = Needles(signals, part.kind, facts=facts, marks=marks, errors=ERROR_NEEDLES)
        self._taken = 0
        self._sample: deque[tuple[str, list[int]]] = deque(maxlen=SAMPLE_LINES)
        self._reader = LoadLogReader(Source(kind="file", name=part.name)) if facts else None
        self._fed = 0
        self._error_lines = 0
        self._carry = b""
        self._skipping = False
        self._recent: deque[str] = deque(maxlen=3)
        self._waiting: deque[tuple[ErrorSeen, int]] = deque(maxlen=4)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        data = self._carry + chunk if self._carry else chunk
        if self._skipping:
            cut = data.find(b"\n")
            if cut < 0:
                self._carry = b""
                return
            data, self._skipping = data[cut + 1 :], False
        end = data.rfind(b"\n") + 1
        if end:
            self._block(data[:end])
        self._carry = data[end:]
        if len(self._carry) > MAX_LINE_BYTES:
            self._block(self._carry[:MAX_LINE_BYTES] + b"\n")
            self.found.cut_lines += 1
            self._carry, self._skipping = b"", True

    def finish(self) -> Scanned:
        """Take what is left as the last line, and return what was found."""
        if self._carry:
            self._block(self._carry + b"\n")
            self._carry = b""
        return self.snapshot()

    def snapshot(self) -> Scanned:
        """Return what was found so far; the reading goes on."""
        if self._reader is not None:
            self.found.load = self._reader.facts()
        return self.found

    # One block of whole lines.

    def _block(self, block: bytes) -> None:
        if self._every_line:
            for raw in block.split(b"\n")[:-1]:
                self.found.lines += 1
                self._line(raw[:WINDOW_BYTES], self.found.lines)
            return
        base, counted, position = self.found.lines, 0, 0
        # A needle that is everywhere is not searched any more; its last line in the block still counts.
        dropped = self._needles.dropped
        last = self._last_places(block, 0)
        while True:
            if self._needles.dropped is not dropped:
                dropped, last = self._needles.dropped, self._last_places(block, position)
            at = self._needles.find(block, position)
            if last and (at < 0 or last[0] < at):
                at = last.pop(0)
                if at < position:
                    continue
            if at < 0:
                break
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at)
            base += block.count(b"\n", counted, start)
            counted = start
            if end - start > WINDOW_BYTES:
                start = max(start, at - WINDOW_BYTES // 4)
            self._line(block[start : min(end, start + WINDOW_BYTES)], base + 1)
            position = end + 1
        self.found.lines = base + block.count(b"\n", counted)

    def _last_places(self, block: bytes, start: int) -> list[int]:
        return sorted({at for needle in self._needles.dropped if (at := block.rfind(needle, start)) >= 0})

    def _line(self, raw: bytes, number: int) -> None:
        text = raw.decode("utf-8", "replace")
        if self._reader is not None and self._fed < MAX_FED_LINES:
            self._fed += 1
            self._reader.feed(text)
        if self._kind not in LOG_KINDS:
            self._one(_plain(text), text, number)
            return
        wrapped = text.startswith("{")
        for line in lines_of(text):
            self._one(line, line.text if wrapped else text, number)

    def _thin_out(self, text: str, signals: list[int]) -> None:
        """Now and then stop to search for what is on so many lines that more of it tells nothing."""
        self._taken += 1
        self._sample.append((text, signals))
        if self._taken % SAMPLE_EVERY:
            return
        self._needles.thin_out(
            tuple(self._sample),
            self.found.counts,
            facts_done=self._fed >= MAX_FED_LINES,
            errors_done=self._error_lines >= MAX_ERROR_LINES or self._taken >= MAX_TAKEN_LINES,
        )

    def _one(self, line: Line, raw: str, number: int) -> None:
        if line.output or line.record is not None:
            return
        text = line.text
        signals = [signal for signal in self._matcher.matches(text) if signal in self._wanted]
        if self._kind == "http-response" and signals:
            signals = self._without_generated(text, signals)
        if not self._every_line:
            self._thin_out(raw, signals)
        shown = raw.strip()[:SHOWN_CHARS]
        for signal in signals:
            self._hit(Hit(signal, self._index, number, text[:4096], shown, self._kind))
        if self._reader is not None:
            self._mark(text, shown, number)
        self._neighbours(shown)
        if self._kind == "http-response":
            line = _plain(GENERATED_TEXT.sub(r'\1"', text))  # what a model wrote is no error
        if _is_error(line):
            self._error_lines += 1
            self._error(shown, number, known=any(i in self._explaining for i in signals))
        self._recent.append(shown[:300])

    def _without_generated(self, text: str, signals: list[int]) -> list[int]:
        """Leave out signals that only the generated text has, unless a rule asks for answers."""
        plain = GENERATED_TEXT.sub(r'\1"', text)
        if plain == text:
            return signals
        still = set(self._matcher.matches(plain))
        return [i for i in signals if i in still or i in self._of_answers]

    def _mark(self, text: str, shown: str, number: int) -> None:
        if not any(needle in text for needle in MARK_NEEDLES):
            return
        for kept, pattern in (
            (self.found.starts, START),
            (self.found.ready, READY),
            (self.found.generated, GENERATED),
        ):
            if compiled(pattern).search(text[:2048]):
                if len(kept) > 1:
                    kept.pop()
                kept.append((number, shown[:300]))

    def _hit(self, hit: Hit) -> None:
        found = self.found
        count = found.counts[hit.signal] = found.counts.get(hit.signal, 0) + 1
        kept = found.hits.setdefault(hit.signal, [])
        if count <= FIRST_HITS:
            kept.append(hit)
        else:
            if len(kept) > FIRST_HITS:
                kept.pop()
            kept.append(hit)

    def _error(self, text: str, number: int, *, known: bool) -> None:
        if known:
            return
        self.found.error_count += 1
        if len(self.found.errors) < MAX_UNKNOWN_ERRORS:
            seen = ErrorSeen(self._index, number, text, tuple(self._recent), [])
            self.found.errors.append(seen)
            self._waiting.append((seen, 3))

    def _neighbours(self, text: str) -> None:
        if not self._waiting:
            return
        still = []
        for seen, left in self._waiting:
            seen.after.append(text[:300])
            if left > 1:
                still.append((seen, left - 1))
        self._waiting = deque(still, maxlen=4)


def _plain(text: str) -> Line:
    return Line(text.rstrip("\r"), None, "", "", text.strip(), "text", prefixed=False, fields={})


def _is_error(line: Line) -> bool:
    if line.level == "error":
        return not any(word in line.text for word in NOT_AN_ERROR)
    if line.level in {"info", "debug"}:
        return False
    text = line.text[:2048]
    if any(word in text for word in NOT_AN_ERROR):
        return False
    if compiled(ERROR_TEXT).match(text):
        return True
    return bool(compiled(ERROR_WORDS).search(text)) and not compiled(NO_ERROR_WORDS).search(text)


def scan(index: int, part: Part, signals: tuple[Signal, ...]) -> Scanned:
    """Read one part to its end."""
    if part.chunks is None:
        data = part.text.encode("utf-8", "replace")
        scanner = Scanner(index, part, signals, many_lines=len(data) > SMALL_BYTES)
        for start in range(0, len(data), BLOCK_BYTES):
            scanner.feed(data[start : start + BLOCK_BYTES])
        return scanner.finish()
    return scan_chunks(index, part, part.chunks, signals)


def scan_chunks(index: int, part: Part, chunks: Iterable[bytes], signals: tuple[Signal, ...]) -> Scanned:
    """Read one large part to its end."""
    scanner = Scanner(index, part, signals, many_lines=True)
    head, tail = b"", b""
    for chunk in chunks:
        scanner.feed(chunk)
        if len(head) < ENDS_BYTES:
            head += chunk[: ENDS_BYTES - len(head)]
        tail = (tail + chunk)[-ENDS_BYTES:] if len(chunk) < ENDS_BYTES else chunk[-ENDS_BYTES:]
    # Facts of other kinds (an exit status, rates) are read from both ends of a large part.
    part.text = (head + b"\n" + tail).decode("utf-8", "replace")
    return scanner.finish()
