"""Redact a log while it passes through, with bounded memory and no delay that is not needed."""

from __future__ import annotations

import re
from functools import cache

from llamaops.record import forms
from llamaops.record.given import encoded
from llamaops.record.redact import Redactor

HOLD_CHARACTERS = 65_536
_HOLD_LINES = 8
_OVERLAP = 4096
_BASE64_TAIL = 24
_LEAST_PREFIX = 2


class LineRedactor:
    """Redacts line by line; holds a line back only while a secret may go on in the next one."""

    def __init__(self, redactor: Redactor, *, hold_characters: int = HOLD_CHARACTERS) -> None:
        """Begin a stream.

        Units: `hold_characters` bounds what is held back of a key that does not end or of an endless line.
        """
        self._redactor = redactor
        self._hold = hold_characters
        self._bytes = bytearray()
        self._held = ""
        self._in_key = False
        longest = max((len(value) for value in redactor.given), default=0)
        self._overlap = min(hold_characters // 2, max(_OVERLAP, 4 * longest))

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what may go out."""
        self._bytes += data
        out = []
        end = self._bytes.rfind(b"\n") + 1
        if end:
            self._held += bytes(self._bytes[:end]).decode("utf-8", "surrogateescape")
            del self._bytes[:end]
            out.append(self._lines())
        if len(self._bytes) > self._hold:
            out.append(self._long_line())
        return "".join(out).encode("utf-8", "surrogateescape")

    def close(self) -> bytes:
        """Return the rest, at the end of the stream."""
        text = self._held + bytes(self._bytes).decode("utf-8", "surrogateescape")
        self._held = ""
        self._bytes.clear()
        return self._redacted(text).encode("utf-8", "surrogateescape")

    def _lines(self) -> str:
        keep = self._first_to_hold(self._held)
        if len(self._held) - keep > self._hold or self._held.count("\n", keep) > self._most_lines(keep):
            keep = len(self._held)
        if keep == 0:
            return ""
        if keep == len(self._held):
            text, self._held = self._held, ""
            return self._redacted(text)
        head, self._held = self._redactor.head(self._with_key(self._held), keep + self._key_size())
        return head

    def _most_lines(self, keep: int) -> int:
        return 4096 if "PRIVATE KEY" in self._held[keep:] else _HOLD_LINES

    def _long_line(self) -> str:
        """Let the beginning of a line go that does not end."""
        text = self._held + bytes(self._bytes).decode("utf-8", "surrogateescape")
        self._held = ""
        at = len(text) - self._overlap
        space = text.rfind(" ", at - _OVERLAP // 4, at)
        head, rest = self._redactor.head(text, space if space > 0 else at)
        self._bytes = bytearray(rest.encode("utf-8", "surrogateescape"))
        return head

    def _redacted(self, text: str) -> str:
        whole = self._with_key(text)
        done = self._redactor.text(whole) if text else ""
        self._in_key = whole.rfind("-----BEGIN ") > whole.rfind("-----END ") and "PRIVATE KEY" in whole
        return done

    def _with_key(self, text: str) -> str:
        """Return the text with the beginning of the key that it goes on with."""
        return _KEY_BEGINS + text if self._in_key and _goes_on().match(text) else text

    def _key_size(self) -> int:
        return len(_KEY_BEGINS) if self._in_key and _goes_on().match(self._held) else 0

    def _first_to_hold(self, text: str) -> int:
        """Return where the lines begin that may not go out yet."""
        begin = text.rfind("-----BEGIN ")
        if begin >= 0 and "PRIVATE KEY" in text[begin : begin + 60] and text.find("-----END ", begin) < 0:
            return text.rfind("\n", 0, begin) + 1
        start = len(text)
        for _line in range(_HOLD_LINES):
            line_start = text.rfind("\n", 0, max(0, start - 1)) + 1
            if start == 0 or not self._may_go_on(text[line_start:start]):
                return start
            start = line_start
        return start

    def _may_go_on(self, line: str) -> bool:
        """Say whether a value may be cut by the end of this line."""
        tail = forms.colour().sub(b"", encoded(line[-2 * self._overlap :])).rstrip(b"\r\n")
        if not tail:
            return False
        if len(tail.decode("utf-8", "replace")) in forms.TERMINAL_WIDTHS or _base64_tail().search(
            tail[-200:]
        ):
            return True
        plain = forms.plain(tail)
        return any(
            _ends_within(text, encoded(value)) for value in self._redactor.given for text in (tail, plain)
        )


_KEY_BEGINS = "-----BEGIN PRIVATE KEY-----\n"


@cache
def _goes_on() -> re.Pattern[str]:
    return re.compile(r"\s*(?:[A-Za-z0-9+/=]{16,}\s*$|-----END )", re.MULTILINE)


@cache
def _base64_tail() -> re.Pattern[bytes]:
    return re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{%d,}\Z" % _BASE64_TAIL)


def _ends_within(tail: bytes, value: bytes) -> bool:
    """Say whether a text ends with the beginning of a value."""
    at = tail.find(value[:_LEAST_PREFIX], max(0, len(tail) - len(value)))
    while at >= 0:
        if len(tail) - at < len(value) and value.startswith(tail[at:]):
            return True
        at = tail.find(value[:_LEAST_PREFIX], at + 1)
    return False
