"""Limits on what a child process or an exchange may take."""

from __future__ import annotations

from llamaops.schema.shape import Shape

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Bounds(Shape, frozen=True, kw_only=True):
    """Limits in seconds and bytes; every child and every exchange has them."""

    wall_s: float
    """Seconds until the operation is stopped."""
    grace_s: float = 2.0
    """Seconds between asking a child to stop and killing it."""
    keep_bytes: int = 256 * KIB
    """Bytes kept of each stream: the first half and the last half of this."""
    total_bytes: int = 64 * MIB
    """Bytes of both streams together (or of a body) after which the operation is stopped."""
