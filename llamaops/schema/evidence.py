"""Raw output that something in a record rests on."""

from __future__ import annotations

import os
from typing import Literal

from llamaops.schema.shape import Shape

# The id survives redaction. Made from the digest alone it would let somebody confirm a guessed secret.
_SALT = os.urandom(16)

EvidenceKind = Literal["stdout", "stderr", "http", "log", "file", "library"]


class Evidence(Shape, frozen=True, kw_only=True):
    """Raw output, bounded; the digest is of the original, before truncation and redaction.

    The digest is left out (None) where the original held a secret: a digest of something that can
    be guessed would give it away. The redaction stage decides that.
    """

    id: str
    """`ev-` and 12 hex digits; within a run, equal output of one source has an equal id."""
    kind: EvidenceKind
    """Which stream or source the text came from."""
    label: str
    """The command line, request line or path that produced it."""
    sha256: str | None
    """SHA-256 of the original bytes in hex; None when a secret was removed from the text."""
    total_bytes: int
    """Length of the original in bytes."""
    text: str
    """What was kept, invalid UTF-8 replaced: all of it, or start and end with a marker between."""
    truncated: bool = False
    """Whether something between start and end was dropped."""


def evidence_of(
    kind: EvidenceKind,
    label: str,
    data: bytes,
    *,
    total_bytes: int | None = None,
    sha256: str | None = None,
    truncated: bool = False,
) -> Evidence:
    """Make evidence from captured bytes.

    Units: `total_bytes` in bytes; give it and `sha256` when `data` is only a part of the original.
    """
    import hashlib  # loads OpenSSL, which most commands do without

    digest = sha256 or hashlib.sha256(data).hexdigest()
    # The label takes part: equal output of two commands is two pieces of evidence.
    identity = hashlib.sha256(_SALT + f"{kind}\0{label}\0{digest}".encode()).hexdigest()
    return Evidence(
        id=f"ev-{identity[:12]}",
        kind=kind,
        label=label,
        sha256=digest,
        total_bytes=len(data) if total_bytes is None else total_bytes,
        text=data.decode("utf-8", "replace"),
        truncated=truncated,
    )
