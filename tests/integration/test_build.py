"""A build with stand-ins for cmake and ninja: what is published, what is said, what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import FetchError
from llamaops.system import build as builder
from llamaops.system.machine import Machine

_CMAKE = """#!/bin/sh
echo "cmake $*" >> "$LOG"
"""
_NINJA = """#!/bin/sh
echo "ninja $*" >> "$LOG"
if [ -n "$BREAK" ]; then echo "src/x.cpp:3:1: error: expected ';'"; echo 'ninja: build stopped'; exit 1; fi
mkdir -p "$2/bin"
echo '[1/2] compile'; echo '[2/2] link'
for name in one $MORE; do echo program > "$2/bin/$name"; chmod +x "$2/bin/$name"; done
echo library > "$2/bin/libx.so.1"; ln -sf libx.so.1 "$2/bin/libx.so"; echo other > "$2/bin/notes.txt"
"""

RECIPE = builder.Recipe(title="engine of a test", targets=("one", "two"), options=("-DX=1",), prefix="OLD")


@pytest.fixture
def tools(tmp_path: Path) -> builder.Toolchain:
    for name, text in (("cmake", _CMAKE), ("ninja", _NINJA)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return builder.Toolchain(cmake=str(tmp_path / "cmake"), ninja=str(tmp_path / "ninja"), compiler="c++")


def build(
    tmp_path: Path, tools: builder.Toolchain, steps: list[tuple[str, int, int | None]], **environ: str
) -> str:
    variables = {"PATH": "/usr/bin:/bin", "LOG": str(tmp_path / "log"), **environ}
    with Machine(variables) as machine:
        return builder.build(
            "/source",
            str(tmp_path / "cache"),
            tree="tree",
            name="build-1",
            recipe=RECIPE,
            tools=tools,
            system=machine,
            progress=lambda *step: steps.append(step),
        )


def test_programs_and_libraries_are_published_and_the_second_run_builds_nothing(
    tmp_path: Path, tools: builder.Toolchain
) -> None:
    steps: list[tuple[str, int, int | None]] = []
    folder = build(tmp_path, tools, steps, MORE="two")
    assert sorted(path.name for path in Path(folder).iterdir()) == ["libx.so", "libx.so.1", "one", "two"]
    assert (Path(folder) / "libx.so").is_symlink()
    assert steps[-1] == ("build engine of a test", 2, 2)
    assert build(tmp_path, tools, steps, MORE="two") == folder
    cmake, ninja = (tmp_path / "log").read_text().splitlines()
    assert "-DCMAKE_BUILD_RPATH=$ORIGIN" in cmake
    assert "-DLLAMA_CURL=OFF" in cmake
    assert "-DX=1 -DOLD_NATIVE=OFF -DOLD_AVX=O" in cmake
    assert ninja.endswith("one two")


def test_a_build_that_breaks_gives_the_first_error_line_and_a_log(
    tmp_path: Path, tools: builder.Toolchain
) -> None:
    with pytest.raises(
        FetchError, match=r"could not be built \(exit status 1\): src/x.cpp:3:1: error"
    ) as caught:
        build(tmp_path, tools, [], BREAK="1")
    log = Path(str(caught.value).rsplit(" ", 1)[1])
    assert "build stopped" in log.read_text()
    assert builder.built(str(tmp_path / "cache"), "build-1") is None


def test_a_program_that_was_not_made_is_named_and_nothing_is_published(
    tmp_path: Path, tools: builder.Toolchain
) -> None:
    with pytest.raises(FetchError, match="did not make two"):
        build(tmp_path, tools, [])
    assert builder.built(str(tmp_path / "cache"), "build-1") is None
    assert not list((tmp_path / "cache").glob(".tmp-*"))
