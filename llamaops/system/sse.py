"""Server-Sent Events: bytes in, events out, each with the time its last byte arrived. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event."""

    name: str
    """The `event:` field; `error` where an old build used that as a field name instead of `data`."""
    data: str
    at_s: float
    """Seconds after the request was sent."""


class SseParser:
    """Reads a stream in pieces of any size."""

    def __init__(self) -> None:
        self.comments = 0
        """Lines that start with a colon: keep-alive pings."""
        self._rest = b""
        self._data: list[str] = []
        self._name = ""

    def feed(self, chunk: bytes, at_s: float) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete."""
        lines = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = lines.pop()
        events = []
        for line in lines:
            event = self._line(line.removesuffix(b"\r"), at_s)
            if event is not None:
                events.append(event)
        return events

    @property
    def pending(self) -> bool:
        """Whether an event was begun and not completed by an empty line."""
        return bool(self._rest.strip() or self._data)

    def _line(self, line: bytes, at_s: float) -> SseEvent | None:
        if not line:
            return self._dispatch(at_s)
        if line.startswith(b":"):
            self.comments += 1
            return None
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "error":
            self._name = "error"
        if field in {"data", "error"}:
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _dispatch(self, at_s: float) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return SseEvent(name, "\n".join(data), at_s) if data else None
