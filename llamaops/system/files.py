"""Limited reads and atomic writes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Self

from llamaops.system.paths import AnyPath, name, parent

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def read_limited(path: str, *, limit_bytes: int, offset: int = 0) -> bytes:
    """Read at most `limit_bytes` of a file; never blocks on a FIFO.

    Units: bytes. Raises: OSError, IsADirectoryError for a folder included.
    """
    # O_NONBLOCK: opening a FIFO would wait for a writer for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise IsADirectoryError(21, "Is a directory", path)
        parts = []
        left = limit_bytes
        if offset:
            os.lseek(descriptor, offset, os.SEEK_SET)
        while left > 0:
            try:
                chunk = os.read(descriptor, min(left, 1 << 20))
            except BlockingIOError:
                break
            if not chunk:
                break
            parts.append(chunk)
            left -= len(chunk)
        return b"".join(parts)
    finally:
        os.close(descriptor)


class RegularFile:
    """A regular file that is open for reads at offsets; a context manager that closes it.

    Reads are pread calls, not a memory map: when a mapped file shrinks (a download that restarts), the
    next access ends the process with SIGBUS; a read just returns less.
    """

    def __init__(self, path: str) -> None:
        # Looked at before it is opened: opening a device can do something, a tape rewinds.
        _refuse_special(os.stat(path).st_mode, path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(self._descriptor)
            _refuse_special(status.st_mode, path)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.size_bytes = status.st_size

    def read_at(self, offset: int, length: int) -> bytes:
        """Return at most `length` bytes from `offset`; fewer only at the end of the file.

        Units: bytes. Raises: OSError.
        """
        data = os.pread(self._descriptor, length, offset)
        while data and len(data) < length:
            more = os.pread(self._descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill a buffer from `offset` and return how many bytes came; fewer only at the end of the file.

        Units: bytes. Raises: OSError.
        """
        done = 0
        while done < len(buffer):
            count = os.preadv(self._descriptor, [buffer[done:]], offset + done)
            if not count:
                break
            done += count
        return done

    def status(self) -> os.stat_result:
        """Return the status of the open file, whatever its name leads to by now."""
        return os.fstat(self._descriptor)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _refuse_special(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)


def write_atomic(path: AnyPath, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Write a whole file in one step: a reader sees the old file or the new one, never a part.

    Raises: OSError; the temporary file is removed.
    """
    temporary = os.path.join(parent(path), f".{name(path)}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def make_private_folder(path: AnyPath) -> None:
    """Make a folder and its parents; the folder itself is for its owner only.

    Raises: OSError.
    """
    os.makedirs(path, exist_ok=True, mode=PRIVATE_FOLDER)
