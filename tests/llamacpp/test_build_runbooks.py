"""The runbooks that build an engine: from a pinned commit, and from an archive with a digest.

The small project here has a CMakeLists.txt as llama.cpp has one, but its programs are stand-ins that are
copied: every step is real, and done in seconds. With LLAMAOPS_TEST_SOURCES the real sources are built, which
takes minutes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.command import Ran
from tests.fakes.liars import Program, install
from tests.llamacpp.runbooks import ends, run_book

pytestmark = [
    pytest.mark.llamacpp,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        shutil.which("git") is None or shutil.which("tar") is None, reason="needs git and tar"
    ),
]

SOURCES = os.environ.get("LLAMAOPS_TEST_SOURCES", "")
PROGRAMS: tuple[Program, ...] = ("llama-server", "llama-completion")
CMAKE = """cmake_minimum_required(VERSION 3.14)
project(stand-in NONE)
foreach(program {programs})
  add_custom_target(${{program}} COMMAND ${{CMAKE_COMMAND}} -E copy
    ${{CMAKE_SOURCE_DIR}}/${{program}} ${{CMAKE_BINARY_DIR}}/bin/${{program}})
endforeach()
"""


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """CMake comes with the development packages; no configuration of the user's git counts."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "records"
    command.wait_none_left()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in PROGRAMS:
        install(folder, name)
    (folder / "CMakeLists.txt").write_text(CMAKE.format(programs=" ".join(PROGRAMS)))
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", "-C", folder, *who, *words], check=True, timeout=60, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def commit(project: Path) -> str:
    """Make the project a repository of two commits; the first is pinned, and not the newest."""
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "config", "uploadpack.allowFilter", "true")
    git(project, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "pinned")
    pinned = git(project, "rev-parse", "HEAD")
    (project / "CMakeLists.txt").write_text("this is no CMake\n")
    git(project, "commit", "--quiet", "--all", "--message", "newer and broken")
    return pinned


def build_from_git(records: Path, project: Path, commit: str, folder: Path) -> Ran:
    return run_book(
        "build-from-git",
        records,
        url=f"file://{project}",
        commit=commit,
        source=folder / "src",
        build_folder=folder / "build",
        targets=" ".join(PROGRAMS),
    )


def test_build_from_git(records: Path, tmp_path: Path, project: Path, commit: str) -> None:
    ran = build_from_git(records, project, commit, tmp_path)
    assert ran.status == 0, (ran.err, ends(ran), ran.open_findings())
    assert set(ends(ran).values()) == {"done"}
    assert ran.record["strongest"] == "binary"
    assert git(tmp_path / "src", "rev-parse", "HEAD") == commit


def test_a_commit_that_is_not_there_is_not_built(
    records: Path, tmp_path: Path, project: Path, commit: str
) -> None:
    ran = build_from_git(records, project, "0" * 40, tmp_path)
    assert ran.status == 3
    found = ends(ran)
    assert (found["clone"], found["checkout"], found["build"]) == ("done", "failed", "not_run")
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("name", ["main", "HEAD", "v1"])
def test_a_name_that_may_move_is_no_pinned_commit(
    records: Path, tmp_path: Path, project: Path, commit: str, name: str
) -> None:
    ran = build_from_git(records, project, name, tmp_path)
    assert ran.status == 2
    assert f"commit: has to be the whole commit, 40 hex digits, not '{name}'" in ran.err
    assert not (tmp_path / "src").exists()


def archive_of(folder: Path, target: Path) -> str:
    subprocess.run(["tar", "-czf", target, "-C", folder.parent, folder.name], check=True, timeout=60)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def build_from_archive(records: Path, archive: Path, digest: str, folder: Path, subfolder: str) -> Ran:
    return run_book(
        "build-from-archive",
        records,
        archive=archive,
        sha256=digest,
        source=folder / "unpacked",
        subfolder=subfolder,
        build_folder=folder / "build",
        targets=" ".join(PROGRAMS),
    )


def test_build_from_archive(records: Path, tmp_path: Path, project: Path) -> None:
    archive = tmp_path / "src.tar.gz"
    ran = build_from_archive(records, archive, archive_of(project, archive), tmp_path, project.name)
    assert ran.status == 0, (ran.err, ends(ran), ran.open_findings())
    assert ran.record["strongest"] == "binary"


def test_an_archive_that_is_not_the_published_one_is_not_unpacked(
    records: Path, tmp_path: Path, project: Path
) -> None:
    archive = tmp_path / "src.tar.gz"
    archive_of(project, archive)
    ran = build_from_archive(records, archive, "0" * 64, tmp_path, project.name)
    assert ran.status == 3
    assert ends(ran)["digest"] == "failed"
    assert not (tmp_path / "unpacked").exists()


@pytest.mark.skipif("LLAMAOPS_TEST_SOURCES" not in os.environ, reason="set LLAMAOPS_TEST_SOURCES to build")
@pytest.mark.timeout(3600)
def test_build_from_archive_for_real(records: Path, tmp_path: Path) -> None:
    """Minutes: the sdist of llama-cpp-python that LLAMAOPS_TEST_SOURCES names, built for the CPU."""
    archive = Path(SOURCES)
    folder = archive.name.removesuffix(".tar.gz")
    asked = ["runbook", "run", "build-from-archive", "--yes", "--format", "json"]
    inputs = {
        "archive": archive,
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "source": tmp_path / "src",
        "subfolder": f"{folder}/vendor/llama.cpp",
        "build-folder": tmp_path / "build",
        "native": "OFF",
        "targets": "llama-completion llama-bench llama-fit-params llama-gguf-split llama-quantize",
        "options": "-DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -G Ninja",
    }
    words = [word for name, value in inputs.items() for word in ("--input", f"{name}={value}")]
    ran = command.run([*asked, *words], records, timeout=3600)
    assert ran.status == 0, (ran.err, ran.open_findings())
    assert ran.record["strongest"] == "binary"
    assert (tmp_path / "build" / "bin" / "llama-completion").is_file()
