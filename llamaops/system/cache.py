"""The cache folder: where it is, one writer at a time, and folders that appear whole or not at all.

An unpacked folder holds a stamp: the digest of its archive and the size of every file. A folder
without a stamp that fits does not count. Work happens in `.tmp-*` folders beside it, on the same file
system, so that a rename finishes it; the next writer removes those of a writer that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Mapping

import msgspec

from llamaops.errors import FetchError
from llamaops.schema.shape import Shape

STAMP = ".llamaops.json"
TEMPORARY = ".tmp-"
LOCK = ".lock"
POLL_S = 0.2
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Some network file systems have no locks; a rename still keeps two writers apart there.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class Stamp(Shape, frozen=True, kw_only=True):
    """What an unpacked folder should hold."""

    sha256: str
    """The digest of the archive, or of whatever else decides the content."""
    files: dict[str, int]
    """Path below the folder, and size in bytes, of every file."""


def cache_folder(environ: Mapping[str, str]) -> str:
    """Return the cache: LLAMAOPS_CACHE, else the user's cache directory for llamaops."""
    if named := environ.get("LLAMAOPS_CACHE"):
        return os.path.abspath(os.path.expanduser(named))
    if os.name == "posix" and sys.platform != "darwin":
        # What platformdirs answers here, without loading it and pathlib: 8 ms.
        cache = environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(cache, "llamaops")
    from platformdirs import user_cache_dir

    return user_cache_dir("llamaops", appauthor=False)


def read_stamp(folder: str) -> Stamp | None:
    """Return the stamp of a folder; None without one that can be read."""
    try:
        with open(os.path.join(folder, STAMP), "rb") as file:
            return msgspec.json.decode(file.read(1 << 20), type=Stamp)
    except (OSError, msgspec.DecodeError):
        return None


def is_whole(folder: str, sha256: str) -> bool:
    """Say whether a folder came from that archive and every file still has its size.

    Digests are not computed again: this runs whenever the engine or the model is looked for.
    """
    stamp = read_stamp(folder)
    if stamp is None or stamp.sha256 != sha256 or not stamp.files:
        return False
    try:
        return all(os.stat(os.path.join(folder, name)).st_size == size for name, size in stamp.files.items())
    except OSError:
        return False


def publish(folder: str, target: str, sha256: str) -> None:
    """Stamp a finished folder and rename it to its place, replacing a damaged one.

    Raises: OSError.
    """
    stamp = msgspec.json.encode(Stamp(sha256=sha256, files=dict(sorted(_sizes(folder)))))
    with open(os.path.join(folder, STAMP), "wb") as file:
        file.write(stamp)
        file.flush()
        os.fsync(file.fileno())
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    try:
        os.rename(folder, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        if is_whole(target, sha256):
            return
        os.rename(target, os.path.join(os.path.dirname(folder), f"damaged-{secrets.token_hex(4)}"))
        os.rename(folder, target)


def _sizes(folder: str) -> Iterator[tuple[str, int]]:
    for place, _folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            yield os.path.relpath(path, folder), os.stat(path).st_size


@contextlib.contextmanager
def locked(cache: str, *, wait_s: float) -> Iterator[None]:
    """Hold the cache for writing; the folders of writers that were killed are removed first.

    Raises: FetchError when somebody else holds it for longer than `wait_s`; OSError.
    """
    os.makedirs(cache, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(cache, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _acquire(descriptor, time.monotonic() + wait_s):
            _remove_leftovers(cache)
        yield
    finally:
        os.close(descriptor)  # this releases the lock; the file stays, or two writers could hold two files


def _acquire(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FetchError(
                    "another llamaops holds the cache", hint="wait until it has finished, or stop it"
                ) from None
            time.sleep(POLL_S)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
        else:
            return True


def _remove_leftovers(cache: str) -> None:
    for name in os.listdir(cache):
        if name.startswith(TEMPORARY):
            remove_folder(os.path.join(cache, name))


@contextlib.contextmanager
def work_folder(cache: str) -> Iterator[str]:
    """Give a private folder on the cache's file system, and remove it whatever happens.

    Raises: OSError.
    """
    folder = os.path.join(cache, f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}")
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(folder: str) -> None:
    """Remove a folder; a child that was just killed may still add to it for a moment."""
    for _attempt in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(POLL_S / 4)


def used_bytes(folder: str) -> int:
    """Return the size of the regular files below a folder; a file that vanishes counts nothing."""
    total = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(place, name))
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def need_space(cache: str, *, needed_bytes: int, title: str) -> None:
    """See that the file system of the cache has room.

    Units: bytes. Raises: FetchError; OSError.
    """
    status = os.statvfs(cache)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise FetchError(
            f"not enough space for the {title} in {cache}: {needed_bytes >> 20} MiB needed, "
            f"{free >> 20} MiB free",
            hint="free some, or set LLAMAOPS_CACHE to a folder on another disk",
        )


@contextlib.contextmanager
def explained(title: str, cache: str) -> Iterator[None]:
    """Turn what the file system says while something is fetched into one line with a next step.

    Raises: FetchError.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(title, cache) from error
        what = error.strerror or type(error).__name__
        where = f" ({error.filename})" if isinstance(error.filename, str) else ""
        raise FetchError(
            f"cannot store the {title} in {cache}: {what}{where}",
            hint="set LLAMAOPS_CACHE to a folder that you may write to",
        ) from error


def disk_full(title: str, cache: str) -> FetchError:
    """Return the error for a full disk."""
    return FetchError(
        f"the disk became full while the {title} was stored in {cache}",
        hint="nothing half-done was left; free some space, or set LLAMAOPS_CACHE to a folder on another disk",
    )
