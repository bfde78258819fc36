"""A call of a tool that comes in pieces: put together from a stream, as clients do. Pure."""

from __future__ import annotations

from llamaops.probes.chat_stream import StreamReader
from llamaops.probes.reading import Json, as_list, as_object, text, whole


class ToolStreamReader(StreamReader):
    """Collects the calls of a stream beside everything else that its events say."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, dict[str, str]] = {}
        """Name and arguments of each call so far, by its index."""
        self.tool_pieces = 0
        """Pieces that carried a part of a call."""

    def _choice(self, choice: Json, at_s: float) -> None:
        super()._choice(choice, at_s)
        delta = as_object(choice.get("delta") or {}, "delta")
        for entry in as_list(delta.get("tool_calls") or [], "tool_calls"):
            self._part(as_object(entry, "a call"))

    def _part(self, part: Json) -> None:
        """Add a part of a call; name and arguments come in as many parts as the server likes."""
        call = self.calls.setdefault(whole(part, "index") or 0, {"name": "", "arguments": ""})
        function = as_object(part.get("function") or {}, "function")
        for field in call:
            call[field] += text(function, field) or ""
        self.tool_pieces += 1

    def whole_calls(self) -> list[Json]:
        """Return the calls in the form that an answer without a stream has."""
        return [{"function": dict(call)} for _index, call in sorted(self.calls.items())]
