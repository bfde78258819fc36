"""Bounded exchanges with one origin; how one ended is a value.

The contract, for hostile peers too:

- One connection for each exchange, closed at its end: a server with a waiting client does not stop.
- The deadline counts from the first step and is checked before every read, so that a peer that drips a
  byte a second cannot hold us. Headers and body are capped, and nothing is decompressed.
- Redirects are answers, never followed; the key is sent to this origin only and is in no error text.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from llamaops.errors import UsageError
from llamaops.schema.bounds import KIB, Bounds
from llamaops.schema.evidence import Evidence, evidence_of
from llamaops.system.clock import Clock, RealClock
from llamaops.system.http_answer import Exchange, HttpFailure, StreamEnd, StreamExchange
from llamaops.system.http_wire import (
    ENDINGS,
    READ_BYTES,
    CutError,
    FailureKind,
    NotHttpError,
    TooLargeError,
    Wire,
    explain,
)
from llamaops.system.origin import Origin, checked_target
from llamaops.system.sse import SseEvent, SseParser

if TYPE_CHECKING:
    from http.client import HTTPResponse

__all__ = ["Exchange", "HttpClient", "HttpFailure", "Origin", "StreamExchange"]

KEY_MARK = b"[api key]"
PRIVATE_HEADERS = frozenset({"set-cookie", "authorization", "proxy-authorization", "x-api-key", "cookie"})
FAST_BOUNDS = Bounds(wall_s=2.0, keep_bytes=4 * KIB, total_bytes=64 * KIB)


_Address = Any
"""What getaddrinfo returns as an address: a tuple that differs by family."""


class HttpClient:
    """Exchanges with one origin. Holds no connection, so threads may share it."""

    def __init__(
        self,
        origin: Origin,
        *,
        api_key: str | None = None,
        keep: Callable[[Evidence], str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Raises: UsageError for a key that cannot be sent in a header; the message does not hold it.
        """
        if api_key is not None and (not api_key.strip() or not api_key.isprintable()):
            raise UsageError("the API key is empty or holds a line break or control character")
        self.origin = origin
        self._key = api_key
        self._keep = keep
        self._clock = clock or RealClock()
        self._addresses: list[tuple[socket.AddressFamily, _Address]] = []

    def without_evidence(self) -> HttpClient:
        """Return a client for the same origin that keeps nothing of its exchanges."""
        return HttpClient(self.origin, api_key=self._key, clock=self._clock)

    @property
    def has_key(self) -> bool:
        """Whether a key is sent."""
        return self._key is not None

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
        web_origin: str | None = None,
    ) -> Exchange | HttpFailure:
        """Make one exchange; every ending is a value.

        Args:
            method: GET, POST and so on.
            path: Path and query under the origin's prefix.
            bounds: `wall_s` for the whole exchange, `total_bytes` of the body, `keep_bytes` of evidence.
            body: Sent as JSON where given; bytes are sent as they are, to see what a broken body comes to.
            with_key: Whether our key is sent.
            other_key: A key to send instead, to see whether the server looks at it.
            clean: Takes private fields out of a body before it is kept and returned.
            web_origin: Sent as a browser's Origin, to see whether pages of other sites are let in.

        Units: seconds and bytes. Raises: nothing for what a peer does.
        """
        job = _Job(self, method, path, bounds, clean)
        request = self._request(
            method, path, body, with_key=with_key, other_key=other_key, web_origin=web_origin
        )
        return job.run(request)

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
        """Make one exchange and read its answer as Server-Sent Events with the time each arrived.

        Args:
            method: GET, POST and so on.
            path: Path and query under the origin's prefix.
            bounds: As for `exchange`.
            body: Sent as JSON where given.
            with_key: Whether our key is sent.
            stop: Called with each event; true disconnects at once.

        What had arrived before a stream ended early is returned with the reason.
        """
        job = _Job(self, method, path, bounds, None)
        parser = SseParser()
        try:
            with job.open(self._request(method, path, body, with_key=with_key)) as response:
                while chunk := response.read1(READ_BYTES):
                    job.take(chunk)
                    for event in parser.feed(chunk, job.arrived_s):
                        job.events.append(event)
                        if stop is not None and stop(event):
                            return job.streamed("stopped", "", parser.comments)
                job.check_whole(response)
        except ENDINGS as error:
            failure = job.failure(error)
            if job.status is None:
                return failure
            return job.streamed(_END_OF_KIND[failure.kind], failure.detail, parser.comments)
        return job.streamed("closed", "", parser.comments)

    def fast_get(self, path: str = "/health", *, wall_s: float = 2.0) -> Exchange | HttpFailure:
        """Make a cheap GET without the key and without keeping evidence, for readiness polling."""
        bounds = Bounds(wall_s=wall_s, keep_bytes=FAST_BOUNDS.keep_bytes, total_bytes=FAST_BOUNDS.total_bytes)
        job = _Job(self, "GET", path, bounds, None, keeps=False)
        return job.run(self._request("GET", path, None, with_key=False))

    def keep(self, evidence: Evidence) -> str | None:
        """Keep evidence where somebody wants it."""
        return None if self._keep is None else self._keep(evidence)

    def now(self) -> float:
        """Return the clock's monotonic seconds."""
        return self._clock.monotonic()

    def without_key(self, data: bytes) -> bytes:
        """Return bytes with our key replaced: a peer may echo what it got."""
        return data if self._key is None else data.replace(self._key.encode(), KEY_MARK)

    def _request(
        self,
        method: str,
        path: str,
        body: object | None,
        *,
        with_key: bool,
        other_key: str | None = None,
        web_origin: str | None = None,
    ) -> bytes:
        """Return the bytes of a request. Raises: ValueError for a path with a line break."""
        target = checked_target(f"{self.origin.prefix}{path}", "path")
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self.origin.netloc}",
            "Accept-Encoding: identity",
            "User-Agent: llamaops",
            "Connection: close",
        ]
        if web_origin is not None:
            lines.append(f"Origin: {checked_target(web_origin, 'origin')}")
        key = other_key or (self._key if with_key else None)
        if key is not None:
            lines.append(f"Authorization: Bearer {key}")
        payload = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + payload

    def connect(self, deadline: float) -> socket.socket:
        """Open a connection, TLS included.

        Raises: OSError, TimeoutError at the deadline.
        """
        error: OSError = OSError("the name has no address")
        for family, address in self._resolve(deadline):
            left = deadline - self.now()
            if left <= 0:
                raise TimeoutError
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.settimeout(left)
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return self._secure(sock, deadline)
            except OSError as failure:
                sock.close()
                error = failure
        raise error

    def _secure(self, sock: socket.socket, deadline: float) -> socket.socket:
        if self.origin.scheme == "http":
            return sock
        import ssl

        sock.settimeout(max(0.001, deadline - self.now()))
        return ssl.create_default_context().wrap_socket(sock, server_hostname=self.origin.host)

    def _resolve(self, deadline: float) -> list[tuple[socket.AddressFamily, _Address]]:
        """Return the addresses, looked up once, in a thread because the look-up has no bound of its own."""
        if self._addresses:
            return self._addresses
        found: list[tuple[socket.AddressFamily, _Address]] = []
        errors: list[OSError] = []

        def look_up() -> None:
            try:
                entries = socket.getaddrinfo(self.origin.host, self.origin.port, type=socket.SOCK_STREAM)
                found.extend((entry[0], entry[4]) for entry in entries)
            except (OSError, UnicodeError) as error:
                errors.append(error if isinstance(error, OSError) else socket.gaierror(str(error)))

        if self.origin.host.replace(".", "").isdigit() or ":" in self.origin.host:
            look_up()
        else:
            thread = threading.Thread(target=look_up, daemon=True)
            thread.start()
            thread.join(max(0.0, deadline - self.now()))
            if thread.is_alive():
                raise TimeoutError("the name was not resolved in time")
        if errors:
            raise errors[0]
        self._addresses = found
        return found


@dataclass(slots=True)
class _Job:
    """One exchange in progress: what has arrived so far and how to report it."""

    client: HttpClient
    method: str
    path: str
    bounds: Bounds
    clean: Callable[[bytes], bytes] | None
    keeps: bool = True
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    events: list[SseEvent] = field(default_factory=list)
    _body: bytearray = field(default_factory=bytearray)
    _began: float = 0.0
    _sent: float = 0.0
    _wire: Wire | None = None

    def run(self, request: bytes) -> Exchange | HttpFailure:
        """Make the whole exchange."""
        try:
            with self.open(request) as response:
                while chunk := response.read1(READ_BYTES):
                    self.take(chunk)
                self.check_whole(response)
        except ENDINGS as error:
            return self.failure(error)
        return Exchange(self.status or 0, self.headers, self._clean_body(), self._elapsed_s, self._kept())

    @contextlib.contextmanager
    def open(self, request: bytes) -> Iterator[HTTPResponse]:
        """Connect, send, read the header, and close whatever happens.

        Raises: one of ENDINGS.
        """
        from http.client import HTTPException, HTTPResponse, IncompleteRead, LineTooLong

        self._began = self.client.now()
        deadline = self._began + self.bounds.wall_s
        sock = self.client.connect(deadline)
        try:
            self._send(sock, request, deadline)
            wire = Wire(sock, self.client.now, deadline)
            self._wire = wire
            response = HTTPResponse(wire, method=self.method)  # type: ignore[arg-type]  # only asks for a file
            response.begin()
            self._start_body(response, wire)
            yield response
        except OSError:
            raise  # also RemoteDisconnected, which is an HTTPException too
        except IncompleteRead:
            raise CutError from None
        except LineTooLong:
            raise TooLargeError from None
        except (HTTPException, ValueError) as error:
            raise NotHttpError(type(error).__name__) from None
        finally:
            sock.close()

    def _send(self, sock: socket.socket, request: bytes, deadline: float) -> None:
        sock.settimeout(max(0.001, deadline - self.client.now()))
        # A peer may answer and close before it has read our body; its answer counts.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(request)
        self._sent = self.client.now()

    def _start_body(self, response: HTTPResponse, wire: Wire) -> None:
        self.status = response.status
        self.headers = tuple(response.getheaders())
        wire.limit_bytes = wire.total_bytes + self.bounds.total_bytes + READ_BYTES
        if response.length is not None and response.length > self.bounds.total_bytes:
            raise TooLargeError

    @property
    def arrived_s(self) -> float:
        """Seconds from the request to the last bytes that came."""
        return 0.0 if self._wire is None else self._wire.arrived_at - self._sent

    def take(self, chunk: bytes) -> None:
        """Add to the body. Raises: TooLargeError."""
        self._body += chunk
        if len(self._body) > self.bounds.total_bytes:
            raise TooLargeError

    def check_whole(self, response: HTTPResponse) -> None:
        """Raise CutError where fewer bytes came than were announced."""
        if response.length:
            raise CutError

    def streamed(self, end: StreamEnd, detail: str, comments: int) -> StreamExchange:
        """Return what came of a stream."""
        content_type = next((v for k, v in self.headers if k.lower() == "content-type"), "")
        body = b"" if content_type.startswith("text/event-stream") else bytes(self._body)
        return StreamExchange(
            self.status or 0, self.headers, tuple(self.events), comments, end, detail, body,
            self._elapsed_s, self._kept(), self._sent,
        )  # fmt: skip

    def failure(self, error: BaseException) -> HttpFailure:
        """Return why there is no whole answer."""
        kind, what = explain(error)
        arrived = "" if self.status is None else f" after status {self.status} and {len(self._body)} bytes"
        detail = f"{self.method} {self.path}: {what}{arrived}"
        return HttpFailure(kind, detail, self._elapsed_s, self.status, self._kept())

    @property
    def _elapsed_s(self) -> float:
        return self.client.now() - self._began

    def _clean_body(self) -> bytes:
        return bytes(self._body) if self.clean is None else self.clean(bytes(self._body))

    def _kept(self) -> str | None:
        """Keep status line, headers and body, cut to `keep_bytes`, without key and private headers."""
        if not self.keeps or self.status is None:
            return None
        lines = [f"HTTP/1.1 {self.status}"]
        lines += [f"{k}: {v}" for k, v in self.headers if k.lower() not in PRIVATE_HEADERS]
        head = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n"
        data = self.client.without_key(head + self._clean_body())
        label = f"{self.method} {self.client.origin.url}{self.path}"
        return self.client.keep(_bounded_evidence(label, data, self.bounds.keep_bytes))


def _bounded_evidence(label: str, data: bytes, keep_bytes: int) -> Evidence:
    if len(data) <= keep_bytes:
        return evidence_of("http", label, data)
    half = max(1, keep_bytes // 2)
    marker = b"\n[... %d bytes dropped ...]\n" % (len(data) - 2 * half)
    digest = hashlib.sha256(data).hexdigest()
    kept = data[:half] + marker + data[-half:]
    return evidence_of("http", label, kept, total_bytes=len(data), sha256=digest, truncated=True)


_END_OF_KIND: dict[FailureKind, StreamEnd] = {
    "refused": "cut",
    "timed_out": "timed_out",
    "reset": "cut",
    "too_large": "too_large",
    "bad_response": "bad_response",
    "tls": "cut",
    "dns": "cut",
}
