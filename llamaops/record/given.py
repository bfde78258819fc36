"""Find the values that the tool was told, in whatever form they stand in a text.

Three things are searched: the text as it is, for the usual encodings of each value; the text after
`forms.plain`, for each value after the same; and, three deep, what both hold in base64. The last decodes
the text at all four phases instead of looking for encoded values: that finds a value at any place inside
of an encoded text, and encodings inside one another, at a cost that does not depend on the number of values.
"""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from llamaops.record import forms
from llamaops.record.offsets import Rewrite, rewrite

_DEEPEST = 3
_SHORT = 6  # a value whose plain form is shorter is looked at closely before it counts as found
_JOINED_LINES_FROM = 8  # shorter values are not looked for across an end of line, unless it is a terminal's
_LONGEST_RUN = 16384  # bytes of base64 that are looked at on each side of a joint
_FROM = b"-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO = b"+/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NO_BASE64 = bytes(set(range(256)) - set(_FROM))
_READABLE = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_LEAST_TEXT = 5
_MOST_PADDING = 2
_CHANCE = 16
_RUN = _FROM + b"=%\\\"'$"
_STANDARD = bytes.maketrans(_FROM, _TO)


@cache
def _re(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


class Hit(NamedTuple):
    """Where a value was found, in bytes."""

    start: int
    end: int
    value: str


class GivenValues:
    """The values to look for, prepared once."""

    def __init__(self, values: Iterable[str]) -> None:
        self._exact: list[tuple[bytes, str]] = []
        self._deep_exact: list[tuple[bytes, str]] = []
        self._plain: list[tuple[bytes, str]] = []
        self._parts: list[tuple[bytes, str]] = []
        seen = set()
        for value in sorted(set(values), key=len, reverse=True):
            raw = encoded(value)
            folded = forms.plain(raw)
            usable = len(folded) >= 3
            if usable:
                self._plain.append((folded, value))
            for form in sorted(forms.encodings(value, deep=not usable), key=len, reverse=True):
                data = encoded(form)
                if data not in seen and (data == raw or not usable or folded not in forms.plain(data)):
                    seen.add(data)
                    self._exact.append((data, value))
                    if not usable or form != value:
                        self._deep_exact.append((data, value))
            if len(raw) >= 12:
                self._parts.append((raw, value))
        shortest = min((len(data) for data, _ in self._plain + self._exact), default=3)
        self._least_base64 = max(4, -(-shortest * 8 // 6))
        self._after_escapes = re.compile(rb"(?<=\\)[nrt][A-Za-z0-9+/_-]{%d,}" % (self._least_base64 - 1))
        self._runs = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % self._least_base64)

    def __bool__(self) -> bool:
        """Say whether there is anything to look for."""
        return bool(self._exact)

    def find(self, data: bytes) -> list[Hit]:
        """Return every place that has to go, overlaps included."""
        if not self._exact:
            return []
        if b"\x1b" not in data:
            return self._find(data)
        bare = rewrite(forms.colour(), lambda _match: b"", data)
        return [Hit(*bare.back(hit.start, hit.end), hit.value) for hit in self._find(bare.text)]

    def _find(self, data: bytes) -> list[Hit]:
        hits = list(self._search(data, 0))
        if wraps := forms.wraps(data):
            joined = rewrite(_re(rb"\n"), lambda match: b"" if match.start() in wraps else match[0], data)
            hits += [Hit(*joined.back(hit.start, hit.end), hit.value) for hit in self._search(joined.text, 0)]
        inline = forms.has_stamp_inside(data)
        for name, (mark, pattern) in forms.joins().items():
            if mark in data and (inline or not name.startswith("inline")):
                hits += self._find_joined(data, pattern, name)
        return hits + list(self._cut_parts(data))

    def _find_joined(self, data: bytes, pattern: re.Pattern[bytes], name: str) -> list[Hit]:
        joined = rewrite(pattern, lambda _match: b"", data)
        if len(joined.text) == len(data):
            return []
        found = list(self._search(joined.text, _DEEPEST))
        if name != "indented":
            found += self._in_runs(joined.text, list(self._runs_at(joined)))
        return [piece for hit in found for piece in _pieces(joined, hit)]

    def _in_runs(self, data: bytes, runs: list[tuple[int, int]]) -> list[Hit]:
        """Return what some parts of the data hold; all are searched at once."""
        if not runs:
            return []
        starts, at = [], 0
        for start, end in runs:
            starts.append(at)
            at += end - start + 1
        hits = []
        for hit in self._search(b" ".join(data[start:end] for start, end in runs), 0):
            index = bisect_right(starts, hit.start) - 1
            shift = runs[index][0] - starts[index]
            hits.append(Hit(hit.start + shift, min(hit.end + shift, runs[index][1]), hit.value))
        return hits

    def _runs_at(self, joined: Rewrite[bytes]) -> Iterator[tuple[int, int]]:
        """Yield the runs of base64 letters, escapes between them included, that cross a joint."""
        done = 0
        for joint in joined.joints():
            if joint < done:
                continue
            left = joined.text[max(0, joint - _LONGEST_RUN) : joint]
            right = joined.text[joint : joint + _LONGEST_RUN]
            before = len(left) - len(left.rstrip(_RUN))
            after = len(right) - len(right.lstrip(_RUN))
            if before and after and before + after >= self._least_base64:
                done = joint + after
                yield joint - before, done

    def _search(self, data: bytes, depth: int) -> Iterator[Hit]:
        """Yield what one text holds: as it is, plain, and in base64."""
        for needle, value in self._deep_exact if depth else self._exact:
            if needle in data:
                yield from _places(data, needle, value)
        folded = forms.plain(data)
        hits: list[Hit] = []
        for needle, value in self._plain:
            if needle in folded:
                hits += _places(folded, needle, value)
        if hits:
            yield from self._plain_back(data, hits, closely=True)
        if depth < _DEEPEST and (hits := self._search_base64(folded, depth)):
            yield from self._plain_back(data, hits, closely=False)
        if depth < _DEEPEST and b"\\" in data:
            # An escaped end of line is two characters, and the second may belong to what follows it.
            yield from self._in_runs(data, [run.span() for run in self._after_escapes.finditer(data)])

    def _search_base64(self, data: bytes, depth: int) -> list[Hit]:
        if depth:  # most of what was decoded is noise, which has few long runs
            data_runs = list(self._runs.finditer(data))
            if not data_runs:
                return []
            return [
                Hit(hit.start + run.start(), hit.end + run.start(), hit.value)
                for run in data_runs
                for hit in self._decode(run[0], depth)
            ]
        return self._decode(data, depth)

    def _decode(self, data: bytes, depth: int) -> list[Hit]:
        letters = data.translate(_STANDARD, _NO_BASE64)
        if len(letters) < self._least_base64:
            return []
        hits: list[tuple[Hit, Hit]] = []
        for phase in range(4):
            chunk = letters[phase:]
            chunk += b"A" * (-len(chunk) % 4)
            inner = binascii.a2b_base64(chunk)
            for hit in self._search(inner, depth + 1):
                wide = _as_text(inner, hit)
                hits.append((_letters(hit, phase, len(letters)), _letters(wide, phase, len(letters))))
        if not hits:
            return []
        where = [index for index, byte in enumerate(data) if byte in _BASE64_BYTES]
        found = []
        for hit, wide in hits:
            tight = _within_one_run(data, Hit(where[hit.start], where[hit.end - 1] + 1, hit.value))
            if tight is not None:
                found.append(_with_text_around(data, tight, where[wide.start], where[wide.end - 1] + 1))
        return found

    @staticmethod
    def _plain_back(data: bytes, hits: list[Hit], *, closely: bool) -> Iterator[Hit]:
        """Yield where in the data the hits in its plain form are; with a closer look at short ones."""
        done = forms.plain_back(data)
        for hit in hits:
            tight = wide = (hit.start, hit.end)
            for step in reversed(done):
                tight, wide = step.back(*tight), step.back_wide(*wide)
            raw = encoded(hit.value)
            if not closely:
                if _cut_is_credible(data, *tight, hit.value):
                    yield Hit(*tight, hit.value)
                continue
            begins, ends = forms.plain(raw[:1]) == b"", forms.plain(raw[-1:]) == b""
            start = max(wide[0], tight[0] - 64) if begins else tight[0]
            end = min(wide[1], tight[1] + 64) if ends else tight[1]
            if hit.end - hit.start < _SHORT and not _really(data[start:end], raw):
                continue
            if _cut_is_credible(data, start, end, hit.value):
                yield Hit(start, end, hit.value)

    def _cut_parts(self, data: bytes) -> Iterator[Hit]:
        """Yield what is left of a long value where the text was cut off in the middle of it."""
        for raw, value in self._parts:
            at = data.find(raw[:8])
            while at >= 0:
                size = _common(data, at, raw)
                after = data[at + size : at + size + 1]
                if size < len(raw) and (not after or after in b"\r\n\x1b.\xe2"):
                    yield Hit(at, at + size, value)
                    yield from _rest(data, at + size, raw[size:], value)
                at = data.find(raw[:8], at + 1)


def _pieces(joined: Rewrite[bytes], hit: Hit) -> Iterator[Hit]:
    """Yield what a hit covers of the original, without what stood between its parts."""
    inside = [joint for joint in joined.joints() if hit.start < joint < hit.end]
    for start, end in pairwise([hit.start, *inside, hit.end]):
        yield Hit(*joined.back(start, end), hit.value)


_BASE64_BYTES = frozenset(_FROM)


def encoded(text: str) -> bytes:
    """Return the text as bytes; what came from undecodable bytes becomes those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _places(data: bytes, needle: bytes, value: str) -> Iterator[Hit]:
    at = data.find(needle)
    while at >= 0:
        yield Hit(at, at + len(needle), value)
        at = data.find(needle, at + 1)


def _common(data: bytes, at: int, raw: bytes) -> int:
    size = 0
    while size < len(raw) and data[at + size : at + size + 1] == raw[size : size + 1]:
        size += 1
    return size


def _rest(data: bytes, at: int, rest: bytes, value: str) -> Iterator[Hit]:
    """Yield the rest of a cut value, where it follows within the next line or so."""
    found = data.find(rest, at, at + 512) if len(rest) >= 3 else -1
    if found >= 0:
        yield Hit(found, found + len(rest), value)


def _letters(hit: Hit, phase: int, most: int) -> Hit:
    """Return which letters of base64 hold some of the decoded bytes."""
    return Hit(phase + hit.start * 8 // 6, min(phase + -(-hit.end * 8 // 6), most), hit.value)


def _as_text(inner: bytes, hit: Hit) -> Hit:
    """Return a hit with the text around it: what was encoded with a value tells about it."""
    before = inner[max(0, hit.start - _LONGEST_RUN) : hit.start]
    after = inner[hit.end : hit.end + _LONGEST_RUN]
    left = len(before) - len(before.rstrip(_READABLE))
    right = len(after) - len(after.lstrip(_READABLE))
    # A few readable bytes may be chance: what stands beside an encoded text, decoded as if it belonged to it.
    return Hit(
        hit.start - (left if left >= _LEAST_TEXT else 0),
        hit.end + (right if right >= _LEAST_TEXT else 0),
        hit.value,
    )


def _with_text_around(data: bytes, tight: Hit, wide_start: int, wide_end: int) -> Hit:
    """Return a hit with as much of the text around it as is in the same run of base64.

    A slash is a letter of base64 and ends a folder's name: before one, a little readable text is chance.
    """
    left, right = data[wide_start : tight.start], data[tight.end : max(tight.end, wide_end)]
    before = len(left) - len(left.rstrip(_FROM))
    after = len(right) - len(right.lstrip(_FROM))
    slash = left.rfind(b"/", len(left) - before)
    if slash >= 0 and before < _CHANCE:
        before = len(left) - slash - 1
    end = tight.end + after
    padding = len(data[end : end + 3]) - len(data[end : end + 3].lstrip(b"="))
    return Hit(tight.start - before, end + (padding if padding <= _MOST_PADDING else 0), tight.value)


def _within_one_run(data: bytes, hit: Hit) -> Hit | None:
    """Return what of a hit is one run of encoded text, but for line ends and what `plain` leaves between.

    A short value that is found across two runs is an accident. A long one is none, and reaches into the
    next run only because its last character and the noise that follows look like an escape.
    """
    piece = data[hit.start : hit.end]
    between = piece.translate(None, _FROM)
    if not between.strip(b" \t\r\n\\\"'=" if len(hit.value) >= _JOINED_LINES_FROM else b"\\\"'"):
        return hit
    longest = max(_re(rb"[A-Za-z0-9+/_\\\"'-]+").finditer(piece), key=lambda run: run.end() - run.start())
    if longest.end() - longest.start() < len(forms.plain(encoded(hit.value))) * 8 // 6:
        return None
    return Hit(hit.start + longest.start(), hit.start + longest.end(), hit.value)


def _cut_is_credible(data: bytes, start: int, end: int, value: str) -> bool:
    """Say whether a line end inside of a found value may be no accident."""
    if b"\n" in value.encode("utf-8", "replace") or len(value) >= _JOINED_LINES_FROM:
        return True
    cut = data.find(b"\n", start, end)
    if cut < 0:
        return True
    line = data[data.rfind(b"\n", 0, cut) + 1 : cut].rstrip(b"\r")
    return len(line.decode("utf-8", "replace")) in forms.TERMINAL_WIDTHS


_ESCAPING = b"\\\"'$%\r\n"


def _really(piece: bytes, raw: bytes) -> bool:
    """Say whether a short piece of text is an encoded form of a value, not just equal when plain.

    It is if, after so many rounds of decoding, it has all characters of the value in order, and of those
    that syntaxes add only such as a syntax would add to this value.
    """
    allowed = {0x5C, 0x0D, 0x0A} | set(raw) | ({0x25} if b"%" in piece else set())
    if b"'" in raw or b'"' in raw:
        allowed |= {0x22, 0x27}
    seen, waiting = {piece}, [piece]
    for _round in range(5):
        for text in waiting:
            if _is_within(raw, text) and allowed.issuperset(set(text.strip(_ESCAPING)) & set(_ESCAPING)):
                return True
        decoded = {new for text in waiting for new in _decoded_once(text)} - seen
        seen |= decoded
        waiting = list(decoded)
    return False


def _decoded_once(text: bytes) -> Iterator[bytes]:
    yield _re(rb"%([0-9A-Fa-f]{2})").sub(_byte, text)
    yield forms.decoded_codes(text)
    yield text.replace(b"&amp;", b"&").replace(b"&quot;", b'"').replace(b"&lt;", b"<").replace(b"&gt;", b">")


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes((int(match[1], 16),))


def _is_within(raw: bytes, piece: bytes) -> bool:
    """Say whether the bytes of a value occur in order."""
    at = -1
    for index in range(len(raw)):
        at = piece.find(raw[index : index + 1], at + 1)
        if at < 0:
            return False
    return True
