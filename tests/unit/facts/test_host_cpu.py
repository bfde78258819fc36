from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.host import collect_host
from llamaops.facts.host_cpu import (
    INSTRUCTION_SETS,
    family_of,
    parse_cpuinfo,
    parse_load,
    parse_ppc_vectors,
    parse_ranges,
    parse_steal,
)
from llamaops.schema.fact import Unknown
from tests.fakes import hosts


def test_flags_are_those_that_every_core_has() -> None:
    hybrid = hosts.x86_cpuinfo().replace(" avx512f avx512dq", "", 1)
    cpu = collect_host(hosts.fake(hosts.common_files(cpuinfo=hybrid))).cpu
    assert "avx2" in cpu.flags.need()
    assert "avx512f" not in cpu.flags.need()
    assert "avx512f" in cpu.missing_flags.need()


def test_arm_tells_numbers_and_features() -> None:
    system = hosts.fake(hosts.common_files(cpuinfo=hosts.GRACE_CPUINFO), machine="aarch64")
    cpu = collect_host(system).cpu
    assert cpu.model.need() == "Neoverse V2"
    assert cpu.flags.need() == ("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2")
    assert cpu.missing_flags.need() == ("sme", "sme2")
    assert cpu.threads.need() == 4
    assert isinstance(cpu.cores, Unknown)


def test_riscv_extensions_are_split() -> None:
    text = "processor\t: 0\nhart\t: 0\nisa\t: rv64imafdcv_zicbop_zfh_zvfh\nuarch\t: spacemit,x60\n\n"
    cpu = collect_host(hosts.fake(hosts.common_files(cpuinfo=text), machine="riscv64")).cpu
    assert cpu.flags.need() == ("v", "zfh", "zvfh", "zicbop")
    assert cpu.model.need() == "spacemit,x60"


def test_an_extension_that_only_holds_the_letter_is_not_the_vector_unit() -> None:
    text = "processor\t: 0\nisa\t: rv64imafdc_zve32x_svinval\n\n"
    cpu = collect_host(hosts.fake(hosts.common_files(cpuinfo=text), machine="riscv64")).cpu
    assert cpu.flags.need() == ()


def test_power_tells_its_vector_units_in_the_auxiliary_vector() -> None:
    vector = b"".join(word.to_bytes(8, "little") for word in (16, 0x10000080, 26, 0x20000, 0, 0))
    assert parse_ppc_vectors(vector) == ("altivec", "vsx", "mma")
    with pytest.raises(ParseError):
        parse_ppc_vectors(vector[32:])


def test_an_unknown_architecture_is_unsupported() -> None:
    cpu = collect_host(hosts.fake(hosts.common_files(), machine="sparc64")).cpu
    assert isinstance(cpu.flags, Unknown)
    assert cpu.flags.why == "unsupported"


@pytest.mark.parametrize(
    ("machine", "family"), [("x86_64", "x86"), ("armv7l", "arm"), ("ppc64le", "ppc"), ("mips", "mips")]
)
def test_families(machine: str, family: str) -> None:
    assert family_of(machine) == family


@pytest.mark.parametrize(("text", "many"), [("0\n", 1), ("0-3,8", 5), ("1,3,5", 3)])
def test_ranges(text: str, many: int) -> None:
    assert len(parse_ranges(text)) == many


@pytest.mark.parametrize("text", ["", "0-", "a-b", "0-99999999999", "-1"])
def test_ranges_that_are_none(text: str) -> None:
    with pytest.raises(ParseError):
        parse_ranges(text)


def test_affinity_narrows_the_processors() -> None:
    cpu = collect_host(hosts.fake({**hosts.bare_metal().files, **hosts.common_files(allowed="2-3")})).cpu
    assert cpu.affinity_cpus.need() == 2
    assert cpu.effective_cpus.need() == 2


@pytest.mark.parametrize("parse", [parse_cpuinfo, parse_load, parse_steal])
@pytest.mark.parametrize("text", ["", "\n\n", "nonsense"])
def test_other_text_is_unparsed(parse: object, text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)  # type: ignore[operator]  # each is a function of a text


def test_steal_is_a_share() -> None:
    assert parse_steal("cpu  1 1 1 1 1 1 1 1 0 0\n") == 0.125
    assert parse_steal("cpu  0 0 0 0 0 0 0 0 0 0\n") == 0.0


def test_no_instruction_set_is_named_twice() -> None:
    for names in INSTRUCTION_SETS.values():
        assert len(set(names)) == len(names)
