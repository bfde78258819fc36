"""From a raw line to its parts: wrappers of the platform, prefix, level, tag and message.

A log may come straight from the engine or through docker, Compose, Kubernetes or journald, with colours
or without, as text or as JSON lines, and from any release since late 2023. This module takes all of that
off, so that the patterns see one form. Every step is linear in a line that is cut at `MAX_CHARS` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

MAX_CHARS = 2048
"""Longer lines are cut: no line that carries a fact is longer, a metadata dump may be."""
MAX_JSON_CHARS = 64 * 1024
MAX_PARTS = 64
"""Physical lines taken from one JSON message."""

Level = Literal["error", "warn", "info", "debug"]
Form = Literal["text", "json_lines", "json_lines_2024", "key_value_2024"]

_LEVELS: dict[str, Level] = {
    "E": "error", "ERR": "error", "ERROR": "error",
    "W": "warn", "WARN": "warn", "WARNING": "warn",
    "I": "info", "INFO": "info",
    "D": "debug", "DEBUG": "debug", "VERB": "debug", "VERBOSE": "debug",
}  # fmt: skip

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\s+(?:std(?:out|err) [FP] )?"
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,255} [\w./@-]{1,255}(?:\[\d{1,10}\])?: ")
_UNIT = re.compile(r"\S{1,255} [\w./@-]{1,255}\[\d{1,10}\]: ")
_COMPOSE = re.compile(r"[A-Za-z0-9][\w.-]{0,127} +\| ")
_RELAYED = re.compile(r"\[\d{1,5}\] ")
_STAMPED = re.compile(r"\d{1,6}\.\d\d\.\d{3}\.\d{3} ([A-Z])(?: |$)")
_LETTERED = re.compile(r"([IWED]) (?=(?:srv|slot|cmn|que|spec)\s|[\w.~-]{1,64}:(?:\s|$))")
_KEY_VALUE = re.compile(r"(INFO|WARN|WARNING|ERR|ERROR|VERB|DEBUG) \[\s*([\w:~]{1,64})\]\s?(.*)")
_FIELD = re.compile(r'(\w{1,64})=("[^"]{0,512}"|[^\s"]{1,512})')
_SERVER_TAG = re.compile(r"(srv|slot|cmn|que|spec)\s{1,20}(\S{1,24}): (.*)")
_FUNCTION_TAG = re.compile(r"([A-Za-z_][\w:~]{0,79}?(?:\(\))?):(?: (.*)|$)")
_SLOT = re.compile(r"\s*id\s+(-?\d{1,9}) \| task (-?\d{1,9}) \| ?(.*)")


class Line(NamedTuple):
    """One physical line without its wrappers."""

    text: str
    """Everything after the prefix, tag included."""
    level: Level | None
    """None where the line does not say (raw prints, and releases before 2026)."""
    tag: str
    """`srv`, `slot`, `cmn`, or the name of the library function; empty when there is none."""
    function: str
    """For a server tag the function behind it, else the tag."""
    message: str
    """The text after the tag."""
    form: Form
    prefixed: bool
    """Whether the logger wrote it: it has a time stamp, a letter, or came as JSON."""
    fields: Mapping[str, str]
    """Values of a structured line, and `id_slot` and `id_task` of a slot line."""
    output: bool = False
    """Whether it is generated text and not a message."""
    record: Mapping[str, object] | None = None
    """A JSON line that is not a message, such as the memory breakdown."""


_NO_FIELDS: Mapping[str, str] = {}


def lines_of(raw: str) -> Iterator[Line]:
    """Take one physical line apart; a JSON message may hold several lines."""
    text = _unwrap(raw)
    if text.startswith("{") and len(text) <= MAX_JSON_CHARS:
        parsed = _json(text)
        if parsed is not None:
            yield from parsed
            return
    yield _text_line(text[:MAX_CHARS])


def _unwrap(raw: str) -> str:
    text = raw.rstrip("\r\n")[: MAX_JSON_CHARS + 1]
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = text.rsplit("\r", 1)[1]  # a progress display overwrites the line
    if text.startswith("{"):
        inner = _wrapped_in_json(text)
        if inner is not None:
            text = inner
    for wrapper in (_COMPOSE, _DATE, _SYSLOG, _UNIT, _RELAYED):
        found = wrapper.match(text)
        if found:
            text = text[found.end() :]
    return text


def _wrapped_in_json(text: str) -> str | None:
    """Return the line inside a record of docker's json-file driver or of journald."""
    if not ('"log"' in text or '"MESSAGE"' in text) or len(text) > MAX_JSON_CHARS:
        return None
    record = _decode(text)
    if record is None or "type" in record:
        return None
    inner = record.get("log", record.get("MESSAGE"))
    if not isinstance(inner, str):
        return None
    inner = inner.rstrip("\r\n")
    return _ANSI.sub("", inner) if "\x1b" in inner else inner


def _decode(text: str) -> dict[str, object] | None:
    try:
        record = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _json(text: str) -> list[Line] | None:
    """Return the lines of a JSON record, or None for text that only begins like one."""
    record = _decode(text)
    if record is None:
        return None
    if record.get("type") == "log" and isinstance(record.get("msg"), str):
        return _jsonl_message(record)
    message = record.get("msg", record.get("message"))
    if isinstance(message, str) and "level" in record:
        return [_structured_2024(record, message)]
    if isinstance(record.get("type"), str):
        return [Line("", None, "", "", "", "json_lines", prefixed=True, fields=_NO_FIELDS, record=record)]
    return None


def _jsonl_message(record: Mapping[str, object]) -> list[Line]:
    name = str(record.get("level"))
    level = _LEVELS.get(name.upper())
    lines = []
    for index, part in enumerate(str(record["msg"]).split("\n")[:MAX_PARTS]):
        if index and not part:
            continue
        # A continuation belongs to the message before it and never is a message of its own.
        whole = index == 0 and level is not None
        lines.append(
            _tagged(part[:MAX_CHARS], level if whole else None, form="json_lines", prefixed=whole)._replace(
                output=name == "none"
            )
        )
    return lines


def _structured_2024(record: Mapping[str, object], message: str) -> Line:
    fields = {
        key: str(value)
        for key, value in record.items()
        if isinstance(value, str | int | float) and key not in {"msg", "message"}
    }
    function = str(record.get("function", ""))
    return Line(
        text=f"{function}: {message}"[:MAX_CHARS],
        level=_LEVELS.get(str(record["level"]).upper()),
        tag=function,
        function=function,
        message=message[:MAX_CHARS],
        form="json_lines_2024",
        prefixed=True,
        fields=fields,
    )


def _text_line(text: str) -> Line:
    stamped = _STAMPED.match(text) or _LETTERED.match(text)
    if stamped:
        return _tagged(text[stamped.end() :], _LEVELS.get(stamped[1]), form="text", prefixed=True)
    structured = _KEY_VALUE.match(text)
    if structured:
        return _key_value(structured)
    return _tagged(text, None, form="text", prefixed=False)


def _key_value(found: re.Match[str]) -> Line:
    level, function, rest = found.groups()
    message, bar, values = rest.partition(" | ")
    fields = {key: value.strip('"') for key, value in _FIELD.findall(values)} if bar else {}
    message = message.strip()
    return Line(
        text=f"{function}: {message}",
        level=_LEVELS[level],
        tag=function,
        function=function,
        message=message,
        form="key_value_2024",
        prefixed=True,
        fields=fields,
    )


def _tagged(text: str, level: Level | None, *, form: Form, prefixed: bool) -> Line:
    server = _SERVER_TAG.match(text)
    if server:
        tag, function, message = server.groups()
        fields = _NO_FIELDS
        slot = _SLOT.match(message) if tag == "slot" else None
        if slot:
            fields = {"id_slot": slot[1], "id_task": slot[2]}
            message = slot[3]
        return Line(text, level, tag, function, message.strip(), form, prefixed=prefixed, fields=fields)
    named = _FUNCTION_TAG.match(text)
    if named:
        message = (named[2] or "").strip()
        return Line(text, level, named[1], named[1], message, form, prefixed=prefixed, fields=_NO_FIELDS)
    return Line(text, level, "", "", text.strip(), form, prefixed=prefixed, fields=_NO_FIELDS)
