"""The forms that a text takes on its way through shells, JSON, URLs, unit files and terminals.

`plain` undoes them all at once, whatever their depth: it decodes percent-encoding and escapes and drops
backslashes, quotes, `$` and `%`, which every one of these syntaxes adds. It is no inverse of anything; but
a value and every encoded form of it come out equal, so one search finds them all. Both work on bytes.
"""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Callable, Iterator
from re import Match, Pattern

from llamaops.record.offsets import Rewrite, rewrite

Step = tuple[Pattern[bytes], Callable[[Match[bytes]], bytes]]
_LONGEST_ENCODED = 1024  # longer values are only encoded once, which is enough to find them
TERMINAL_WIDTHS = (80, 100, 120, 132, 160)

_LLAMA_STAMP = rb"\.\d{2}\.\d{3}\.\d{3}[ ][A-Z][ ]"
_LINE_START = (
    rb"""(?:
    \d{1,4}"""
    + _LLAMA_STAMP
    + rb"""
  | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]?
    (?:\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\]?[: ]{1,8})?
  | \[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[ \t]
  | \[[ ]{0,8}\d{1,9}\.\d{1,6}\][ ]
  | (?:<\d{1,3}>)?[A-Z][a-z]{2}[ ][ \d]\d[ ]\d\d:\d\d:\d\d[ ]\S{1,64}[ ][\w./@-]{1,64}(?:\[\d{1,9}\])?:[ ]
  | [A-Za-z][\w.-]{0,40}[ ]{1,20}\|[ ]
  | \{"type":[ ]?"log",[ ]?"time":[ ]?\d{1,16},[ ]?"level":[ ]?"\w{1,8}",[ ]?"msg":[ ]?"
)"""
)
_COMPONENT = rb"(?:(?:[a-z]{2,6}[ ]{1,12})?[A-Za-z_~][\w~]{0,40}(?:\(\))?:[ ])?"
_ESCAPES = rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>])"


def _nothing(_match: Match[bytes]) -> bytes:
    return b""


def _percent(match: Match[bytes]) -> bytes:
    return bytes((int(match[1], 16),))


def _escape(match: Match[bytes]) -> bytes:
    text = match[0]
    last = text.lstrip(b"\\")
    if not last:
        return b""
    if last[:1] in b"uU":
        digits = [part.lstrip(b"\\")[1:] for part in re.findall(rb"\\+[uU][0-9A-Fa-f]+", text)]
        units = b"".join(
            binascii.unhexlify(b"0000" + d if len(d) == 4 else d)[2 if len(d) == 4 else 0 :] for d in digits
        )
        if len(digits[0]) == 8:
            return b"".join(_scalar(int(d, 16)) for d in digits)
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    if last[:1] == b"x":
        return binascii.unhexlify(last[1:])
    return {b"t": b"\t", b"033": b"\x1b", b"e": b"\x1b"}.get(last, b"")


def _scalar(number: int) -> bytes:
    return chr(number).encode("utf-8", "surrogatepass") if number < 0x110000 else b""


_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">"}


def _entity(match: Match[bytes]) -> bytes:
    return _ENTITIES.get(match[1], b"")


@functools.cache
def colour() -> Pattern[bytes]:
    """Return the pattern of terminal control sequences."""
    return re.compile(_ESCAPES)


def plain_steps() -> tuple[Step, ...]:
    """Return the steps of `plain`."""
    return (
        (re.compile(rb"%(?:25)*([0-9A-Fa-f]{2})"), _percent),
        (
            re.compile(
                rb"\\(?:u[0-9A-Fa-f]{4}(?:\\++u[0-9A-Fa-f]{4})*+"
                rb"|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[nrt]|(?:033|e)(?=\[))?"
            ),
            _escape,
        ),
        (colour(), _nothing),
        (re.compile(rb"&(?:amp;)*(amp|lt|gt|quot|apos|\#39|\#x27|\#34);"), _entity),
        (re.compile(rb"""["'$%\r\n]+"""), _nothing),
    )


_MARKS = (b"%", b"\\", b"\x1b", b"&")


def plain(data: bytes) -> bytes:
    """Return the data with every escape undone or dropped."""
    for mark, (pattern, replace) in zip(_MARKS, _steps(), strict=False):
        if mark in data:
            data = pattern.sub(replace, data)
    return data.translate(None, b"\"'$%\r\n")


_steps = functools.cache(plain_steps)


@functools.cache
def joins() -> dict[str, tuple[bytes, Pattern[bytes]]]:
    """Return, by name, what to drop to join a value that was cut: what must occur at all, and the pattern.

    Ends of lines alone need no step of their own, since `plain` drops them; `indented` is for those with
    indentation after them. The others drop the start of the next log line too: with and without the name
    of the part that logs, as one row of JSON, or in the middle of a line.
    """

    def compiled(source: bytes) -> Pattern[bytes]:
        return re.compile(source, re.VERBOSE)

    return {
        "indented": (b"\n", compiled(rb"\n[ \t]+")),
        "lines": (b"\n", compiled(rb"\n" + _LINE_START)),
        "components": (b"\n", compiled(rb"\n" + _LINE_START + _COMPONENT)),
        "rows": (b'"}', compiled(rb'"\}\r?\n' + _LINE_START)),
        "row-components": (b'"}', compiled(rb'"\}\r?\n' + _LINE_START + _COMPONENT)),
        "inline": (b" ", compiled(rb"(?<=[^\n])\d" + _LLAMA_STAMP)),
        "inline-2": (b" ", compiled(rb"(?<=[^\n])\d\d" + _LLAMA_STAMP)),
        "inline-components": (b" ", compiled(rb"(?<=[^\n])\d" + _LLAMA_STAMP + _COMPONENT)),
        "inline-components-2": (b" ", compiled(rb"(?<=[^\n])\d\d" + _LLAMA_STAMP + _COMPONENT)),
    }


def wraps(data: bytes) -> set[int]:
    """Return the places of those ends of lines at which a terminal would have wrapped a longer line."""
    found = set()
    at = 0
    for line in data.split(b"\n"):
        size = len(line)
        if size >= TERMINAL_WIDTHS[0] and not line.isascii():
            size = len(line.decode("utf-8", "replace"))
        if size in TERMINAL_WIDTHS:
            found.add(at + len(line))
        at += len(line) + 1
    found.discard(len(data))
    return found


@functools.cache
def _stamp() -> Pattern[bytes]:
    return re.compile(rb"\d" + _LLAMA_STAMP)


def has_stamp_inside(data: bytes) -> bool:
    """Say whether a line of llama.cpp's log begins in the middle of another."""
    for match in _stamp().finditer(data):
        start = match.start()
        while start and data[start - 1 : start].isdigit() and match.start() - start < 8:
            start -= 1
        if start and data[start - 1 : start] not in b"\n.":
            return True
    return False


def plain_back(data: bytes) -> list[Rewrite[bytes]]:
    """Return the steps of `plain` with their ways back, the first step first."""
    done = []
    for pattern, replace in _steps():
        done.append(rewrite(pattern, replace, data))
        data = done[-1].text
    return done


@functools.cache
def _codes() -> Pattern[bytes]:
    return re.compile(rb"\\(?:u[0-9A-Fa-f]{4}(?:\\++u[0-9A-Fa-f]{4})*+|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2})")


def decoded_codes(data: bytes) -> bytes:
    """Return the data with characters that were written as numbers decoded."""
    return _codes().sub(_escape, data)


def encodings(value: str, *, deep: bool = False) -> set[str]:
    """Return the forms of a value after one or two (or, deep, three) steps, itself included.

    Base64 is not among them: it is looked for otherwise.
    """
    found, last = {value}, {value}
    for _step in range(3 if deep else 2):
        last = {form for item in last if len(item) < _LONGEST_ENCODED for form in _encoded_once(item)} - found
        found |= last
    return found


def _encoded_once(value: str) -> Iterator[str]:
    import json
    from urllib.parse import quote, quote_plus

    for safe in ("", "/"):
        quoted = quote(value, safe=safe, errors="surrogateescape")
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    yield quote_plus(value, errors="surrogateescape")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield json.dumps(value).replace("/", "\\/")[1:-1]
    yield repr(value)[1:-1]
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", "'\\''")
    yield re.sub(r'(["\\$`])', r"\\\1", value)
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
    yield value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    yield value.replace("$", "$$")
    yield json.dumps(value)[1:-1].replace("$", "$$")
    yield value.encode("utf-8", "surrogateescape").hex()
    yield value.encode("utf-8", "surrogateescape").hex().upper()
    yield value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
