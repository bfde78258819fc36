"""Digests of a model's files: computed, kept apart from those that somebody declares or expects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from llamaops.facts.hub_place import hub_place, is_sha256
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Known, Source, known
from llamaops.schema.shape import Shape

if TYPE_CHECKING:
    from llamaops.system.digest import Digest
    from llamaops.system.ports import System

LIST_BYTES = 256 * KIB
LISTS = ("sha256sums", "sha256sums.txt", "sha256sum.txt", "checksums.txt", "checksums.sha256", "sha256.txt")
_LINE = (
    r"(?m)^\s*([0-9a-fA-F]{64})[ \t]+[*]?(\S[^\r\n]*?)\s*$|^SHA256 \(([^)\r\n]+)\) = ([0-9a-fA-F]{64})\s*$"
)


class Computes(Protocol):
    """What computes digests; see `system.digest.Digester`."""

    def digest_all(self, paths: Sequence[str]) -> list[Digest | OSError]:
        """Return a digest or an error for each file, in their order."""
        ...


class FileDigest(Shape, frozen=True, kw_only=True):
    """The digest of one file."""

    path: str
    """The file."""
    sha256: Fact[str]
    """In hex."""
    computed_now: bool
    """Whether the file was read for this record; else the digest was remembered for an unchanged file."""
    computed_at: str | None
    """When it was computed, UTC."""
    elapsed_s: float | None
    """Seconds that it took then."""


class DeclaredDigest(Shape, frozen=True, kw_only=True):
    """A digest that a file or folder beside the model declares."""

    path: str
    """The file that it is about."""
    sha256: str
    """In hex."""
    said_by: str
    """What declares it."""


class DigestFacts(Shape, frozen=True, kw_only=True):
    """Digests of the files of a model."""

    files: tuple[FileDigest, ...]
    """Computed ones."""
    declared: tuple[DeclaredDigest, ...]
    """Declared ones, which nobody has verified until they are compared."""
    expected: tuple[str, ...]
    """Those that the operator expects: one for the file that was named, or one for each part in order."""
    named: str
    """The file that was named."""


def collect_digests(
    system: System, named: str, paths: Sequence[str], computes: Computes, expected: Sequence[str] = ()
) -> DigestFacts:
    """Compute the digests of a model's files and find those that are declared beside them."""
    files = [_file(path, found) for path, found in zip(paths, computes.digest_all(paths), strict=True)]
    return DigestFacts(
        files=tuple(files),
        declared=tuple(declared_digests(system, paths)),
        expected=tuple(digest.lower() for digest in expected),
        named=named,
    )


def _file(path: str, found: Digest | OSError) -> FileDigest:
    source = Source(kind="file", name=path)
    if isinstance(found, OSError):
        gap = unknown_from_os_error(source, found)
        return FileDigest(path=path, sha256=gap, computed_now=True, computed_at=None, elapsed_s=None)
    return FileDigest(
        path=path,
        sha256=known(found.sha256, source),
        computed_now=found.computed_now,
        computed_at=found.computed_at,
        elapsed_s=found.elapsed_s,
    )


def declared_digests(system: System, paths: Sequence[str]) -> Iterable[DeclaredDigest]:
    """Yield what a hub's folders and lists of digests beside the files declare."""
    names = {os.path.basename(path): path for path in paths}
    for path in paths:
        place = hub_place(system, path)
        if isinstance(place, Known) and place.value.sha256 is not None:
            yield DeclaredDigest(path=path, sha256=place.value.sha256, said_by=place.value.said_by)
    folder = os.path.dirname(paths[0]) if paths else ""
    try:
        beside = system.list_dir(folder or ".")
    except OSError:
        return
    for name in beside:
        own = name.lower().removesuffix(".sha256").removesuffix(".sha256sum")
        if name.lower() in LISTS or own in {one.lower() for one in names}:
            yield from _listed(system, os.path.join(folder, name), names)


def _listed(system: System, list_path: str, names: dict[str, str]) -> Iterable[DeclaredDigest]:
    """Read a list as sha256sum writes it, or one digest in a file that is named after the model's."""
    if os.path.basename(list_path) in names:
        return
    try:
        text = system.read_text(list_path, limit_bytes=LIST_BYTES)
    except OSError:
        return
    for digest, name, bsd_name, bsd_digest in re.findall(_LINE, text):
        path = names.get(os.path.basename(name or bsd_name))
        if path is not None:
            yield DeclaredDigest(path=path, sha256=(digest or bsd_digest).lower(), said_by=list_path)
    alone = text.strip().lower()
    path = names.get(os.path.basename(list_path).rpartition(".")[0])
    if path is not None and is_sha256(alone):
        yield DeclaredDigest(path=path, sha256=alone, said_by=list_path)
