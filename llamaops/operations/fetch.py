"""Fetch the embedded engine and model, once, into the user's cache.

The operator's own llama.cpp comes first, always; what is fetched here serves the demonstration, the
tests, and whoever names it. `engine` stands for the newest build that this processor can run; a build can
also be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from llamaops.errors import FetchError, UsageError
from llamaops.operations import engine_variant
from llamaops.operations.engine_variant import ENGINE
from llamaops.schema.bounds import Bounds
from llamaops.schema.shape import Shape
from llamaops.system import fetch as installer
from llamaops.system.cache import cache_folder as cache_folder  # noqa: PLC0414 - callers need only this module
from llamaops.system.catalogue import Artefact, catalogue, variants
from llamaops.system.pip import Progress
from llamaops.system.ports import System
from llamaops.system.process import Exited, Signalled, describe

DEFAULT = (ENGINE, "model")
BUILDS = ("full-engine", "full-engine-server", "old-engine-2025", "old-engine-2024")
"""What is built from source; `build_engine` is loaded for these only."""
TERMS = {"gemma": "https://ai.google.dev/gemma/terms"}
"""Where the terms are to be read that have to be accepted by name."""
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
    """The name in the catalogue: engine-b10434, engine-b10068, model, full-engine."""
    size_bytes: int
    """The size of the download."""
    unpacked_bytes: int
    """The size on disk."""
    licence: str
    """Under which licence it comes."""
    requirement: str
    """What pip is asked for, through whatever index it is set to; several are separated by commas."""
    contents: str
    """What is inside."""
    why: str | None = None
    """Why this one of several builds."""
    accept: str | None = None
    """What has to be given with --accept-licence, where the licence is no open one."""
    terms: str | None = None
    """Where its terms are to be read."""


class Fetched(Shape, frozen=True, kw_only=True):
    """One artefact that is now in the cache."""

    name: str
    """The name in the catalogue; `engine` has become that of a build."""
    folder: str
    """Where it lies."""
    path: str
    """The file that callers want: the server, the model, or the folder of programs."""
    downloaded: bool
    """False when it was already there."""
    why: str | None = None
    """Why this one of several builds."""


class FetchReport(Shape, frozen=True, kw_only=True):
    """What is in the cache after a fetch."""

    cache: str
    """The cache folder."""
    items: tuple[Fetched, ...]
    """What was asked for, in that order."""


def embedded(cache: str, system: System | None = None) -> EmbeddedPaths | None:
    """Return the embedded engine and model as far as they are in the cache; None when neither is.

    The engine is the newest one there that this processor can run: never one that it cannot. Cheap: it
    reads a few small files and asks for sizes.
    """
    server = next(filter(None, (installer.found(item, cache) for item in _fitting(system))), None)
    model = installer.found(catalogue()["model"], cache)
    return EmbeddedPaths(server=server, model=model) if server or model else None


def _fitting(system: System | None) -> Iterator[Artefact]:
    if system is None:
        from llamaops.system.machine import Machine

        system = Machine()
    return (variant.item for variant in engine_variant.engine_variants(system) if variant.fits)


def resolve(name: str, system: System) -> str:
    """Return the name in the catalogue that a name stands for: `engine` is the build that fits.

    Raises: FetchError when no build does.
    """
    return engine_variant.chosen_variant(system).name if name == ENGINE else name


def announce(what: Sequence[str], system: System) -> tuple[Announced, ...]:
    """Return what would be downloaded, how large it is and under which licence, without touching anything.

    Raises: UsageError for a name that the catalogue does not have; FetchError when no engine fits.
    """
    names = dict.fromkeys(resolve(name, system) for name in what)  # a build may be named twice
    return tuple(_announced(name, artefact(name), system) for name in names)


def _announced(name: str, item: Artefact, system: System) -> Announced:
    return Announced(
        name=name,
        size_bytes=item.download_bytes,
        unpacked_bytes=item.unpacked_bytes,
        licence=item.licence,
        requirement=", ".join(piece.requirement for piece in item.pieces()),
        contents=item.contents,
        why=engine_variant.why_chosen(name, system),
        accept=item.accept,
        terms=None if item.accept is None else TERMS[item.accept],
    )


def missing(what: Sequence[str], cache: str, system: System) -> tuple[str, ...]:
    """Return those that are not in the cache yet, in the same order.

    Raises: UsageError; FetchError when no engine fits.
    """
    return tuple(name for name in what if not _is_there(resolve(name, system), cache, system))


def _is_there(name: str, cache: str, system: System) -> bool:
    if name in BUILDS:
        from llamaops.operations import build_engine

        return build_engine.built(cache, system, name) is not None
    return installer.found(artefact(name), cache) is not None


def artefact(name: str) -> Artefact:
    """Return an entry of the catalogue by its name there.

    Raises: UsageError.
    """
    known = catalogue()
    found = known.get(name.removesuffix("-server") if name in BUILDS else name)
    if found is None:
        raise UsageError(
            f"there is nothing called {name} to fetch",
            hint=f"known: {', '.join(dict.fromkeys((ENGINE, *known, *BUILDS)))}",
        )
    return found


def fetch(what: Sequence[str], cache: str, system: System, progress: Progress) -> FetchReport:
    """Bring artefacts into the cache, and see that the engine starts.

    Args:
        what: Names of the catalogue, or `engine` for the build that fits this processor.
        cache: The cache folder; see `cache_folder`.
        system: The machine.
        progress: Called with what is being done, how much is done, and the whole; from another thread
            while pip runs.

    Raises: FetchError, UsageError. Nothing half-done is left in the cache.
    """
    items = tuple(_fetch_one(resolve(name, system), cache, system, progress) for name in what)
    for item in items:
        if item.name in variants(ENGINE):
            _try_out(item.path, system)
    return FetchReport(cache=cache, items=items)


def _fetch_one(name: str, cache: str, system: System, progress: Progress) -> Fetched:
    if name in BUILDS:
        from llamaops.operations import build_engine

        there = build_engine.built(cache, system, name)
        folder = there or build_engine.build(cache, system, progress, name)
        return Fetched(name=name, folder=folder, path=folder, downloaded=there is None)
    item = artefact(name)
    folder, downloaded = installer.install(item, cache, system, progress)
    return Fetched(
        name=name,
        folder=folder,
        path=f"{folder}/{item.main}",
        downloaded=downloaded,
        why=engine_variant.why_chosen(name, system),
    )


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
            hint=installer.INSTEAD,
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
