"""Where requests go."""

from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.system.http import HttpClient
from llamaops.system.origin import Origin


@pytest.mark.parametrize(
    ("url", "expected", "written"),
    [
        ("http://127.0.0.1:8080", Origin("http", "127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("127.0.0.1:8080", Origin("http", "127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("https://host/llm/", Origin("https", "host", 443, "/llm"), "https://host:443/llm"),
        ("http://[::1]:9", Origin("http", "::1", 9), "http://[::1]:9"),
        ("HTTP://Host", Origin("http", "host", 80), "http://host:80"),
    ],
)
def test_urls(url: str, expected: Origin, written: str) -> None:
    assert Origin.parse(url) == expected
    assert Origin.parse(url).url == written


@pytest.mark.parametrize(
    "url",
    ["", "http://", "ftp://host", "http://host:99999", "http://host:x", "http://u:swordfish@host", "http://host/?k=swordfish",
     "http://host/#swordfish", "http://host/a b", "file:///etc/passwd", "http://swordfish@host:1"],
)  # fmt: skip
def test_urls_that_are_refused_without_their_secret(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Origin.parse(url)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("key", ["", " ", "sword\r\nfish: x", "sword\x00fish"])
def test_keys_that_cannot_be_sent_are_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        HttpClient(Origin("http", "127.0.0.1", 1), api_key=key)
    assert "sword" not in str(caught.value)
