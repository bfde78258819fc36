"""The base of every published type."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of published types: immutable, keyword-only, unknown keys refused, no coercion.

    A subclass repeats `frozen=True, kw_only=True`: msgspec applies `kw_only` per class, and mypy
    reads both from the class line. A contract test asks for it.
    """
