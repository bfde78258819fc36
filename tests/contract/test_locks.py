"""The locks work behind any mirror: they name versions and digests, and no place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-docs.lock")
EXTRAS: tuple[tuple[str, ...], ...] = ((), ("dev",), ("dev", "docs"))


def versions(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+) \\$", (ROOT / name).read_text(), re.MULTILINE))


def dependencies(extras: tuple[str, ...]) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = sum((project["optional-dependencies"][extra] for extra in extras), project["dependencies"])
    return {re.split(r"[<>=~!;\[ ]", line)[0].lower() for line in wanted}


@pytest.mark.parametrize("name", [*LOCKS, "llamaops/catalogue.json"])
def test_no_index_host_or_path_is_named(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"\w+://|--(extra-)?index-url|--find-links|--trusted-host|@ file|/home/|/tmp/", text)
    assert not re.search(r"\b[\w-]+\.(org|com|io|net|dev|ai)\b", text)


@pytest.mark.parametrize("name", LOCKS)
def test_every_requirement_has_digests(name: str) -> None:
    blocks = re.split(r"^(?=[\w.-]+==)", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
    assert len(blocks) == len(versions(name))
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_locks_agree() -> None:
    runtime, dev, docs = (versions(name) for name in LOCKS)
    assert runtime.items() <= dev.items() <= docs.items()


def test_the_locks_have_every_dependency_and_the_build_back_end() -> None:
    assert {"hatchling", "editables"} <= set(versions(LOCKS[0]))
    for name, extras in zip(LOCKS, EXTRAS, strict=True):
        assert dependencies(extras) <= set(versions(name)), name
