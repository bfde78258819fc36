"""SHA-256 of large files: several at a time, at the speed of the processor, remembered where nothing changed.

A digest is remembered by device, inode, size and time of change, in a small file of its own in the cache. It
is not remembered for a file that was changed a moment ago: a second change could have the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from llamaops.schema.bounds import KIB
from llamaops.schema.shape import Shape
from llamaops.system.cache import cache_folder
from llamaops.system.files import RegularFile, make_private_folder, write_atomic

BUFFER_BYTES = 256 * KIB
"""Small enough to stay in the processor's cache between the read and the digest."""
TOLD_BYTES = 32 * 1024 * KIB
SETTLED_S = 2.0
FOLDER = "digests"
MOST_THREADS = 8

Progress = Callable[[int, int], None]
"""Bytes done and bytes in all; called from other threads."""


class FileChangedError(OSError):
    """The file changed while it was read."""


class Digest(Shape, frozen=True, kw_only=True):
    """The digest of a file as it was at some time."""

    sha256: str
    """In hex."""
    size_bytes: int
    """Length of what was read."""
    computed_at: str
    """UTC, ISO 8601."""
    computed_now: bool
    """Whether the file was read for this; else the digest is remembered."""
    elapsed_s: float
    """Seconds that computing it took, whenever that was."""


class _Remembered(Shape, frozen=True, kw_only=True):
    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    sha256: str
    computed_at: str
    elapsed_s: float


class Digester:
    """Computes the digests of some files side by side."""

    def __init__(
        self, environ: dict[str, str], *, remembered: bool, progress: Progress | None = None
    ) -> None:
        self._folder = Path(cache_folder(environ)) / FOLDER
        self._use_remembered = remembered
        self._progress = progress
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._done = 0
        self._all = 0

    def digest_all(self, paths: Sequence[str]) -> list[Digest | OSError]:
        """Return a digest or an error for each file, in their order; an interrupt stops all threads."""
        from concurrent.futures import ThreadPoolExecutor

        self._all = sum(_size(path) for path in paths)
        threads = max(1, min(os.cpu_count() or 1, len(paths), MOST_THREADS))
        with ThreadPoolExecutor(threads) as pool:
            try:
                return list(pool.map(self._one, paths))
            except BaseException:
                self._stop.set()
                raise

    def _one(self, path: str) -> Digest | OSError:
        try:
            with RegularFile(path) as file:
                status = file.status()
                known = self._recall(status) if self._use_remembered else None
                if known is not None:
                    self._tell(status.st_size)
                    return known
                return self._compute(path, file, status)
        except OSError as error:
            return error

    def _compute(self, path: str, file: RegularFile, before: os.stat_result) -> Digest:
        began = time.monotonic()
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(BUFFER_BYTES))
        at = told = 0
        while count := file.read_into(at, buffer):
            digest.update(buffer[:count])
            at += count
            if at - told >= TOLD_BYTES:
                self._tell(at - told)
                told = at
                if self._stop.is_set():
                    raise OSError(4, "interrupted", path)
        self._tell(at - told)
        after = file.status()
        if (at, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise FileChangedError(5, "the file changed while it was read", path)
        found = Digest(
            sha256=digest.hexdigest(),
            size_bytes=at,
            computed_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            computed_now=True,
            elapsed_s=round(time.monotonic() - began, 4),
        )
        self._remember(found, after)
        return found

    def _tell(self, count: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done += count
            self._progress(self._done, self._all)

    def _place(self, status: os.stat_result) -> Path:
        return self._folder / f"{status.st_dev:x}-{status.st_ino:x}.json"

    def _recall(self, status: os.stat_result) -> Digest | None:
        """Return the digest of a file that has not changed since; None for any doubt."""
        try:
            found = msgspec.json.decode(self._place(status).read_bytes()[: 4 * KIB], type=_Remembered)
        except (OSError, msgspec.DecodeError):
            return None
        key = (found.device, found.inode, found.size_bytes, found.mtime_ns)
        if key != (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns):
            return None
        return Digest(
            sha256=found.sha256,
            size_bytes=found.size_bytes,
            computed_at=found.computed_at,
            computed_now=False,
            elapsed_s=found.elapsed_s,
        )

    def _remember(self, digest: Digest, status: os.stat_result) -> None:
        if time.time() - status.st_mtime < SETTLED_S:
            return
        entry = _Remembered(
            device=status.st_dev,
            inode=status.st_ino,
            size_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            sha256=digest.sha256,
            computed_at=digest.computed_at,
            elapsed_s=digest.elapsed_s,
        )
        with contextlib.suppress(OSError):  # a cache that cannot be written is no failure
            make_private_folder(self._folder)
            write_atomic(self._place(status), msgspec.json.encode(entry))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
