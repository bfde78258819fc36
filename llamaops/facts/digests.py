"""Digests of programs and libraries, each file once, within a bound on time for all of them."""

from __future__ import annotations

import hashlib

from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system import parallel
from llamaops.system.parallel import Pending
from llamaops.system.ports import System

DIGEST_S = 5.0
"""Seconds from the start of a run after which no digest is finished any more."""
CHUNK_BYTES = MIB


class Digests:
    """Computes each digest in a thread of its own; hashlib lets them run side by side."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._calls: dict[str, Pending[Fact[str]]] = {}
        self._began = system.clock.monotonic()
        self.elapsed_s = 0.0

    def start(self, path: str) -> Pending[Fact[str]]:
        """Begin the digest of a file, unless it was begun."""
        if path not in self._calls:
            self._calls[path] = parallel.start(lambda: self._digest(path))
        return self._calls[path]

    def of(self, path: str) -> Fact[str]:
        """Return the digest of a file."""
        return self.start(path).result()

    def _digest(self, path: str) -> Fact[str]:
        source = Source(kind="file", name=path)
        began = self._system.clock.monotonic()
        try:
            value = self._read(path)
        except OSError as error:
            return unknown_from_os_error(source, error)
        finally:
            self.elapsed_s += self._system.clock.monotonic() - began
        if value is None:
            detail = f"{path}: the digests of a run take no more than {DIGEST_S:g} s together"
            return Unknown(why="timed_out", detail=detail, source=source)
        return Known(value=value, source=source)

    def _read(self, path: str) -> str | None:
        """Return the digest, or None when the time was over first. Raises: OSError."""
        digest = hashlib.sha256()
        with self._system.open_regular(path) as file:
            offset = 0
            while chunk := file.read_at(offset, CHUNK_BYTES):
                digest.update(chunk)
                offset += len(chunk)
                if self._system.clock.monotonic() - self._began > DIGEST_S:
                    return None
        return digest.hexdigest()
