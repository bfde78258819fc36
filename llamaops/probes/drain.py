"""A request that runs while its server is stopped: does it finish, or fail cleanly, in the grace time?"""

from __future__ import annotations

import threading
from typing import Literal

from llamaops.probes.chat import PATH
from llamaops.probes.chat_stream import StreamReader
from llamaops.probes.registry import probe
from llamaops.probes.streamed import long_body
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import StreamExchange
from llamaops.system.parallel import Pending, start
from llamaops.system.sse import SseEvent

PROMPT = "Tell me a very long story about a harbour, and do not stop."
TOKENS = 256
GRACE_S = 15.0
"""Longer than the stages of stopping take together."""
FIRST_S = 60.0


class DrainFacts(Shape, frozen=True, kw_only=True):
    """One streamed request that ran when its server was told to stop."""

    pieces_before: int
    """Pieces of text that had come when the server was told to stop."""
    ended: Literal["done", "error_event", "closed", "cut", "timed_out", "not_running"]
    """How the request ended: `closed` in an orderly way, `cut` by the connection; `timed_out` it did not."""
    pieces: int
    """Pieces of text in all."""
    ended_s: float | None
    """Seconds from telling the server to stop to the end of the request."""
    stop: str = ""
    """What it took to stop the server."""
    stop_s: float | None = None
    """Seconds that stopping took."""
    left: tuple[int, ...] = ()
    """Processes that were left, and were killed."""


class Draining:
    """A streamed request that goes on in a thread of its own while the server is stopped."""

    def __init__(self, client: HttpClient, model: str | None) -> None:
        self._client = client
        self._reader = StreamReader()
        self._begun = threading.Event()
        self._body = long_body(PROMPT, max_tokens=TOKENS, model=model)
        self._running: Pending[tuple[str, float]] | None = None
        self._pieces_before = 0
        self._stop_at = 0.0

    @probe(
        "drain",
        sends="one streamed chat request that runs when the server is stopped; only with serve --once",
        proves="it finishes or fails cleanly in the grace time, and nothing is left of the server",
        does_not_prove="that a client gets its whole answer: an engine that is stopped does not wait for it",
        tokens="at most 256",
        seconds="the stages of stopping, at most 15",
        level="full",
    )
    def begin(self) -> bool:
        """Send the request and wait for its first text; say whether there is some."""
        self._running = start(self._run)
        self._begun.wait(FIRST_S)
        self._pieces_before = len(self._reader.times)
        self._stop_at = self._client.now()
        return self._pieces_before > 0

    def _run(self) -> tuple[str, float]:
        limits = Bounds(wall_s=FIRST_S + GRACE_S, keep_bytes=16 * KIB, total_bytes=4 * MIB)

        def take(event: SseEvent) -> bool:
            self._reader.take(event)
            if self._reader.times:
                self._begun.set()
            late = bool(self._stop_at) and self._client.now() - self._stop_at > GRACE_S
            return self._reader.done or late

        result = self._client.stream("POST", PATH, bounds=limits, body=self._body, stop=take)
        self._begun.set()
        ended = result.end if isinstance(result, StreamExchange) else "cut"
        return ended, self._client.now()

    def finish(self, *, stop: str, stop_s: float, left: tuple[int, ...]) -> DrainFacts:
        """Return how the request ended, now that the server has been stopped."""
        if self._running is None or self._pieces_before == 0:
            return DrainFacts(
                pieces_before=0,
                ended="not_running",
                pieces=0,
                ended_s=None,
                stop=stop,
                stop_s=stop_s,
                left=left,
            )
        ended, at_s = self._running.result()
        return DrainFacts(
            pieces_before=self._pieces_before,
            ended=self._kind(ended),
            pieces=len(self._reader.times),
            ended_s=round(max(0.0, at_s - self._stop_at), 3),
            stop=stop,
            stop_s=stop_s,
            left=left,
        )

    def _kind(self, ended: str) -> Literal["done", "error_event", "closed", "cut", "timed_out"]:
        if self._reader.done:
            return "done"
        if self._reader.error:
            return "error_event"
        return "closed" if ended == "closed" else "timed_out" if ended == "timed_out" else "cut"
