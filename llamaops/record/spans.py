"""Parts of a text that have to go, and how they are replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# Kinds of values, which are also the words in placeholders. SECRETS are what a digest must not outlive.
SECRET, HOME, EMAIL, USER, HOST, ADDRESS, DEVICE = (
    "secret", "home", "email", "user", "host", "address", "device",
)  # fmt: skip
KINDS = (SECRET, HOME, EMAIL, USER, HOST, ADDRESS, DEVICE)


class Span(NamedTuple):
    """A part of a text that has to go."""

    start: int
    end: int
    kind: str
    rule: str
    value: str
    """What the placeholder stands for: equal values get equal placeholders."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, overlapping ones made one.

    Of two that overlap the more telling kind names the result: a password in a URL is a secret, though
    it looks like the beginning of an e-mail address.
    """
    result: list[Span] = []
    for span in sorted(spans):
        if span.start >= span.end:
            continue
        if result and span.start < result[-1].end:
            last = result[-1]
            telling = min((last, span), key=lambda item: (KINDS.index(item.kind), item.start - item.end))
            result[-1] = telling._replace(start=last.start, end=max(last.end, span.end))
        else:
            result.append(span)
    return result
