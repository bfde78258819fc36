"""What the catalogue says of the embedded engine's builds, held against the builds themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llamaops.operations.engine_variant import engine_variants
from llamaops.operations.fetch import embedded
from llamaops.system.catalogue import Artefact, variants
from llamaops.system.machine import Machine
from tests.conftest import CACHE, ENVIRON
from tests.fakes.tiny_model import WORDS, write_tiny_model

Fetched = Callable[[str], str]

# Instructions and registers that only processors with the flag have, as objdump prints them; first those
# that a build needs, then those of newer processors that none may contain without saying so.
SIGNS = {
    "avx": r"%ymm\d",
    "avx2": r"\tvpmaddubsw [^\n]*%ymm",
    "fma": r"\tvfn?m(?:add|sub)\d+[ps][sd] ",
    "f16c": r"\tvcvtp[hs]2p[hs] ",
    "bmi2": r"\t(?:pdep|pext|sarx|shlx|shrx|rorx|mulx|bzhi) ",
    "abm": r"\tlzcnt ",
    "avx512f": r"%zmm\d",
    "avx512bw": r"\tv(?:permi2w|permt2w|pmovwb|movdqu8) ",
    "avx512dq": r"\tv(?:pmullq|extractf32x8|insertf32x8) ",
    "avx512vl": r"%[xy]mm(?:1[6-9]|2\d|3[01])\b",
    "avx512_vnni": r"(?:\{evex\} |\t)vpdp(?:busd|wssd)s? [^\n]*(?:%zmm|%[xy]mm(?:1[6-9]|2\d|3[01]))",
    "avx512_bf16": r"\tv(?:dpbf16ps|cvtneps2bf16) ",
    "avx_vnni": r"\{vex\} vpdp",
    "avx512vbmi": r"\tvperm(?:b|i2b|t2b) ",
    "avx512_vbmi2": r"\tvp(?:compress|expand)[bw] |\tvpsh[lr]d",
    "avx512_bitalg": r"\tvpopcnt[bw] ",
    "avx512_vpopcntdq": r"\tvpopcnt[dq] ",
    "avx512ifma": r"\tvpmadd52",
    "avx512cd": r"\tvp(?:conflict|lzcnt)",
    "avx512_fp16": r"\tv\w+[ps]h (?!.*cvt)",
    "gfni": r"\tv?gf2p8",
    "avx_vnni_int8": r"\tvpdpb[su][su]ds? [^\n]*",
}
UNMISTAKABLE = set(SIGNS) - {"avx512_fp16", "avx_vnni_int8"}


def entry(name: str) -> Artefact:
    return variants("engine")[name]


def disassembled(path: str) -> str:
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("objdump (binutils) is missing")
    argv = [objdump, "--disassemble", "--no-show-raw-insn", path]
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=100, text=True).stdout


def flags_in(code: str) -> set[str]:
    return {flag for flag in UNMISTAKABLE if re.search(SIGNS[flag], code)}


@pytest.mark.llamacpp
@pytest.mark.parametrize("name", variants("engine"))
def test_the_flags_of_the_catalogue_are_those_of_the_code(name: str, fetched: Fetched) -> None:
    folder = Path(fetched(name)).parent
    needs = entry(name).needs
    assert needs is not None
    assert flags_in(disassembled(str(folder / "libggml-cpu.so.0"))) == set(needs.cpu_flags)
    # Everything else is for any x86-64 processor; the largest files are left out, they take a minute.
    for other in ("libggml-base.so.0", "libggml.so.0", "libllama.so.0"):
        assert flags_in(disassembled(str(folder / other))) == set(), other


@pytest.mark.llamacpp
@pytest.mark.parametrize("name", variants("engine"))
def test_both_licences_come_with_the_programs(name: str, fetched: Fetched) -> None:
    licences = Path(fetched(name)).parents[1] / "licenses"
    assert "MIT" in (licences / "LLAMA_CPP_LICENSE.txt").read_text()
    assert "Apache" in (licences / "VULKAN_LOADER_LICENSE.txt").read_text()


def smoke(server: str, model: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Run the command and return its exit status and document."""
    argv = [
        sys.executable, "-m", "llamaops", "smoke", "--bin-dir", os.path.dirname(server), "--model", model,
        "--max-tokens", str(len(WORDS)), "--records", str(folder / "records"), "--format", "json",
    ]  # fmt: skip
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
    return done.returncode, msgspec.json.decode(done.stdout, type=dict[str, Any])


@pytest.mark.llamacpp
def test_b10434_computes_with_an_f32_model_on_any_processor_with_avx512(
    b10434_server: str, tmp_path: Path
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", type_name="F32")
    status, document = smoke(b10434_server, str(model), tmp_path)
    assert status == 0
    assert " ".join(WORDS) in str(document)


@pytest.mark.llamacpp
def test_b10434_computes_with_a_quantized_model_exactly_where_it_fits(
    b10434_server: str, tmp_path: Path
) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf", type_name="Q8_0")
    with Machine() as machine:
        (variant,) = (one for one in engine_variants(machine) if one.name == "engine-b10434")
    status, document = smoke(b10434_server, str(model), tmp_path)
    if variant.fits:
        assert status == 0
        assert " ".join(WORDS) in str(document)
    else:
        assert status == 3
        assert "SIGILL" in str(document)


@pytest.mark.llamacpp
def test_the_chosen_engine_computes_with_the_embedded_model(
    embedded_server: str, embedded_entry: Artefact, embedded_model: str, tmp_path: Path
) -> None:
    status, document = smoke(embedded_server, embedded_model, tmp_path)
    assert status == 0
    assert embedded_entry.commit is not None
    assert embedded_entry.commit in str(document)


@pytest.mark.llamacpp
def test_the_cache_gives_the_chosen_engine_though_another_build_lies_there(
    embedded_server: str, b10434_server: str
) -> None:
    with Machine(ENVIRON) as machine:
        found = embedded(CACHE, machine)
    assert found is not None
    assert found.server == embedded_server
    assert found == embedded(CACHE)
