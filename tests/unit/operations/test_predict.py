"""The prediction follows the operator's own flags, as the engine will."""

from __future__ import annotations

import pytest

from llamaops.estimate.resolve import EVERY_LAYER, build_of, least_build_of
from llamaops.facts.version_text import parse_version
from llamaops.operations.fit import builds_of
from llamaops.operations.predict import front_end_of, own_flags
from llamaops.schema.fact import Source


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {}),
        (("--temp", "0.5", "--no-warmup"), {}),
        (("--swa-full",), {"full_window_cache": True}),
        (("--reranking",), {"embeddings": True, "pooling": "rank"}),
        (("--embedding", "--pooling", "mean"), {"embeddings": True, "pooling": "mean"}),
        (("--swa_full", "-nkvo"), {"full_window_cache": True, "offloads_cache": False}),
        (("--cpu-moe",), {"cpu_moe_layers": EVERY_LAYER}),
        (("--n-cpu-moe", "3", "--mmproj", "/m/p.gguf"), {"cpu_moe_layers": 3, "mmproj": "/m/p.gguf"}),
        (("-ncmoe", "3", "-ncmoe", "4"), {"cpu_moe_layers": 4}),
        (("-fa", "off"), {"flash_attn": "off"}),
    ],
)
def test_own_flags_change_what_is_predicted(words: tuple[str, ...], found: dict[str, object]) -> None:
    assert own_flags(words) == found


@pytest.mark.parametrize(
    ("program", "front_end"), [("/x/llama-server", "server"), ("/x/llama-completion", "completion")]
)
def test_the_front_end_is_told_by_the_name(program: str, front_end: str) -> None:
    assert front_end_of(program) == front_end


@pytest.mark.parametrize(
    ("text", "number", "semver"),
    [
        ("version: 1 (571d0d5)\nbuilt with GNU 11.4.0 for Linux x86_64", 10068, None),
        ("version: 1 (571d0d52ab)", 10068, None),
        ("version: 1 (abcdef0)", 1, None),
        ("version: 10434 (7e4c0a9)", 10434, None),
    ],
)
def test_a_commit_that_we_fetch_tells_the_build(text: str, number: int, semver: str | None) -> None:
    version = parse_version(text, Source(kind="command", name="llama-server --version"))
    assert builds_of(version) == (build_of(number, semver), least_build_of(number, semver))
