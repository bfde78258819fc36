"""Amounts of memory, written for people."""

from __future__ import annotations

from llamaops.schema.bounds import GIB, MIB


def amount(count_bytes: int) -> str:
    """Write an amount of memory with its unit: `1.50 GiB`, `93.8 MiB`."""
    return f"{count_bytes / GIB:.2f} GiB" if count_bytes >= GIB else f"{count_bytes / MIB:.1f} MiB"
