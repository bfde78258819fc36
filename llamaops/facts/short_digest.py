"""The SHA-256 of a short text without OpenSSL, which takes longer to load than a header takes to read."""

from __future__ import annotations

import importlib

MODULES = ("_sha2", "_sha256", "hashlib")
"""CPython's own code since 3.12 and before, which `random` takes for the same reason; a build may lack it."""


def short_sha256(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal; for more than a few megabytes hashlib is faster."""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return str(module.sha256(data).hexdigest())
    raise AssertionError("hashlib is part of Python")
