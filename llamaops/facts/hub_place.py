"""What the folders of a download from a hub say about a file: repository, revision and digest."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from llamaops.facts.model_identity import HubPlace
from llamaops.schema.fact import Fact, Source, Unknown, known

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import System

METADATA_BYTES = 4096
_HEX = "0123456789abcdef"


def hub_place(system: System, path: str) -> Fact[HubPlace]:
    """Return where a file was downloaded from, by the cache's layout or the file beside the download."""
    source = Source(kind="file", name=path)
    place = _from_cache(system, path) or _from_local_folder(system, path)
    if place is None:
        detail = f"{path} does not lie in a download folder of the hub"
        return Unknown(why="absent", detail=detail, source=source)
    return known(place, source)


def _from_cache(system: System, path: str) -> HubPlace | None:
    """Read the layout of the hub's cache: models--OWNER--NAME/snapshots/REVISION/FILE -> blobs/SHA256."""
    parts = os.path.abspath(path).split("/")
    at = next((i for i, part in enumerate(parts) if part.startswith("models--")), None)
    if at is None or parts[at + 1 : at + 2] != ["snapshots"] or len(parts) < at + 4:
        return None
    owner, _, name = parts[at].removeprefix("models--").partition("--")
    blob = os.path.basename(system.realpath(path))
    return HubPlace(
        repository=f"{owner}/{name}" if name else owner,
        revision=parts[at + 2],
        sha256=blob if is_sha256(blob) else None,
        said_by="the folders of the hub's cache",
    )


def _from_local_folder(system: System, path: str) -> HubPlace | None:
    """Read what the hub's client leaves beside a download: commit, etag and time, a line each."""
    folder, name = os.path.split(os.path.abspath(path))
    inside = ""
    for _ in range(4):  # a file of a repository may lie some folders below the download folder
        beside = os.path.join(folder, ".cache/huggingface/download", inside, f"{name}.metadata")
        try:
            lines = system.read_text(beside, limit_bytes=METADATA_BYTES).split("\n")
        except (OSError, ValueError):
            inside = os.path.join(os.path.basename(folder), inside)
            folder = os.path.dirname(folder)
            continue
        etag = lines[1].strip().strip('"') if len(lines) > 1 else ""
        commit = lines[0].strip()
        return HubPlace(
            repository=None,
            revision=commit if re.fullmatch(r"[0-9a-f]{40}", commit) else None,
            sha256=etag if is_sha256(etag) else None,
            said_by=beside,
        )
    return None


def is_sha256(text: str) -> bool:
    """Say whether a text is a SHA-256 in hex."""
    return len(text) == 64 and all(character in _HEX for character in text)  # noqa: PLR2004 - digits of SHA-256
