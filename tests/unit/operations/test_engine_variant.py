from __future__ import annotations

from collections.abc import Mapping

import pytest

from llamaops.errors import FetchError
from llamaops.operations.engine_variant import chosen_variant, engine_variants, why_chosen
from llamaops.system.cpu_flags import CPUINFO
from tests.fakes import processors
from tests.fakes.system import FakeSystem

NEW, OLD = "engine-b10434", "engine-b10068"
GLIBC: Mapping[str, str] = {"CS_GNU_LIBC_VERSION": "glibc 2.39"}


def system(
    cpuinfo: str | OSError, *, machine: str = "x86_64", glibc: Mapping[str, str] = GLIBC
) -> FakeSystem:
    return FakeSystem(files={CPUINFO: cpuinfo}, machine=machine, confstrs=glibc)


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (processors.SAPPHIRE_RAPIDS, NEW),
        (processors.TURIN, NEW),  # no AMX: the engine asks the kernel for it first
        (processors.GENOA, OLD),
        (processors.CASCADE_LAKE, OLD),
        (processors.ALDER_LAKE, OLD),  # AVX-VNNI without AVX-512
        (processors.HASWELL, OLD),
    ],
)
def test_the_newest_build_that_the_processor_runs_is_chosen(cpuinfo: str, name: str) -> None:
    assert chosen_variant(system(cpuinfo)).name == name


@pytest.mark.parametrize(
    "flag", ["avx_vnni", "avx512_bf16", "avx512_vnni", "avx512vl", "avx512dq", "avx512bw"]
)
def test_one_missing_flag_rules_the_newer_build_out(flag: str) -> None:
    cpuinfo = processors.SAPPHIRE_RAPIDS.replace(f" {flag} ", " ")
    newest = engine_variants(system(cpuinfo))[0]
    assert (newest.name, newest.missing_flags, newest.fits) == (NEW, (flag,), False)
    assert chosen_variant(system(cpuinfo)).name == OLD


@pytest.mark.parametrize(
    ("cpuinfo", "lacks"),
    [
        (
            processors.SANDY_BRIDGE,
            "engine-b10068 needs avx2, fma, f16c, bmi2, abm, which this processor lacks",
        ),
        (
            processors.NEHALEM,
            "engine-b10068 needs avx, avx2, fma, f16c, bmi2, abm, which this processor lacks",
        ),
    ],
)
def test_a_processor_that_runs_neither_is_told_what_it_lacks_and_what_to_do(cpuinfo: str, lacks: str) -> None:
    with pytest.raises(FetchError) as caught:
        chosen_variant(system(cpuinfo))
    assert caught.value.what.startswith(f"no embedded engine runs on this processor: {lacks}")
    assert "--bin-dir" in (caught.value.hint or "")
    assert "build it here" in (caught.value.hint or "")


@pytest.mark.parametrize("cpuinfo", ["", FileNotFoundError(2, "No such file or directory")])
def test_unknown_flags_are_no_fit(cpuinfo: str | OSError) -> None:
    found = engine_variants(system(cpuinfo))
    assert [(one.fits, one.missing_flags) for one in found] == [(False, None)] * 2
    with pytest.raises(FetchError, match=r"/proc/cpuinfo does not say which instruction sets"):
        chosen_variant(system(cpuinfo))


@pytest.mark.parametrize(
    ("fake", "message"),
    [
        (system(processors.GRAVITON, machine="aarch64"), "for Linux x86_64, and this is Linux aarch64"),
        (system(processors.NEHALEM, glibc={}), "this system has another C library"),
    ],
)
def test_the_platform_is_judged_before_the_processor(fake: FakeSystem, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        chosen_variant(fake)


@pytest.mark.parametrize(
    ("cpuinfo", "name", "why"),
    [
        (
            processors.SAPPHIRE_RAPIDS,
            NEW,
            "engine-b10434 is the newest embedded engine that this processor can run",
        ),
        (
            processors.GENOA,
            OLD,
            (
                "engine-b10068 is the newest embedded engine that this processor can run; "
                "engine-b10434 needs avx_vnni, which this processor lacks"
            ),
        ),
        (processors.SAPPHIRE_RAPIDS, OLD, "engine-b10068 was named; a newer embedded engine runs on this"),
        (
            processors.GENOA,
            NEW,
            "engine-b10434 needs avx_vnni, which this processor lacks: it may be ended by",
        ),
        ("", OLD, "engine-b10068 needs instruction sets that /proc/cpuinfo does not confirm here"),
    ],
)
def test_the_choice_is_explained(cpuinfo: str, name: str, why: str) -> None:
    assert (why_chosen(name, system(cpuinfo)) or "").startswith(why)


def test_what_has_no_builds_needs_no_explanation() -> None:
    assert why_chosen("model", system(processors.GENOA)) is None
