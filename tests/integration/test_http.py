"""Real sockets: what a hostile peer does ends within its bound, as a value."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from llamaops.facts.asked import AskedFacts
from llamaops.probes.selection import select
from llamaops.probes.server import collect_server
from llamaops.probes.surface import collect_surface
from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence
from llamaops.system.http import Exchange, HttpClient, HttpFailure, Origin, StreamExchange

OK = b"HTTP/1.1 200 OK\r\n"
BOUNDS = Bounds(wall_s=0.6, keep_bytes=4096, total_bytes=50_000)
KEY = "swordfish-1234"


@contextmanager
def peer(answer: Callable[[socket.socket], None] | bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Serve one kind of answer; yield the port and the requests that came."""
    listener = socket.create_server(("127.0.0.1", 0))
    requests: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    requests.append(connection.recv(65536))
                    if callable(answer):
                        answer(connection)
                    else:
                        connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def client(port: int, key: str | None = None, kept: list[Evidence] | None = None) -> HttpClient:
    def keep(evidence: Evidence) -> str:
        if kept is not None:
            kept.append(evidence)
        return evidence.id

    return HttpClient(Origin("http", "127.0.0.1", port), api_key=key, keep=keep)


def dripping(connection: socket.socket) -> None:
    for byte in OK + b"X: " + b"a" * 100:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(OK + b"Content-Length: 100\r\n\r\n")
    for _ in range(100):
        connection.sendall(b"a")
        time.sleep(0.05)


def endless(connection: socket.socket) -> None:
    connection.sendall(OK + b"\r\n")
    while True:
        connection.sendall(b"a" * 65536)


def endless_header(connection: socket.socket) -> None:
    connection.sendall(OK)
    while True:
        connection.sendall(b"X-Filler: " + b"a" * 1000 + b"\r\n")


def endless_continue(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def silent(connection: socket.socket) -> None:
    time.sleep(1.5)


def trailing(connection: socket.socket) -> None:
    connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        connection.sendall(b"X: y\r\n" * 1000)


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (silent, {"timed_out"}),
        (dripping, {"timed_out"}),
        (dripping_body, {"timed_out"}),
        (endless, {"too_large"}),
        (endless_header, {"too_large", "bad_response"}),
        (endless_continue, {"too_large", "bad_response", "timed_out"}),
        (trailing, {"too_large", "timed_out", "bad_response"}),
        (b"", {"reset"}),
        (b"hello\r\n\r\n", {"bad_response"}),
        (b"HTTP/1.1 999999 X\r\n\r\n", {"bad_response"}),
        (OK + b"X: " + b"a" * 200_000 + b"\r\n\r\n", {"too_large"}),
        (OK + b"X: y\r\n" * 500 + b"\r\n", {"bad_response"}),
        (OK + b"Content-Length: 10\r\n\r\nabc", {"reset"}),
        (OK + b"Content-Length: 99999999999\r\n\r\nabc", {"too_large"}),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", {"reset", "bad_response"}),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", {"reset"}),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n0\r\n\r\n", {"reset", "bad_response"}),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + b"a" * 300_000, {"too_large"}),
        (b"\x15\x03\x01\x00\x02\x02\x28", {"bad_response"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_a_hostile_answer_is_a_failure_within_its_bound(
    answer: Callable[[socket.socket], None] | bytes, kinds: set[str]
) -> None:
    with peer(answer) as (port, _requests):
        began = time.monotonic()
        result = client(port, KEY).exchange("GET", "/health", bounds=BOUNDS)
        assert time.monotonic() - began < BOUNDS.wall_s + 0.5
    assert isinstance(result, HttpFailure)
    assert result.kind in kinds
    assert KEY not in repr(result)


def test_nobody_listens() -> None:
    with peer(b"") as (port, _requests):
        pass
    result = client(port).exchange("GET", "/health", bounds=BOUNDS)
    assert isinstance(result, HttpFailure)
    assert result.kind == "refused"


def test_a_name_without_an_address() -> None:
    result = HttpClient(Origin("http", "no-such-host.invalid", 80)).exchange(
        "GET", "/", bounds=Bounds(wall_s=5.0)
    )
    assert isinstance(result, HttpFailure)
    assert result.kind in {"dns", "timed_out"}


def test_plain_http_where_tls_was_expected() -> None:
    with peer(OK + b"\r\n") as (port, _requests):
        result = HttpClient(Origin("https", "127.0.0.1", port)).exchange("GET", "/", bounds=BOUNDS)
    assert isinstance(result, HttpFailure)
    assert result.kind == "tls"


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with peer(OK) as (other, followed):
        location = f"Location: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\n\r\n".encode()
        with peer(b"HTTP/1.1 307 Temporary Redirect\r\n" + location) as (port, _requests):
            result = client(port, KEY).exchange("GET", "/health", bounds=BOUNDS)
        assert followed == []
    assert isinstance(result, Exchange)
    assert result.status == 307


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_probe_follows_a_redirect_or_sends_the_key_elsewhere(status: int) -> None:
    """Whatever is asked of a server that sends everybody away: the other address hears nothing of us."""
    with peer(OK + b"\r\n{}") as (other, followed):
        location = f"Location: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\n\r\n".encode()
        with peer(f"HTTP/1.1 {status} Moved\r\n".encode() + location) as (port, requests):
            asked = client(port, KEY)
            server = collect_server(asked, AskedFacts(), selection=select("full"), request_s=5.0, quick_s=5.0)
            collect_surface(asked, server, select("full"), request_s=5.0)
            asked.stream("POST", "/v1/chat/completions", bounds=BOUNDS, body={"stream": True})
        assert followed == []
    assert len(requests) > 5
    assert {answer.state for answer in server.endpoints} <= {"broken"}


def test_what_is_sent_and_that_the_key_is_kept_nowhere() -> None:
    kept: list[Evidence] = []
    echo = OK + b"X-Api-Key: " + KEY.encode() + b"\r\nX-Echo: " + KEY.encode() + b"\r\n\r\n{}" + KEY.encode()
    with peer(echo) as (port, requests):
        one = client(port, KEY, kept)
        one.exchange("POST", "/a", body={"x": 1}, bounds=BOUNDS)
        one.exchange("GET", "/b", bounds=BOUNDS, with_key=False)
        one.exchange("GET", "/c", bounds=BOUNDS, with_key=False, other_key="another")
        one.fast_get("/d")
    first, without, other, fast = (request.decode() for request in requests)
    assert first.startswith("POST /a HTTP/1.1\r\n")
    assert f"Authorization: Bearer {KEY}\r\n" in first
    assert "Accept-Encoding: identity\r\n" in first
    assert "Connection: close\r\n" in first
    assert first.endswith('\r\n\r\n{"x":1}')
    assert KEY not in without + other + fast
    assert "Bearer another" in other
    assert len(kept) == 3
    assert KEY not in repr(kept)


def test_evidence_is_cut_to_its_bound_with_start_and_end() -> None:
    kept: list[Evidence] = []
    with peer(OK + b"\r\nSTART" + b"x" * 20_000 + b"END") as (port, _requests):
        client(port, None, kept).exchange("GET", "/", bounds=BOUNDS)
    (evidence,) = kept
    assert evidence.truncated
    assert "START" in evidence.text
    assert evidence.text.endswith("END")
    assert len(evidence.text) < 5000
    assert evidence.total_bytes > 20_000


def test_a_stream_has_the_time_of_each_event_and_can_be_left() -> None:
    def events(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Type: text/event-stream\r\n\r\n")
        for number in range(50):
            connection.sendall(b"data: %d\n\n" % number)
            time.sleep(0.03)

    with peer(events) as (port, _requests):
        result = client(port).stream("GET", "/", bounds=BOUNDS, stop=lambda event: event.data == "4")
    assert isinstance(result, StreamExchange)
    assert result.end == "stopped"
    assert [event.data for event in result.events] == ["0", "1", "2", "3", "4"]
    times = [event.at_s for event in result.events]
    assert times == sorted(times)
    assert times[-1] - times[0] > 0.08


def test_a_stream_that_never_ends_is_left_at_the_deadline_with_what_came() -> None:
    def events(connection: socket.socket) -> None:
        connection.sendall(OK + b"Content-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        while True:
            time.sleep(0.1)
            connection.sendall(b": ping\n\n")

    with peer(events) as (port, _requests):
        result = client(port).stream("GET", "/", bounds=BOUNDS)
    assert isinstance(result, StreamExchange)
    assert result.end == "timed_out"
    assert len(result.events) == 1
    assert result.comments >= 3


def test_polling_costs_little_processor_time() -> None:
    answer = OK + b'Content-Length: 15\r\n\r\n{"status":"ok"}'
    with peer(answer) as (port, _requests):
        one = client(port)
        one.fast_get()
        began = time.thread_time()
        for _ in range(50):
            assert isinstance(one.fast_get(), Exchange)
        assert (time.thread_time() - began) / 50 < 0.002
