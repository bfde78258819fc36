"""Secrets known by their place: a variable, flag, header, member or key whose name says so.

A name is found by one of ANCHORS inside of it, read to both sides, and understood by `names.meaning`, so
that one piece of code serves environment dumps, command lines, JSON (also inside of JSON), YAML, TOML,
unit files, headers and queries.
"""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llamaops.record import names
from llamaops.record.headers import find_authorization, find_bearer, find_cookies
from llamaops.record.hosts import host_of, is_private_host
from llamaops.record.logins import find_program_logins
from llamaops.record.people import ORDINARY_USERS
from llamaops.record.spans import DEVICE, HOST, SECRET, USER, Span
from llamaops.record.values import LONGEST_VALUE, is_no_value, looks_secret, names_a_file, value_at

ANCHORS = (
    "key", "token", "secret", "pass", "pwd", "credential", "auth", "psk", "cookie", "sig", "session",
    "sid", "otp", "jwt", "webhook", "hostname", "nodename", "computername", "fqdn", "servername", "uuid",
    "serial",     "machine", "boot", "-hft", "kennwort", "user", "logname", "pin", "hwid", "guid",
)  # fmt: skip
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_LONGEST_NAME = 64
_LONG_VALUE = 512
_MOST_LONG_VALUES = 16  # in each stretch of a text as long as the longest value


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_places(text: str) -> Iterator[Span]:
    """Yield every value whose name tells that it is none of a reader's business."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length
        lower = "".join(c.lower() if c.isascii() else c for c in text)
    done: set[int] = set()
    long_values = _LongValues()
    for anchor in ANCHORS:
        at = lower.find(anchor)
        while at >= 0:
            start, end = _name_at(text, at, len(anchor))
            if start not in done:
                done.add(start)
                means = names.meaning(text[start:end])
                if means:
                    yield from _values(text, start, end, means, long_values)
            at = lower.find(anchor, max(end, at + 1))
    yield from find_bearer(text, lower)
    yield from find_program_logins(text, lower)


def _name_at(text: str, at: int, size: int) -> tuple[int, int]:
    left = text[max(0, at - _LONGEST_NAME) : at]
    start = at - (len(left) - len(left.rstrip(_NAME)))
    rest = text[at + size : at + size + _LONGEST_NAME]
    end = at + size + len(rest) - len(rest.lstrip(_NAME))
    while end > at + size and text[end - 1] in ".-":
        end -= 1
    if start >= 1 and text[start - 1] == "\\" and text[start] in "nrt" and start < at:
        start += 1  # an escaped end of line stands before it
    elif start >= 1 and text[start - 1] == "%" and start + 2 < at:
        start += 2
    return start, end


# Between a name and its value; the value may have a quote of its own before it.
_SIGN = r"(?:\\*[\"'`]|%22|%27)?\]?[ \t]{0,40}(?:=>|:=|==?|:(?!:)|%3[DdAa])[ \t]{0,40}"
_FLAG = r"(?:[ \t]{1,8}|=|\\*[\"'],[ \t]{0,8}(?=\\*[\"'])|\\*[\"'][ \t]{1,8}|\\n[ \t]{0,8}(?=[^-\s]))"
_LISTED = r"\\*[\"'],[ \t]{0,8}(?=\\*[\"'])"
_NAMED_VALUE = r"\\*[\"']?(?:,|\s|\\n){1,40}\\*[\"']?(?:value|Value|VALUE)\\*[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
_ELEMENT = r">(?=[^<>\s]{1,512}</)"


class _LongValues:
    """Bounds the work on long runs without a space, where every name has all of the rest for its value."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.cookie = range(0)
        """Where the last cookie stands: what it holds was read with it."""

    def add(self, start: int, end: int) -> None:
        """Count a value."""
        if end - start >= _LONG_VALUE:
            part = start // LONGEST_VALUE
            self._seen[part] = self._seen.get(part, 0) + 1

    def full(self, at: int) -> bool:
        """Say whether enough long values were read in this part of the text."""
        return self._seen.get(at // LONGEST_VALUE, 0) >= _MOST_LONG_VALUES


def _values(text: str, start: int, end: int, means: str, long_values: _LongValues) -> Iterator[Span]:
    """Yield the value or values that stand after a name."""
    name = text[start:end]
    match = _after_name(text, start, end, name)
    if match is None:
        return
    at = match.end()
    if "," in match[0] and not name.startswith("-") and _re(r"\\*[\"'][a-z_-]+\\*[\"']").match(text, at):
        return  # a list of names
    if long_values.full(at) or at in long_values.cookie:
        return
    if means in (names.AUTHORIZATION, names.COOKIE):
        found = list(
            find_authorization(text, at) if means == names.AUTHORIZATION else find_cookies(text, at, name)
        )
        if found:
            long_values.add(at, found[-1].end)
            long_values.cookie = range(at, found[-1].end if means == names.COOKIE else at)
        yield from found
        return
    value_start, value_end = value_at(text, at, in_query=_in_query(text, start))
    long_values.add(value_start, value_end)
    value = text[value_start:value_end]
    if is_no_value(value) or (value_start == at and _is_prose_or_code(text, match[0], value, value_end)):
        return
    yield from _judged(text, name, means, value_start, value_end, value)


def _is_prose_or_code(text: str, sign: str, value: str, end: int) -> bool:
    """Say whether a value without quotes is a flag, an expression of a program, or a word of a sentence."""
    if _re(r"--?[a-z]+(?:-[a-z]+)*").fullmatch(value):
        return True
    if _re(
        r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[\[(].*|(?:self|args|os|request|settings|config)\.[\w.]+"
        r"|[a-z_]+(?:\.[a-z_]+)+"
    ).match(value):
        return True
    if not value.isalpha() or not value.islower():
        return False
    return (
        sign.rstrip(" \t").endswith(":") and sign[-1] in " \t" and _re(r" [a-z]").match(text, end) is not None
    )


def _after_name(text: str, start: int, end: int, name: str) -> re.Match[str] | None:
    flag = name.startswith("-") or (start > 0 and text[start - 1] == "-")
    patterns = [_SIGN]
    if flag:
        patterns.insert(0, _FLAG)
    patterns.append(_NAMED_VALUE)
    if "-" in name and not flag:
        patterns.append(_LISTED)
    if start > 0 and text[start - 1] == "<":
        patterns.append(_ELEMENT)
    if name == "password" and _re(r"\b(?:login|user|machine)\s+\S+\s{1,8}\Z").search(
        text[max(0, start - 160) : start]
    ):
        patterns.append(r"[ \t]{1,8}|\s{1,8}")
    for pattern in patterns:
        match = _re(pattern).match(text, end)
        if match is not None:
            return match
    return None


def _judged(text: str, name: str, means: str, start: int, end: int, value: str) -> Iterator[Span]:
    rule = (
        f"named-{means}" if means in (names.HOST_NAME, names.USER_NAME, names.DEVICE_ID) else "named-secret"
    )
    if means == names.HOST_NAME:
        if is_private_host(value):
            yield Span(start, start + len(host_of(value)), HOST, rule, host_of(value))
    elif means == names.USER_NAME:
        if value.lower() not in ORDINARY_USERS and _re(r"[\w.@+-]{2,64}").fullmatch(value):
            yield Span(start, end, USER, rule, value)
    elif means == names.DEVICE_ID:
        if len(value) >= 6 and _re(r"(?=.*\d)[\w.:-]+").fullmatch(value) and "." not in value:
            yield Span(start, end, DEVICE, rule, value)
    elif means == names.STRONG:
        if not _strong_is_ordinary(name, value):
            yield Span(start, end, SECRET, rule, value)
    elif looks_secret(value) or (
        _in_query(text, start - len(name) - 1) and len(value) >= 8 and not value.isdigit()
    ):
        yield Span(start, end, SECRET, rule, value)


def _strong_is_ordinary(name: str, value: str) -> bool:
    words = names.words_of(name)
    if words[-1] in ("key", "keys") and value.replace("_", "").isdigit() and len(value) < 12:
        return True
    if _re(r"--?[a-z]+(?:-[a-z]+)*").fullmatch(value):
        return True
    tells_file = words[-1].startswith(("key", "credential", "cred", "secret", "keys"))
    if names_a_file(value) and (
        tells_file or value.startswith(("/run/secrets", "/etc/", "/var/run/secrets"))
    ):
        return True
    return words[-1].startswith("token") and value.isdigit() and len(value) < 8


def _in_query(text: str, start: int) -> bool:
    return start > 0 and (
        text[start - 1] in "?&" or text[max(0, start - 3) : start].lower() in ("%3f", "%26")
    )
