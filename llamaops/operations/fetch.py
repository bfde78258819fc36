"""Fetch the embedded engine and model, once, into the user's cache.

The operator's own llama.cpp comes first, always; what is fetched here serves the demonstration, the
tests, and whoever names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llamaops.errors import FetchError, UsageError
from llamaops.schema.bounds import Bounds
from llamaops.schema.shape import Shape
from llamaops.system import fetch as installer
from llamaops.system.cache import cache_folder as cache_folder  # noqa: PLC0414 - callers need only this module
from llamaops.system.catalogue import Artefact, catalogue
from llamaops.system.pip import Progress
from llamaops.system.ports import System
from llamaops.system.process import Exited, Signalled, describe

DEFAULT = ("engine", "model")
FULL_ENGINE = ("full-engine", "full-engine-server")
TRY_OUT = Bounds(wall_s=20, keep_bytes=64 * 1024, total_bytes=1 << 20)

# What the embedded engine takes from the system, and the package that has it.
PACKAGES = {
    "libgomp.so.1": "libgomp1 (Debian, Ubuntu, openSUSE), libgomp (Fedora, RHEL), gcc-libs (Arch)",
    "libstdc++.so.6": "libstdc++6 (Debian, Ubuntu, openSUSE), libstdc++ (Fedora, RHEL), gcc-libs (Arch)",
    "libgcc_s.so.1": "libgcc-s1 (Debian, Ubuntu), libgcc (Fedora, RHEL), gcc-libs (Arch)",
}


class EmbeddedPaths(Shape, frozen=True, kw_only=True):
    """Where the embedded engine and model lie; None for what is not there."""

    server: str | None
    """The llama-server program."""
    model: str | None
    """The GGUF file."""


class Announced(Shape, frozen=True, kw_only=True):
    """What a fetch would download."""

    name: str
    """The short name: engine, model, full-engine."""
    size_bytes: int
    """The size of the download."""
    unpacked_bytes: int
    """The size on disk."""
    licence: str
    """Under which licence it comes."""
    requirement: str
    """What pip is asked for, through whatever index it is set to."""
    contents: str
    """What is inside."""


class Fetched(Shape, frozen=True, kw_only=True):
    """One artefact that is now in the cache."""

    name: str
    """The short name."""
    folder: str
    """Where it lies."""
    path: str
    """The file that callers want: the server, the model, or the folder of programs."""
    downloaded: bool
    """False when it was already there."""


class FetchReport(Shape, frozen=True, kw_only=True):
    """What is in the cache after a fetch."""

    cache: str
    """The cache folder."""
    items: tuple[Fetched, ...]
    """What was asked for, in that order."""


def embedded(cache: str) -> EmbeddedPaths | None:
    """Return the embedded engine and model as far as they are in the cache; None when neither is.

    Cheap: it reads two small files and asks for sizes.
    """
    server, model = (installer.found(catalogue()[name], cache) for name in DEFAULT)
    return EmbeddedPaths(server=server, model=model) if server or model else None


def announce(what: Sequence[str]) -> tuple[Announced, ...]:
    """Return what would be downloaded, how large it is and under which licence, without touching anything.

    Raises: UsageError for a name that the catalogue does not have.
    """
    return tuple(
        Announced(
            name=name,
            size_bytes=item.size_bytes,
            unpacked_bytes=item.unpacked_bytes,
            licence=item.licence,
            requirement=item.requirement,
            contents=item.contents,
        )
        for name, item in ((name, artefact(name)) for name in what)
    )


def missing(what: Sequence[str], cache: str, system: System) -> tuple[str, ...]:
    """Return those that are not in the cache yet, in the same order.

    Raises: UsageError.
    """
    return tuple(name for name in what if not _is_there(name, cache, system))


def _is_there(name: str, cache: str, system: System) -> bool:
    if name in FULL_ENGINE:
        from llamaops.operations import build_engine

        return build_engine.built(cache, system, server=name != "full-engine") is not None
    return installer.found(artefact(name), cache) is not None


def artefact(name: str) -> Artefact:
    """Return an entry of the catalogue by its short name.

    Raises: UsageError.
    """
    known = catalogue()
    found = known.get("full-engine" if name in FULL_ENGINE else name)
    if found is None:
        raise UsageError(f"there is nothing called {name} to fetch", hint=f"known: {', '.join(known)}")
    return found


def fetch(what: Sequence[str], cache: str, system: System, progress: Progress) -> FetchReport:
    """Bring artefacts into the cache, and see that the engine starts.

    Args:
        what: Short names of the catalogue.
        cache: The cache folder; see `cache_folder`.
        system: The machine.
        progress: Called with what is being done, how much is done, and the whole; from another thread
            while pip runs.

    Raises: FetchError, UsageError. Nothing half-done is left in the cache.
    """
    items = tuple(_fetch_one(name, cache, system, progress) for name in what)
    for item in items:
        if item.name == "engine":
            _try_out(item.path, system)
    return FetchReport(cache=cache, items=items)


def _fetch_one(name: str, cache: str, system: System, progress: Progress) -> Fetched:
    if name in FULL_ENGINE:
        from llamaops.operations import build_engine

        server = name != "full-engine"
        there = build_engine.built(cache, system, server=server)
        folder = there or build_engine.build(cache, system, progress, server=server)
        return Fetched(name=name, folder=folder, path=folder, downloaded=there is None)
    item = artefact(name)
    folder, downloaded = installer.install(item, cache, system, progress)
    return Fetched(name=name, folder=folder, path=f"{folder}/{item.main}", downloaded=downloaded)


def _try_out(server: str, system: System) -> None:
    """Start the engine once for its version; a missing library shows here, with its package.

    Raises: FetchError.
    """
    done = system.run([server, "--version"], bounds=TRY_OUT)
    if done.ok:
        return
    if isinstance(done.end, Signalled) and done.end.name == "SIGILL":
        raise FetchError(
            "the embedded engine does not run on this processor: it uses instructions that it lacks",
            hint="install or build llama.cpp for this processor and name its folder with --bin-dir",
        )
    lines = done.stderr.text.strip().splitlines()
    found = re.search(r"error while loading shared libraries: ([^\s:]+)", done.stderr.text)
    if found and done.end == Exited(127):
        library = found.group(1)
        raise FetchError(
            f"the embedded engine is in the cache but does not start: {library} is missing on this system",
            hint=f"install {PACKAGES.get(library, 'the package that has it')}",
        )
    raise FetchError(
        f"the embedded engine is in the cache but does not start ({describe(done.end)}): "
        f"{lines[0][:200] if lines else 'it said nothing'}",
        hint="use a llama.cpp of your own with --bin-dir",
    )
