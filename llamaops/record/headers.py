"""Find what HTTP headers carry: authorization and cookies."""

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llamaops.record.spans import SECRET, Span
from llamaops.record.values import OPEN, is_no_value, looks_secret


@cache
def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_SCHEMES = (
    r"(?i:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|digest|hawk|oauth|aws4-hmac-sha256|signature)"
)


def find_authorization(text: str, at: int) -> Iterator[Span]:
    """Yield the credentials of an authorization header whose value begins at a place."""
    opening = _re(OPEN).match(text, at)
    at = opening.end() if opening else at
    scheme = _re(rf"({_SCHEMES})(?:[ \t]+|%20|\+)").match(text, at)
    if scheme is not None and scheme[1].lower() in (
        "digest",
        "hawk",
        "oauth",
        "aws4-hmac-sha256",
        "signature",
    ):
        rest = _re(r"[^\n\\]{1,4096}").match(text, scheme.end())
        if rest is not None and "=" in rest[0] and not is_no_value(rest[0]):
            end = rest.end() - (len(rest[0]) - len(rest[0].rstrip("'\" \t\r}])")))
            yield Span(scheme.end(), end, SECRET, "authorization", text[scheme.end() : end])
        return
    start = scheme.end() if scheme else at
    match = _re(r"[^\s\"'`\\,;<>]{1,8192}").match(text, start)
    if match is None or is_no_value(match[0]):
        return
    follows = text[match.end() : match.end() + 2]
    if scheme is None and follows[:1] == " " and follows.strip() and not looks_secret(match[0]):
        return  # prose: "authorization: failed for this route"
    yield Span(start, match.end(), SECRET, "authorization", match[0])


def find_bearer(text: str, lower: str) -> Iterator[Span]:
    """Yield tokens after the word bearer alone."""
    at = lower.find("bearer")
    while at >= 0:
        match = _re(r"[: \t]{1,4}([A-Za-z0-9._~+/=-]{12,8192})").match(text, at + 6)
        if (
            match
            and (any(c.isdigit() for c in match[1]) or len(match[1]) >= 24)
            and not is_no_value(match[1])
        ):
            yield Span(match.start(1), match.end(1), SECRET, "authorization", match[1])
        at = lower.find("bearer", at + 6)


def find_cookies(text: str, at: int, name: str) -> Iterator[Span]:
    """Yield the values of the cookies that begin at a place."""
    opening = _re(OPEN).match(text, at)
    start = opening.end() if opening else at
    first_only = name.lower() == "set-cookie"
    match = _re(r"[^\n\"'\\<>;]{1,4096}" if first_only else r"[^\n\"'\\<>]{1,4096}").match(text, start)
    if match is None:
        return
    for pair in _re(r"([^\s=;]{1,128})=([^;\s]{4,4096})").finditer(match[0]):
        if not is_no_value(pair[2]):
            yield Span(start + pair.start(2), start + pair.end(2), SECRET, "cookie", pair[2])
