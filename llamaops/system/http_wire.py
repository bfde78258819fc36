"""The reading side of one connection: deadline and cap before every read, endings as kinds."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from typing import Literal

from llamaops.schema.bounds import KIB

HEADER_BYTES = 64 * KIB
READ_BYTES = 16 * KIB

FailureKind = Literal[
    "refused",  # nobody listens there, or the host cannot be reached
    "timed_out",  # the deadline came first
    "reset",  # the peer closed the connection without an answer, or in the middle of one
    "too_large",  # more header or body bytes than the bounds allow
    "bad_response",  # not HTTP, or broken framing
    "tls",  # no TLS, or a certificate that is not trusted
    "dns",  # the name has no address
]


class TooLargeError(Exception):
    """The peer sent more than the bounds allow."""


class CutError(Exception):
    """The connection ended inside the body."""


class NotHttpError(Exception):
    """What came is not HTTP, or its framing is broken."""


ENDINGS = (OSError, TooLargeError, CutError, NotHttpError)
"""Everything that a peer or the network can make of an exchange."""


class Wire(io.RawIOBase):
    """A socket as a raw file that checks deadline and cap before every read."""

    def __init__(self, sock: socket.socket, clock: Callable[[], float], deadline: float) -> None:
        super().__init__()
        self._sock = sock
        self._clock = clock
        self._deadline = deadline
        self.limit_bytes = HEADER_BYTES
        self.total_bytes = 0
        self.arrived_at = 0.0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Read what is there, waiting until the deadline.

        Raises: TooLargeError, TimeoutError.
        """
        if self.total_bytes > self.limit_bytes:
            raise TooLargeError
        left = self._deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        count = self._sock.recv_into(buffer)  # type: ignore[arg-type]  # the io module passes a memoryview
        self.arrived_at = self._clock()
        self.total_bytes += count
        return count

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return the buffered reading side; HTTPResponse takes us for a socket and asks once."""
        return io.BufferedReader(self, READ_BYTES)


def explain(error: BaseException) -> tuple[FailureKind, str]:
    """Translate an ending into a kind and a sentence of our own.

    The exception's text is not used for HTTP errors: it can quote what the peer sent.
    """
    if isinstance(error, OSError) and type(error).__name__.startswith(("SSL", "Certificate")):
        return "tls", f"no trusted TLS connection ({type(error).__name__})"
    if isinstance(error, NotHttpError):
        return "bad_response", f"not an HTTP answer ({error})"
    for kinds, kind, sentence in _MEANING:
        if isinstance(error, kinds):
            return kind, sentence
    return "refused", (isinstance(error, OSError) and error.strerror) or type(error).__name__


_MEANING: tuple[tuple[tuple[type[BaseException], ...], FailureKind, str], ...] = (
    ((TimeoutError,), "timed_out", "no whole answer before the deadline"),
    ((TooLargeError,), "too_large", "more bytes than the bound allows"),
    ((CutError,), "reset", "the answer was cut: the connection ended inside it"),
    ((socket.gaierror,), "dns", "the host name has no address"),
    ((ConnectionRefusedError,), "refused", "connection refused"),
    (
        (ConnectionResetError, BrokenPipeError, ConnectionAbortedError),
        "reset",
        "the peer closed the connection without an answer",
    ),
)
