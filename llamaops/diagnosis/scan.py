"""One pass over one part: the lines that matter, with their numbers, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from llamaops.diagnosis.engine import Matcher
from llamaops.diagnosis.finding import Needles
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import Signal
from llamaops.diagnosis.scanned import LOG_KINDS, SHOWN_CHARS, ErrorSeen, Hit, Scanned
from llamaops.diagnosis.words import (
    ERROR_NEEDLES,
    ERROR_WORDS,
    FACT_NEEDLES,
    GENERATED,
    GENERATED_TEXT,
    MARK_NEEDLES,
    NO_ERROR_WORDS,
    READY,
    START,
)
from llamaops.facts.load_log import LoadLogReader
from llamaops.facts.load_log_lines import Line, lines_of
from llamaops.facts.load_log_patterns import ERROR_TEXT, NOT_AN_ERROR, compiled
from llamaops.schema.fact import Source

MAX_LINE_BYTES = 256 * 1024
WINDOW_BYTES = 8192
FIRST_HITS = 4
"""Hits kept of a signal from the start of a part; the last one is kept too."""
MAX_UNKNOWN_ERRORS = 12
SMALL_BYTES = 256 * 1024
MAX_FED_LINES = 2048
ENOUGH_FED_LINES = 768
"""Lines after which the facts of whole loads are enough: no further start is read for them."""
MAX_ERROR_LINES = 512
MAX_TAKEN_LINES = 1536
SAMPLE_LINES = 512
SAMPLE_EVERY = 512
BLOCK_BYTES = 1 << 20
ENDS_BYTES = 128 * 1024


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
        self._facts_done = False
        self._error_lines = 0
        self._carry = b""
        self._last: dict[bytes, tuple[bytes, int, int, int]] = {}
        self._skipping = False
        self._recent: deque[str] = deque(maxlen=3)
        self._waiting: deque[tuple[ErrorSeen, int]] = deque(maxlen=4)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        start = 0
        if self._skipping or self._carry:
            start = chunk.find(b"\n") + 1
            if not start:
                self._carry_on(chunk)
                return
            if not self._skipping:
                self._block(self._carry + chunk[:start], 0, len(self._carry) + start)
            self._carry, self._skipping = b"", False
        end = chunk.rfind(b"\n") + 1
        if end > start:
            self._block(chunk, start, end)
        self._carry_on(chunk[max(start, end) :])

    def _carry_on(self, rest: bytes) -> None:
        """Keep the beginning of a line whose end has not come yet, and of a huge one its first part."""
        if self._skipping:
            return
        self._carry += rest
        if len(self._carry) > MAX_LINE_BYTES:
            line = self._carry[:MAX_LINE_BYTES] + b"\n"
            self._block(line, 0, len(line))
            self.found.cut_lines += 1
            self._carry, self._skipping = b"", True

    def finish(self) -> Scanned:
        """Take what is left as the last line, and return what was found."""
        if self._carry:
            line = self._carry + b"\n"
            self._block(line, 0, len(line))
            self._carry = b""
        return self.snapshot()

    def snapshot(self) -> Scanned:
        """Return what was found so far; the reading goes on."""
        self._look_at_last()
        if self._reader is not None:
            self.found.load = self._reader.facts()
        return self.found

    # One block of whole lines.

    def _block(self, block: bytes, begin: int, end: int) -> None:
        if self._every_line:
            for raw in block[begin:end].split(b"\n")[:-1]:
                self.found.lines += 1
                self._line(raw[:WINDOW_BYTES], self.found.lines)
            return
        base, counted, position = self.found.lines, begin, begin
        while (at := self._needles.find(block, position, end)) >= 0:
            first = block.rfind(b"\n", begin, at) + 1 or begin
            last = block.find(b"\n", at)
            base += block.count(b"\n", counted, first)
            counted = first
            self._line(_window(block, at, first, last), base + 1)
            position = last + 1
        self._keep_last(block, begin, end)
        self.found.lines = base + block.count(b"\n", counted, end)

    def _keep_last(self, block: bytes, begin: int, end: int) -> None:
        """Remember the last line of what is not searched any more; it is looked at in the end."""
        before = self.found.lines
        for needle in self._needles.dropped:
            at = block.rfind(needle, begin, end)
            if at >= 0:
                self._last[needle] = (block, begin, at, before)

    def _look_at_last(self) -> None:
        """Look at the last lines of what is on so many lines that it was not searched any more."""
        numbers: dict[int, bytes] = {}
        for block, begin, at, before in self._last.values():
            start = block.rfind(b"\n", begin, at) + 1 or begin
            number = before + block.count(b"\n", begin, start) + 1
            numbers[number] = _window(block, at, start, block.find(b"\n", at))
        self._last.clear()
        for number, raw in sorted(numbers.items()):
            self._line(raw, number)

    def _line(self, raw: bytes, number: int) -> None:
        text = raw.decode("utf-8", "replace")
        self._feed(text)
        if self._kind not in LOG_KINDS:
            self._one(_plain(text), text, number)
            return
        wrapped = text.startswith("{")
        for line in lines_of(text):
            self._one(line, line.text if wrapped else text, number)

    def _feed(self, text: str) -> None:
        """Read a line for the facts of the load, while facts are still read."""
        if self._reader is None or self._facts_done:
            return
        late = not self._every_line and self._fed >= ENOUGH_FED_LINES
        if late and (self._fed >= MAX_FED_LINES or compiled(START).search(text[:2048])):
            self._facts_done = True
            return
        self._fed += 1
        self._reader.feed(text)

    def _thin_out(self, text: str, signals: list[int]) -> None:
        """Now and then stop to search for what is on so many lines that more of it tells nothing."""
        self._taken += 1
        self._sample.append((text, signals))
        if self._taken % SAMPLE_EVERY:
            return
        self._needles.thin_out(
            tuple(self._sample),
            self.found.counts,
            facts_done=self._facts_done or self._reader is None,
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
                _keep_ends(kept, (number, shown[:300]))

    def _hit(self, hit: Hit) -> None:
        found = self.found
        count = found.counts[hit.signal] = found.counts.get(hit.signal, 0) + 1
        kept = found.hits.setdefault(hit.signal, [])
        if count <= FIRST_HITS or len(kept) == FIRST_HITS:
            kept.append(hit)
        elif hit.number > kept[-1].number:
            kept[-1] = hit

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


def _window(block: bytes, at: int, start: int, end: int) -> bytes:
    """Return the line from start to end, or of a huge one what is around a place."""
    if end - start > WINDOW_BYTES:
        start = max(start, at - WINDOW_BYTES // 4)
    return block[start : min(end, start + WINDOW_BYTES)]


def _keep_ends(kept: list[tuple[int, str]], mark: tuple[int, str]) -> None:
    """Keep the first mark and the last one."""
    if len(kept) < 2:  # noqa: PLR2004 - both ends
        kept.append(mark)
    elif mark[0] > kept[-1][0]:
        kept[-1] = mark


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
