"""A short digest is the digest that hashlib computes, whatever modules this Python has."""

from __future__ import annotations

import hashlib

import pytest

from llamaops.facts import short_digest
from llamaops.facts.short_digest import short_sha256


@pytest.mark.parametrize("data", [b"", b"a", b"{% for m in messages %}" * 1000])
@pytest.mark.parametrize("modules", [short_digest.MODULES, ("_no_such_module", "hashlib")])
def test_it_is_sha256(data: bytes, modules: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_digest, "MODULES", modules)
    assert short_sha256(data) == hashlib.sha256(data).hexdigest()
