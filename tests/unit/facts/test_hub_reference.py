"""What may stand for a file on a hub."""

from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.facts.hub_reference import parse_reference

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_whole_reference() -> None:
    found = parse_reference(f"hf:maker/tiny-GGUF/sub/m.gguf@{COMMIT}")
    assert (found.repository, found.file, found.revision, found.pinned) == (
        "maker/tiny-GGUF",
        "sub/m.gguf",
        COMMIT,
        True,
    )
    assert found.url("https://hub") == f"https://hub/maker/tiny-GGUF/resolve/{COMMIT}/sub/m.gguf"
    assert parse_reference("hf://a/b/c.gguf").revision == "main"
    assert not parse_reference("hf:a/b/c.gguf@v1.0").pinned


@pytest.mark.parametrize(
    "text",
    [
        "hf:a/b", "hf:a/b/", "hf:a//c", "hf:a/b/../c", "hf:a/b/c@../x", "hf:a/b/c d", "hf:a/b/c?x=1",
        "hf:../b/c", "hf:a/b/c@", "hf:a/b/c\n", "a/b/c", "hf:a/b//etc/passwd",
    ],
)  # fmt: skip
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(UsageError):
        parse_reference(text)
