"""Names of parts."""

from __future__ import annotations

import pytest

from llamaops.facts.gguf_shards import parse_shard_name


def test_a_name_in_its_parts() -> None:
    name = parse_shard_name("/models/big-00002-of-00010.gguf")
    assert name is not None
    assert (name.prefix, name.number, name.count) == ("/models/big", 2, 10)
    assert name.path(10) == "/models/big-00010-of-00010.gguf"


@pytest.mark.parametrize(
    "path",
    [
        "big.gguf",
        "big-00000-of-00010.gguf",
        "big-00011-of-00010.gguf",
        "big-1-of-2.gguf",
        "big-00001-of-00002.GGUF",
        "big-00001-of-00002.gguf.part",
        "big-00001of-00002.gguf",
        "/models/-00001-of-00002.gguf",
        "x",
        "",
    ],
)
def test_other_names(path: str) -> None:
    assert parse_shard_name(path) is None
