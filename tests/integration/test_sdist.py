"""A source archive comes through the real pip, and nothing of it runs."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from llamaops.errors import FetchError
from llamaops.system import pip
from llamaops.system.catalogue import Artefact, Member
from llamaops.system.machine import Machine

pytest.importorskip("pip")
PROJECT = """
[build-system]
requires = ["scikit-build-core[pyproject]", "no-such-package-anywhere"]
build-backend = "scikit_build_core.build"

[project]
name = "old-engine-of-a-test"
version = "1.0"
"""
SETUP = 'open("{marker}", "w").write("it ran")\n'


def archive(folder: Path, marker: Path) -> Artefact:
    """Write a source archive whose every script leaves a mark, and return its entry."""
    path = folder / "old_engine_of_a_test-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name, text in (
            ("pyproject.toml", PROJECT),
            ("setup.py", SETUP.format(marker=marker)),
            ("CMakeLists.txt", "message(FATAL_ERROR no)\n"),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: old-engine-of-a-test\nVersion: 1.0\n"),
        ):
            info = tarfile.TarInfo(f"old_engine_of_a_test-1.0/{name}")
            info.size = len(text)
            file.addfile(info, io.BytesIO(text.encode()))
    data = path.read_bytes()
    return Artefact(
        title="engine of a test", name="old-engine-of-a-test", version="1.0", archive="sdist", file=path.name,
        sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), unpacked_bytes=1 << 20, licence="MIT",
        contents="nothing", folder="sources", members=(Member(source="x/", target="x/"),), main="x/y",
    )  # fmt: skip


def download(artefact: Artefact, links: Path, work: Path) -> str:
    work.mkdir()
    with Machine() as machine:
        environ = {**machine.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}
        return pip.download(
            artefact, str(work), pip=pip.pip_command(machine.which), environ=environ, run=machine.run,
            progress=lambda _step, _done, _total: None,
        )  # fmt: skip


def test_a_source_archive_is_saved_without_its_build_and_without_what_that_needs(tmp_path: Path) -> None:
    marker, links = tmp_path / "marker", tmp_path / "links"
    links.mkdir()
    artefact = archive(links, marker)
    path = download(artefact, links, tmp_path / "work")
    assert Path(path).read_bytes() == (links / artefact.file).read_bytes()
    assert not marker.exists()


def test_another_archive_under_its_name_is_refused_by_its_digest(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    artefact = archive(links, tmp_path / "marker")
    (links / artefact.file).write_bytes((links / artefact.file).read_bytes()[:-1] + b"x")
    with pytest.raises(FetchError, match="another SHA-256 than the catalogue"):
        download(artefact, links, tmp_path / "work")
    assert not (tmp_path / "marker").exists()
