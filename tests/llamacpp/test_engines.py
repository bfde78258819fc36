"""The engines that the other tests rely on are what the catalogue says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from llamaops.operations.build_engine import TARGETS
from llamaops.schema.bounds import Bounds
from llamaops.system.catalogue import Artefact
from llamaops.system.machine import Machine

BOUNDS = Bounds(wall_s=60)


@pytest.mark.llamacpp
def test_the_embedded_engine_starts_and_is_the_commit_of_the_catalogue(
    embedded_server: str, embedded_entry: Artefact
) -> None:
    with Machine() as machine:
        done = machine.run([embedded_server, "--version"], bounds=BOUNDS)
    assert done.ok
    # It was built from a shallow clone, so it counts itself as build 1; the package's version has the number.
    said = done.stdout.text + done.stderr.text
    assert re.search(rf"\(([^)]*commit )?{embedded_entry.commit}\)", said)


@pytest.mark.llamacpp
def test_the_embedded_model_is_a_gguf_file(embedded_model: str) -> None:
    path = Path(embedded_model)
    assert path.stat().st_size == 98362432
    with path.open("rb") as file:
        assert file.read(4) == b"GGUF"


@pytest.mark.fullengine
def test_the_full_engine_has_every_program_and_finds_its_libraries(full_engine: str) -> None:
    with Machine() as machine:
        for name in TARGETS:
            program = os.path.join(full_engine, name)
            done = machine.run([program, "--help"], bounds=BOUNDS)
            assert "usage" in (done.stdout.text + done.stderr.text).lower(), name
        version = machine.run([os.path.join(full_engine, "llama-completion"), "--version"], bounds=BOUNDS)
    assert "0.5.0" in version.stdout.text + version.stderr.text


@pytest.mark.llamacpp
@pytest.mark.vulkan
def test_llvmpipe_is_listed_only_when_it_is_asked_for(
    embedded_server: str, vulkan: Mapping[str, str]
) -> None:
    with Machine() as machine:
        argv = [embedded_server, "--list-devices"]
        with_it = machine.run(argv, bounds=BOUNDS, env=machine.child_environment(vulkan))
        without = machine.run(argv, bounds=BOUNDS)
    assert "Vulkan0" in with_it.stdout.text + with_it.stderr.text
    assert "llvmpipe" not in without.stdout.text + without.stderr.text
