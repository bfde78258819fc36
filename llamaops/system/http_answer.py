"""What came of an exchange: a whole answer, a stream, or a failure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.system.http_wire import FailureKind
from llamaops.system.sse import SseEvent


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """An exchange that gave no whole answer."""

    kind: FailureKind
    detail: str
    """One sentence without the key."""
    elapsed_s: float
    status: int | None = None
    """The status line's code, where one was read before the failure."""
    evidence: str | None = None
    """Id of what had arrived, where anything had."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A whole answer, whatever its status."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    elapsed_s: float
    evidence: str | None = None

    def header(self, name: str) -> str:
        """Return a header's value, or the empty text."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    def json(self) -> object:
        """Return the decoded body.

        Raises: ParseError when it is not JSON.
        """
        return decode_json(self.body)


StreamEnd = Literal["closed", "stopped", "timed_out", "cut", "too_large", "bad_response"]


@dataclass(frozen=True, slots=True)
class StreamExchange:
    """An answer read as Server-Sent Events; times are seconds after the request was sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    events: tuple[SseEvent, ...]
    comments: int
    end: StreamEnd
    detail: str
    body: bytes
    """The body as it came where it is not an event stream; empty otherwise."""
    elapsed_s: float
    evidence: str | None = None
    sent_at_s: float = 0.0
    """When the request had been sent, by the clock's monotonic seconds."""

    def header(self, name: str) -> str:
        """Return a header's value, or the empty text."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")


def _once(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _value in pairs}) < len(pairs):
        raise ParseError("the body is JSON in which a key stands twice")


def decode_json(data: bytes) -> object:
    """Decode JSON strictly.

    Raises: ParseError, without quoting the input.
    """
    try:
        value = msgspec.json.decode(data)
        # A key that stands twice means one thing to one client and another to the next.
        json.loads(data, object_pairs_hook=_once)
    except ParseError:
        raise
    except (ValueError, RecursionError) as error:
        kind = "HTML" if data.lstrip()[:1] == b"<" else "not JSON"
        raise ParseError(f"the body is {kind} ({len(data)} bytes)") from error
    return value
