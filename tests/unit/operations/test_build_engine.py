from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import FetchError
from llamaops.operations import build_engine, fetch
from llamaops.system import cache as store
from llamaops.system.build import instructions
from llamaops.system.catalogue import catalogue
from tests.fakes.system import FakeSystem

TOOLS = {"cmake": "/usr/bin/cmake", "ninja": "/usr/bin/ninja", "g++": "/usr/bin/g++"}


def quiet(_step: str, _done: int, _total: int | None) -> None:
    pass


def test_tools_on_path_are_found() -> None:
    found = build_engine.toolchain(FakeSystem(on_path=TOOLS))
    assert found == build_engine.Toolchain(
        cmake="/usr/bin/cmake", ninja="/usr/bin/ninja", compiler="/usr/bin/g++"
    )


def test_a_named_compiler_is_left_to_cmake() -> None:
    found = build_engine.toolchain(FakeSystem(on_path=TOOLS, environ={"CXX": "ccache clang++"}))
    assert isinstance(found, build_engine.Toolchain)
    assert found.compiler == "ccache clang++"


def test_a_missing_compiler_is_a_value_and_says_so() -> None:
    found = build_engine.toolchain(FakeSystem(on_path={"cmake": "/c", "ninja": "/n"}))
    assert isinstance(found, build_engine.MissingTools)
    assert found.reason("full engine") == "the full engine cannot be built here without a C++ compiler"


def test_a_build_without_tools_says_what_to_install_before_it_downloads(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"without cmake and ninja and a C\+\+ compiler; install"):
        build_engine.build(str(tmp_path), FakeSystem(), quiet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("flags\t\t: fpu sse4_2 avx avx2 fma f16c bmi2 sha_ni\n", "avx2"),
        ("flags\t\t: fpu sse4_2 avx f16c\n", "base"),
        ("Features\t: fp asimd\n", "base"),
        (PermissionError(13, "Permission denied"), "base"),
    ],
)
def test_a_build_uses_what_this_processor_has(cpuinfo: str | OSError, name: str) -> None:
    system = FakeSystem(files={"/proc/cpuinfo": cpuinfo})
    assert instructions(system) == name
    assert build_engine.build_name(system).endswith(f"-{name}")


def test_a_build_with_the_server_serves_both(tmp_path: Path) -> None:
    system = FakeSystem()
    name = build_engine.build_name(system, "full-engine-server")
    (tmp_path / "work" / "bin").mkdir(parents=True)
    (tmp_path / "work" / "bin" / "llama-server").write_bytes(b"x")
    store.publish(str(tmp_path / "work"), str(tmp_path / "engines" / name), name)
    there = build_engine.built(str(tmp_path), system, "full-engine-server")
    assert there is not None
    assert build_engine.built(str(tmp_path), system) == there


def test_what_can_be_fetched_as_a_build_is_what_there_is_a_recipe_for() -> None:
    assert set(fetch.BUILDS) == set(build_engine.RECIPES)
    for name in fetch.BUILDS:
        assert catalogue()[build_engine.source_of(name)].archive == "sdist"


def test_a_build_without_a_server_variant_is_not_taken_for_one(tmp_path: Path) -> None:
    assert build_engine.built(str(tmp_path), FakeSystem(), "old-engine-2024") is None


def test_builds_of_different_sources_have_different_names() -> None:
    names = {build_engine.build_name(FakeSystem(), name) for name in fetch.BUILDS}
    assert len(names) == len(fetch.BUILDS)
