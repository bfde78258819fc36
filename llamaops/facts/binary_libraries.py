"""What a program's libraries are, which it misses, and which back ends lie there."""

from __future__ import annotations

import os
from collections.abc import Sequence

from llamaops.facts.capabilities import Capabilities
from llamaops.facts.digests import Digests
from llamaops.facts.file_size import file_size
from llamaops.facts.libraries import (
    OWN,
    BackendLibrary,
    HowFound,
    Library,
    Linked,
    Loader,
    MissingLibrary,
    backend_name,
)
from llamaops.facts.library_packages import Family, package_of, parse_family
from llamaops.facts.run_failure import RunFailure
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted
from llamaops.system.ports import System


def collect_missing(
    system: System,
    program: str | None,
    linked: Linked,
    failures: Sequence[RunFailure],
    capabilities: Fact[Capabilities],
) -> Fact[tuple[MissingLibrary, ...]]:
    """Join what the file's header says and what the loader said; a program that ran misses nothing."""
    named = [item.what for item in failures if item.kind == "missing_library" and item.what]
    source = Source(kind="computed", name=f"needed libraries of {program}, in the loader's order")
    if isinstance(capabilities, Known):
        return Known(value=(), source=source)
    if program is None and not named:
        return not_attempted("the program that executes is not known, and so what it needs is not")
    family = _family(system)
    missing: dict[str, str | None] = {**dict.fromkeys(named), **linked.missing}
    found = tuple(
        MissingLibrary(name=name, needed_by=needed_by, package=package_of(name, family))
        for name, needed_by in missing.items()
    )
    return Known(value=found, source=source)


def _family(system: System) -> Family:
    try:
        return parse_family(system.read_text("/etc/os-release", limit_bytes=65536))
    except OSError:
        return "other"


def collect_libraries(
    system: System,
    loader: Loader,
    digests: Digests,
    *,
    program: str | None,
    linked: Linked,
    mapped: Sequence[str],
) -> Fact[tuple[Library, ...]]:
    """Return llama.cpp's own libraries: linked, seen mapped, and lying where plugins are loaded from."""
    if program is None:
        return not_attempted("the program that executes is not known, and so its libraries are not")
    places: dict[str, tuple[str, HowFound]] = {}
    for path in mapped:
        if OWN.match(os.path.basename(path)):
            places[system.realpath(path)] = (os.path.basename(path), "mapped")
    for name, (path, _header) in linked.own.items():
        places[path] = (name, "linked")
    for name, path in _plugins(system, loader, program, places):
        places.setdefault(path, (name, "plugin"))
    for path in places:
        digests.start(path)
    found = []
    for path, (name, how) in sorted(places.items()):
        header = loader.read_elf(path)
        library = Library(
            name=name,
            path=path,
            how=how,
            size_bytes=file_size(system, path),
            sha256=digests.of(path),
            build_id=header.build_id if header else None,
        )
        found.append(library)
    return Known(value=tuple(found), source=Source(kind="file", name=f"{program} and its folder"))


def _plugins(
    system: System, loader: Loader, program: str, places: dict[str, tuple[str, HowFound]]
) -> list[tuple[str, str]]:
    """Return names and paths of back ends beside the program, or beside one that it has loaded."""
    present = {backend_name(name) for name, _how in places.values()}
    folders = {os.path.dirname(program)}
    folders |= {os.path.dirname(path) for path in places if backend_name(os.path.basename(path))}
    return [
        (name, system.realpath(os.path.join(folder, name)))
        for folder in sorted(folders)
        for name in sorted(loader.listing(folder))
        # A plugin's name has no version; with one it is a copy of what is linked.
        if name.endswith((".so", ".dylib")) and backend_name(name) not in {None, *present}
    ]


def backends_of(libraries: Fact[tuple[Library, ...]]) -> Fact[tuple[BackendLibrary, ...]]:
    """Pick the back ends out of the libraries."""
    if isinstance(libraries, Unknown):
        return libraries
    found = tuple(
        BackendLibrary(name=name, path=library.path, how=library.how)
        for library in libraries.value
        if (name := backend_name(library.name)) is not None
    )
    if not found:
        detail = "no back end lies there as a library: they are part of the program itself"
        return Unknown(why="unsupported", detail=detail, source=libraries.source)
    return Known(value=found, source=libraries.source)
