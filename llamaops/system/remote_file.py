"""Read parts of a file on a web server by range requests, within bounds on bytes, requests and time.

Redirects are followed a few times, never from https to http; a token goes to the first host only. Nothing is
decompressed. A server that does not answer with the range that was asked for ends the reading.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import stat
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from llamaops.schema.bounds import KIB, MIB

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

    from llamaops.system.machine import Machine
    from llamaops.system.ports import OpenFile

BLOCK_BYTES = 512 * KIB
MOST_BYTES = 192 * MIB
MOST_REQUESTS = 512
WALL_S = 120.0
SOCKET_S = 20.0
MOST_REDIRECTS = 5
MOST_FILES = 64
HUB = "https://huggingface.co"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PARTIAL, _WHOLE, _FORBIDDEN, _MISSING = 206, 200, frozenset({401, 403}), frozenset({404, 410})


class RemoteFile:
    """A file on a web server that is open for reads at offsets."""

    def __init__(self, url: str, *, token: str | None = None, clock: Any = time.monotonic) -> None:  # noqa: ANN401 - a function
        """Ask for the first block.

        Raises: OSError, FileNotFoundError and PermissionError among them.
        """
        self.url = url
        self._token = token
        self._clock = clock
        self._deadline = clock() + WALL_S
        self._blocks: dict[int, bytes] = {}
        self._connection: HTTPConnection | None = None
        self._at = url
        self.requests = 0
        self.bytes_read = 0
        self.size_bytes = 0
        self._blocks[0] = self._fetch(0)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return at most `length` bytes from `offset`; fewer only at the end of the file.

        Units: bytes. Raises: OSError, at every bound too.
        """
        end = min(offset + length, self.size_bytes)
        parts = []
        while offset < end:
            number = offset // BLOCK_BYTES
            if number not in self._blocks:
                self._blocks[number] = self._fetch(number)
            start = offset - number * BLOCK_BYTES
            part = self._blocks[number][start : start + end - offset]
            if not part:
                raise OSError(errno.EIO, "the server sent less than it announced", self.url)
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the connection."""
        self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fetch(self, number: int) -> bytes:
        now = self._clock()
        if self.requests >= MOST_REQUESTS or self.bytes_read >= MOST_BYTES or now > self._deadline:
            raise OSError(
                errno.ETIMEDOUT,
                f"a bound was reached after {self.requests} requests and {self.bytes_read} bytes",
                self.url,
            )
        from http.client import HTTPException

        start = number * BLOCK_BYTES
        watch = self._watch(self._deadline - now)
        try:
            response = self._answer(start)
            return self._take(response, start)
        except (HTTPException, ValueError) as error:
            self._close()
            self._see_time()
            raise OSError(errno.EPROTO, f"not an HTTP answer ({type(error).__name__})", self.url) from None
        except BaseException:
            self._close()
            self._see_time()
            raise
        finally:
            watch.cancel()

    def _watch(self, left_s: float) -> threading.Timer:
        """Return what cuts the connection at the deadline: lines of a head may drip on, each in time."""

        def cut() -> None:
            sock = self._connection.sock if self._connection is not None else None
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(left_s, cut)
        timer.daemon = True
        timer.start()
        return timer

    def _see_time(self) -> None:
        if self._clock() >= self._deadline:
            raise TimeoutError(errno.ETIMEDOUT, "the bound on time was reached", self.url)

    def _answer(self, start: int) -> HTTPResponse:
        """Send the request, following redirects. Raises: OSError, HTTPException."""
        for _redirect in range(MOST_REDIRECTS + 1):
            response = self._send(start)
            if response.status not in _REDIRECTS:
                return response
            target = response.getheader("Location", "")
            response.read(64 * KIB)
            self._close()
            self._at = self._joined(target)
        raise OSError(errno.EPROTO, "too many redirects", self.url)

    def _joined(self, target: str) -> str:
        from urllib.parse import urljoin, urlsplit

        joined = urljoin(self._at, target)
        before, after = urlsplit(self._at), urlsplit(joined)
        if after.scheme not in {"http", "https"} or (before.scheme == "https" and after.scheme != "https"):
            raise OSError(errno.EPROTO, "a redirect to a place that is not safe", self.url)
        if before.netloc != after.netloc:
            self._token = None  # it is for the first host only
        return joined

    def _send(self, start: int) -> HTTPResponse:
        from urllib.parse import urlsplit

        parts = urlsplit(self._at)
        if self._connection is None:
            self._connection = _connect(parts.scheme, parts.hostname or "", parts.port)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "Range": f"bytes={start}-{start + BLOCK_BYTES - 1}",
            "Accept-Encoding": "identity",
            "User-Agent": "llamaops",
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        self.requests += 1
        try:
            self._connection.request("GET", path, headers=headers)
            return self._connection.getresponse()
        except (TimeoutError, ConnectionError):
            self._close()
            raise
        except ValueError as error:
            raise OSError(errno.EINVAL, "the address cannot be asked for", self.url) from error

    def _take(self, response: HTTPResponse, start: int) -> bytes:
        status = response.status
        if status in _MISSING:
            raise FileNotFoundError(
                errno.ENOENT, f"the server says {status}: there is no such file", self.url
            )
        if status in _FORBIDDEN:
            raise PermissionError(errno.EACCES, f"the server says {status}: it needs a login", self.url)
        if status == _PARTIAL:
            found = re.fullmatch(
                r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", response.getheader("Content-Range", "")
            )
            if found is None or int(found[1]) != start:
                raise OSError(errno.EPROTO, "the server sent another range than the one asked for", self.url)
            self._agree_on_size(int(found[3]), start)
        elif status == _WHOLE:
            self._agree_on_size(int(response.getheader("Content-Length") or -1), start)
            if start or self.size_bytes < 0:
                raise OSError(errno.EOPNOTSUPP, "the server does not answer range requests", self.url)
        else:
            raise OSError(errno.EPROTO, f"the server says {status}", self.url)
        data = b""
        # In pieces: a server that drips would else hold us far beyond the deadline.
        while len(data) < BLOCK_BYTES and (piece := response.read1(BLOCK_BYTES - len(data))):
            data += piece
            if self._clock() > self._deadline:
                raise TimeoutError(errno.ETIMEDOUT, "the bound on time was reached", self.url)
        self.bytes_read += len(data)
        if status == _WHOLE or not response.isclosed():
            self._close()  # the rest of the answer is not wanted
        return data

    def _agree_on_size(self, size: int, start: int) -> None:
        if start and size != self.size_bytes:
            raise OSError(errno.ESTALE, "the file became another one while it was read", self.url)
        self.size_bytes = size


def _connect(scheme: str, host: str, port: int | None) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    if scheme == "https":
        import ssl

        return HTTPSConnection(host, port, timeout=SOCKET_S, context=ssl.create_default_context())
    return HTTPConnection(host, port, timeout=SOCKET_S)


def is_remote(path: str) -> bool:
    """Say whether a path is an address."""
    return path.startswith(("https://", "http://", "hf:"))


def hub_endpoint(environ: Mapping[str, str]) -> str:
    """Return where the hub is: HF_ENDPOINT, else its own address."""
    return (environ.get("HF_ENDPOINT") or HUB).rstrip("/")


class RemoteSystem:
    """A machine on which addresses are files; what is no address goes to the machine itself."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._files: dict[str, RemoteFile] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the machine's
        """Return what the machine has."""
        return getattr(self._machine, name)

    def open_regular(self, path: str) -> OpenFile:
        """Open a file; one of a web server stays open, with what was read of it."""
        if not is_remote(path):
            return self._machine.open_regular(path)
        return _Kept(self._file(path))

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a file; one of a web server is a regular file."""
        if not is_remote(path):
            return self._machine.stat(path)
        size = self._file(path).size_bytes
        return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, size, 0, 0, 0))

    def access(self, path: str, mode: int) -> bool:
        """Say whether we may read a file; of one that was opened we have."""
        return is_remote(path) or self._machine.access(path, mode)

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a folder; a web server has no list."""
        if is_remote(path):
            raise OSError(errno.EOPNOTSUPP, "a web server lists no folder", path)
        return self._machine.list_dir(path)

    def realpath(self, path: str) -> str:
        """Return a path with every link resolved; an address as it is."""
        return path if is_remote(path) else self._machine.realpath(path)

    @property
    def bytes_read(self) -> int:
        """Return how many bytes came over the network."""
        return sum(file.bytes_read for file in self._files.values())

    @property
    def bytes_there(self) -> int:
        """Return how long the files are."""
        return sum(file.size_bytes for file in self._files.values())

    def close(self) -> None:
        """Close all connections."""
        for file in self._files.values():
            file.__exit__()

    def _file(self, path: str) -> RemoteFile:
        if path not in self._files:
            if len(self._files) >= MOST_FILES:
                raise OSError(errno.EMFILE, "too many files on a web server", path)
            environ = self._machine.environ
            at_hub = path.startswith(f"{hub_endpoint(environ)}/")
            self._files[path] = RemoteFile(path, token=environ.get("HF_TOKEN") if at_hub else None)
        return self._files[path]


class _Kept:
    """An open remote file that closing leaves open."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self.size_bytes = file.size_bytes

    def read_at(self, offset: int, length: int) -> bytes:
        """Return at most `length` bytes from `offset`."""
        return self._file.read_at(offset, length)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Leave it open."""
