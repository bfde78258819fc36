"""Bring one pinned artefact into the cache: download, verify, unpack, rename; or nothing at all."""

from __future__ import annotations

import os
import re

import msgspec

from llamaops.errors import FetchError
from llamaops.system import cache as store
from llamaops.system.catalogue import Artefact, Needs
from llamaops.system.pip import Progress
from llamaops.system.ports import System

WAIT_S = 3600.0
"""How long to wait for another llamaops that fetches into the same cache."""


def folder_of(item: Artefact, cache: str) -> str:
    """Return where an artefact lies, or would lie."""
    return os.path.join(cache, item.path)


def found(item: Artefact, cache: str) -> str | None:
    """Return the path of what callers want of an artefact, if it is in the cache; cheap."""
    folder = folder_of(item, cache)
    return os.path.join(folder, item.main) if store.is_whole(folder, item.sha256) else None


def install(item: Artefact, cache: str, system: System, progress: Progress) -> tuple[str, bool]:
    """Download, verify and unpack one artefact; return its folder and whether that was necessary.

    Raises: FetchError. Nothing half-done is left.
    """
    folder = folder_of(item, cache)
    if store.is_whole(folder, item.sha256):
        return folder, False
    see_that_it_runs_here(item, system)
    with store.explained(item.title, cache), store.locked(cache, wait_s=WAIT_S):
        if store.is_whole(folder, item.sha256):  # another llamaops was faster
            return folder, False
        # pip holds the file twice for a moment: its own temporary copy, and what it saves.
        need = 2 * item.download_bytes + item.unpacked_bytes * (2 if item.joined else 1)
        store.need_space(cache, needed_bytes=need, title=item.title)
        with store.work_folder(cache) as work:
            _download_and_unpack(item, work, folder, system, progress)
    return folder, True


def _download_and_unpack(item: Artefact, work: str, folder: str, system: System, progress: Progress) -> None:
    from llamaops.system import pip, unpack

    command = pip.pip_command(system.which)
    unpacked = os.path.join(work, "unpacked")
    os.mkdir(unpacked, 0o700)
    label, before = f"unpack {item.title}", 0
    for number, one in enumerate(item.pieces()):
        piece = msgspec.structs.replace(one, unpacked_bytes=item.unpacked_bytes - before)
        place = os.path.join(work, str(number))
        os.mkdir(place, 0o700)
        archive = pip.download(
            piece, place, pip=command, environ=system.environ, run=system.run, progress=progress
        )
        written = unpack.unpack(
            archive,
            piece,
            unpacked,
            lambda done, before=before: progress(label, before + done, item.unpacked_bytes),  # type: ignore[misc]
        )
        before += written
        os.remove(archive)
    if item.joined:
        unpack.join(item, unpacked)
    unpack.see_main(item, unpacked)
    store.publish(unpacked, folder, item.sha256)


INSTEAD = (
    "install llama.cpp itself (your distribution's package, `brew install llama.cpp`, or a release archive "
    "of the llama.cpp project), or build it here, and name its folder with --bin-dir"
)


def see_that_it_runs_here(item: Artefact, system: System) -> None:
    """See that the platform can run an artefact; its processor flags are the caller's choice.

    Raises: FetchError with what to install instead.
    """
    why = None if item.needs is None else why_unsupported(item.needs, system)
    if why is not None:
        raise FetchError(f"the {item.title} does not run here: {why}", hint=INSTEAD)


def glibc(system: System) -> str | None:
    """Return the version of the GNU C library; None where it is another one."""
    try:
        answer = system.confstr("CS_GNU_LIBC_VERSION")
    except OSError:
        return None
    return answer.removeprefix("glibc ") if answer.startswith("glibc ") else None


def why_unsupported(needs: Needs, system: System) -> str | None:
    """Say why this platform cannot run something; None when it can."""
    uname = system.uname()
    if (uname.sysname, uname.machine) != (needs.system, needs.machine):
        return f"it is for {needs.system} {needs.machine}, and this is {uname.sysname} {uname.machine}"
    version = glibc(system)
    if version is None:
        return f"it needs the GNU C library {needs.glibc} or newer, and this system has another C library"
    if _numbers(version) < _numbers(needs.glibc):
        return f"it needs the GNU C library {needs.glibc} or newer, and this system has {version}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
