"""An HttpClient without a network: answers by method and path; a request not foreseen fails the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence, evidence_of
from llamaops.system.http import Exchange, HttpClient, HttpFailure, Origin, StreamExchange
from llamaops.system.sse import SseEvent, SseParser

DATA = Path(__file__).resolve().parents[1] / "data" / "rest"
Answer = Exchange | HttpFailure | StreamExchange


def recorded(build: str, name: str) -> Exchange:
    """Return the recorded answer of a real build."""
    item = json.loads((DATA / build / f"{name}.json").read_text(encoding="utf-8"))
    item = item[0] if isinstance(item, list) else item
    body = item["body"]
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Exchange(item["status"], tuple(item["headers"].items()), data, 0.01, None)


def answered(body: object, status: int = 200, kind: str = "application/json") -> Exchange:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Exchange(status, (("Content-Type", kind),), data, 0.01, None)


def failed(kind: str = "timed_out", status: int | None = None) -> HttpFailure:
    return HttpFailure(kind, f"made up: {kind}", 1.0, status)  # type: ignore[arg-type]  # a kind of the module


def recorded_stream(build: str, name: str, *, pace_s: float = 0.01) -> StreamExchange:
    """Return a recorded stream whose events arrive `pace_s` apart."""
    return stream((DATA / build / f"{name}.sse").read_bytes(), pace_s=pace_s)


def stream(data: bytes, *, pace_s: float = 0.01, end: str = "closed", status: int = 200) -> StreamExchange:
    parser = SseParser()
    events: list[SseEvent] = []
    for number, block in enumerate(data.split(b"\n\n")[:-1]):
        events += parser.feed(block + b"\n\n", 0.1 + number * pace_s)
    headers = (("Content-Type", "text/event-stream"),)
    return StreamExchange(status, headers, tuple(events), parser.comments, end, "", b"", 1.0)  # type: ignore[arg-type]


@dataclass
class FakeClient:
    """Answers from a mapping of `METHOD path` to an answer, or to a function of the request's body."""

    answers: dict[str, Answer | Callable[[object], Answer]]
    has_key: bool = False
    origin: Origin = field(default_factory=lambda: Origin("http", "127.0.0.1", 8080))
    seconds: float = 0.0
    sent: list[str] = field(default_factory=list)
    kept: dict[str, Evidence] = field(default_factory=dict)

    def now(self) -> float:
        return self.seconds

    def exchange(
        self,
        method: str,
        path: str,
        *,
        bounds: Bounds,
        body: object | None = None,
        with_key: bool = True,
        other_key: str | None = None,
        clean: Callable[[bytes], bytes] | None = None,
    ) -> Exchange | HttpFailure:
        key = "" if with_key or not self.has_key else " wrong" if other_key else " none"
        answer = self._find(f"{method} {path}{key}", body)
        assert not isinstance(answer, StreamExchange)
        self.seconds += answer.elapsed_s
        if isinstance(answer, HttpFailure):
            return answer
        data = answer.body if clean is None else clean(answer.body)
        evidence = evidence_of("http", f"{method} {path}", data)
        self.kept[evidence.id] = evidence
        return Exchange(answer.status, answer.headers, data, answer.elapsed_s, evidence.id)

    def stream(
        self,
        method: str,
        path: str,
        *,
        bounds: Bounds,
        body: object | None = None,
        with_key: bool = True,
        stop: Callable[[SseEvent], bool] | None = None,
    ) -> StreamExchange | HttpFailure:
        answer = self._find(f"{method} {path} stream", body)
        assert not isinstance(answer, Exchange)
        return answer

    def _find(self, request: str, body: object) -> Answer:
        self.sent.append(request)
        assert request in self.answers, f"not foreseen: {request}"
        answer = self.answers[request]
        return answer(body) if callable(answer) else answer

    @property
    def client(self) -> HttpClient:
        """Return itself, as what probes take."""
        return cast("HttpClient", self)
