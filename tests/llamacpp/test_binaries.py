"""What real engines say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from llamaops.facts.binaries import collect_binaries, collect_binary, confirm_flags
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine
from tests.fakes import programs


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Machine({"PATH": "/usr/bin:/bin"}) as machine:
        yield machine


# What each build says of itself, by its name in the catalogue: semantic version, commit, number of options.
SAYS = {"engine-b10434": ("0.1.0", "7e4c0a9", 248), "engine-b10068": (None, "571d0d5", 247)}


@pytest.mark.llamacpp
@pytest.mark.parametrize("name", SAYS)
def test_the_embedded_server(name: str, fetched: Callable[[str], str], machine: Machine) -> None:
    binary = collect_binary(machine, fetched(name), "llama-server")
    semver, commit, options = SAYS[name]
    assert binary.runs.need()
    said = binary.version.semver
    assert (said.value if isinstance(said, Known) else None) == semver
    assert binary.version.commit.need() == commit
    capabilities = binary.capabilities.need()
    assert len(capabilities.options) == options
    assert capabilities.has("--mlock")
    backends = {backend.name: backend.how for backend in binary.backends.need()}
    assert backends == {"cpu": "linked", "rpc": "linked", "vulkan": "linked"}
    assert isinstance(binary.devices, Known)
    names = {library.name for library in binary.libraries.need()}
    assert {"libllama.so.0", "libggml-base.so.0", "libllama-server-impl.so"} <= names
    assert all(isinstance(library.sha256, Known) for library in binary.libraries.need())
    assert binary.missing_libraries.need() == ()


@pytest.mark.llamacpp
def test_a_wrapper_of_the_embedded_server_is_seen_through(
    embedded_server: str, machine: Machine, tmp_path: Path
) -> None:
    wrapper = programs.script(tmp_path / "llama-server", f'#!/bin/sh\nx=$(echo {embedded_server})\n$x "$@"\n')
    binary = collect_binary(machine, str(wrapper), "llama-server")
    direct = collect_binary(machine, embedded_server, "llama-server")
    assert binary.wrapper
    assert binary.executes.need() == direct.executes.need()
    assert binary.sha256.need() == direct.sha256.need()
    assert [lib.sha256.need() for lib in binary.libraries.need()] == [
        lib.sha256.need() for lib in direct.libraries.need()
    ]


@pytest.mark.llamacpp
def test_the_embedded_server_confirms_and_refuses_flags(embedded_server: str, machine: Machine) -> None:
    assert confirm_flags(machine, embedded_server, ["-c", "512", "--no-warmup", "-lv", "4"]).need()
    assert not confirm_flags(machine, embedded_server, ["--draft-max", "4"]).need()
    assert not confirm_flags(machine, embedded_server, ["--no-such-flag"]).need()


@pytest.mark.vulkan
def test_llvmpipe_is_listed_when_it_is_forced(embedded_server: str, vulkan: Mapping[str, str]) -> None:
    with Machine({"PATH": "/usr/bin:/bin", **vulkan}) as machine:
        binary = collect_binary(machine, embedded_server, "llama-server")
    (device,) = binary.devices.need()
    assert device.name == "Vulkan0"
    assert "llvmpipe" in device.description
    assert device.total_bytes > 0


@pytest.mark.fullengine
def test_every_program_of_the_full_build(full_engine: str, machine: Machine) -> None:
    facts = collect_binaries(machine, bin_dir=full_engine)
    found = {b.role: b for b in facts.found.need() if b.path.startswith(full_engine)}
    expected = {"llama-completion", "llama-bench", "llama-fit-params", "llama-gguf-split", "llama-quantize"}
    assert expected <= set(found)
    for binary in found.values():
        assert binary.runs.need(), binary.path
        assert binary.failures == (), binary.path
        assert binary.capabilities.need().options
    assert isinstance(found["llama-quantize"].version.text, Unknown)
    assert found["llama-completion"].version.semver.need() == "0.5.0"
    assert found["llama-completion"].capabilities.need().grammar == "common"
    assert found["llama-bench"].capabilities.need().takes_value("-p")
    assert found["llama-completion"].devices.need() == found["llama-bench"].devices.need()
