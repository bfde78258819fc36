"""Each check with facts that pass, facts that fail, and facts that are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from llamaops.checks import registry
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinariesFacts, BinaryFacts
from llamaops.facts.binary_types import Inherited
from llamaops.facts.device_list import Device
from llamaops.facts.libraries import Library, MissingLibrary
from llamaops.facts.run_failure import FailureKind, RunFailure
from llamaops.facts.version_text import parse_version
from llamaops.schema.fact import Known, Source, Unknown
from llamaops.schema.finding import Finding

SOURCE = Source(kind="command", name="llama-server --version", evidence="ev-dev")
GAP = Unknown(why="timed_out", detail="it hung", source=SOURCE)
CLEAN = Inherited(variables=(), config_files=())
VULKAN = Device(name="Vulkan0", description="A card", total_bytes=1, free_bytes=1)
BLAS = Device(name="BLAS", description="OpenBLAS", total_bytes=0, free_bytes=0)


def known(value: Any) -> Known[Any]:
    return Known(value=value, source=SOURCE)


def binary(**changed: Any) -> BinaryFacts:
    facts = BinaryFacts(
        role="llama-server",
        path="/opt/llama-server",
        found_by="PATH",
        real_path="/opt/llama-server",
        wrapper=False,
        executes=known("/opt/llama-server"),
        elf=GAP,
        size_bytes=known(5),
        sha256=known("0" * 64),
        libraries=known(()),
        missing_libraries=known(()),
        backends=GAP,
        installed=GAP,
        runs=known(True),
        version=parse_version("version: 0.7.0 (build 11669, commit 1a2b3c4d)\n", SOURCE),
        capabilities=GAP,
        devices=known((VULKAN,)),
        inherited=CLEAN,
    )
    return msgspec.structs.replace(facts, **changed)


def binaries(*found: BinaryFacts, **changed: Any) -> BinariesFacts:
    facts = BinariesFacts(found=known(found), searched=("/usr/bin",), inherited=CLEAN)
    return msgspec.structs.replace(facts, **changed)


def judge(id_: str, *groups: object) -> Finding | None:
    found = next(check for check in registry.all_checks(["binary"]) if check.id == id_)
    given: Mapping[type, object] = {type(group): group for group in groups}
    return registry.run_check(found, given)


def finding(id_: str, *groups: object) -> Finding:
    result = judge(id_, *groups)
    assert result is not None
    return result


def failure(kind: FailureKind, **fields: Any) -> RunFailure:
    return RunFailure(kind=kind, probe="--help", detail=f"/opt/llama-server --help: {kind}", **fields)


MISSING = known((MissingLibrary(name="libgomp.so.1", needed_by="/x", package="package libgomp1"),))
HASHLESS = parse_version("version: 0.7.0 (build 11669, commit Debian)\n", SOURCE)


def library(name: str, path: str, how: str = "linked") -> Library:
    return Library(name=name, path=path, how=how, size_bytes=known(1), sha256=known("1"))  # type: ignore[arg-type]  # one of three words


ASKED = AskedFacts(expect_device="vulkan")
CASES: dict[str, tuple[tuple[object, ...], tuple[object, ...], tuple[object, ...]]] = {
    "binary.is-found": (
        (binaries(binary()),),
        (binaries(binary(role="llama-quantize")),),
        (binaries(found=GAP),),
    ),
    "binary.program-runs": (
        (binary(),),
        (binary(runs=known(False), failures=(failure("illegal_instruction", evidence=("ev-1",)),)),),
        (binary(runs=GAP),),
    ),
    "binary.all-run": (
        (binaries(binary(), binary(role="llama-cli")),),
        (binaries(binary(), binary(role="llama-cli", failures=(failure("timed_out"),))),),
        (binaries(binary(runs=GAP)),),
    ),
    "binary.has-its-libraries": (
        (binary(),),
        (binary(missing_libraries=MISSING),),
        (binary(missing_libraries=GAP),),
    ),
    "binary.all-have-their-libraries": (
        (binaries(binary()),),
        (binaries(binary(missing_libraries=GAP), binary(role="main", missing_libraries=MISSING)),),
        (binaries(binary(), binary(role="main", missing_libraries=GAP)),),
    ),
    "binary.names-its-build": (
        (binary(),),
        (binary(version=HASHLESS),),
        (binary(version=msgspec.structs.replace(HASHLESS, text=GAP)),),
    ),
    "binary.libraries-agree": (
        (binary(libraries=known((library("libllama.so.0", "/opt/libllama.so.0.7.0"),))),),
        (binary(libraries=known((library("libllama.so.0", "/usr/lib/libllama.so.0.6.0"),))),),
        (binary(libraries=GAP),),
    ),
    "binary.lists-expected-device": (
        (binary(), ASKED),
        (binary(devices=known(())), ASKED),
        (binary(devices=GAP), ASKED),
    ),
    "binary.any-lists-expected-device": (
        (binaries(binary(devices=GAP), binary(role="main")), ASKED),
        (binaries(binary(devices=known((BLAS,)))), ASKED),
        (binaries(binary(devices=known(())), binary(role="main", devices=GAP)), ASKED),
    ),
}


@pytest.mark.parametrize("id_", CASES)
def test_passed_failed_unknown(id_: str) -> None:
    passed, failed, unknown = (finding(id_, *groups) for groups in CASES[id_])
    assert (passed.status, failed.status, unknown.status) == ("passed", "failed", "unknown")
    assert passed.remedy is None
    assert failed.remedy
    assert unknown.why == "timed_out"


def test_the_failure_decides_the_remedy_and_brings_its_evidence() -> None:
    facts = binary(runs=known(False), failures=(failure("illegal_instruction", evidence=("ev-1",)),))
    found = finding("binary.program-runs", facts)
    assert "instructions" in (found.remedy or "")
    assert found.evidence == ("ev-1",)
    assert "illegal instruction" in found.summary


def test_the_missing_package_is_the_remedy() -> None:
    found = finding("binary.has-its-libraries", binary(missing_libraries=MISSING))
    assert found.remedy == "install package libgomp1"
    assert "libgomp.so.1" in found.summary


def test_a_shadowed_program_that_is_broken_is_not_in_use() -> None:
    broken = binary(path="/old/llama-server", failures=(failure("crashed"),), runs=known(False))
    assert finding("binary.all-run", binaries(binary(), broken)).status == "passed"
    assert finding("binary.all-run", binaries(broken, binary())).status == "failed"


def test_a_device_prefix_counts_and_a_math_library_does_not() -> None:
    two = binary(devices=known((BLAS, VULKAN)))
    layers = AskedFacts(n_gpu_layers="99")
    assert finding("binary.lists-expected-device", two, layers).status == "passed"
    only_blas = binary(devices=known((BLAS,)))
    assert finding("binary.lists-expected-device", only_blas, layers).status == "failed"
    assert finding("binary.lists-expected-device", two, AskedFacts(expect_device="CUDA")).status == "failed"
    assert finding("binary.lists-expected-device", two, ASKED).evidence == ("ev-dev",)


@pytest.mark.parametrize(
    "asked", [AskedFacts(), AskedFacts(n_gpu_layers="0"), AskedFacts(expect_device="CPU")]
)
def test_no_device_asked_for_is_no_finding(asked: AskedFacts) -> None:
    assert judge("binary.lists-expected-device", binary(), asked) is None
    assert judge("binary.any-lists-expected-device", binaries(binary()), asked) is None


def test_who_executes() -> None:
    found = finding("binary.identity-is-known", binary(wrapper=True, executes=known("/real/llama-server")))
    assert (found.status, found.severity) == ("passed", "advisory")
    assert "/real/llama-server" in found.summary
    unknown = finding("binary.identity-is-known", binary(wrapper=True, executes=GAP))
    assert unknown.status == "unknown"


def test_one_library_from_two_places_is_a_difference() -> None:
    libraries = known((
        library("libggml-base.so.0", "/opt/libggml-base.so.0"),
        library("libggml-base.so", "/usr/lib/libggml-base.so.0", "mapped"),
        library("libggml-vulkan.so", "/opt/libggml-vulkan.so", "plugin"),
    ))  # fmt: skip
    found = finding("binary.libraries-agree", binary(libraries=libraries))
    assert found.status == "failed"
    assert "/usr/lib/libggml-base.so.0" in found.summary


def test_two_builds_among_the_programs_in_use() -> None:
    other = binary(role="llama-cli", path="/usr/bin/llama-cli", version=HASHLESS)
    assert finding("binary.installations-agree", binaries(binary(), other)).status == "failed"
    assert finding("binary.installations-agree", binaries(binary())).status == "passed"
    assert judge("binary.installations-agree", binaries()) is None


@pytest.mark.parametrize(
    "inherited",
    [
        Inherited(variables=("LLAMA_ARG_CTX_SIZE",), config_files=()),
        Inherited(variables=(), config_files=("/etc/llama.cpp/config.ini",)),
    ],
)
def test_what_is_inherited_is_told(inherited: Inherited) -> None:
    name = (*inherited.variables, *inherited.config_files)[0]
    for id_, group in (
        ("binary.environment-is-clean", binaries(binary(), inherited=inherited)),
        ("binary.run-environment-is-clean", binary(inherited=inherited)),
    ):
        found = finding(id_, group)
        assert (found.status, found.severity) == ("failed", "advisory")
        assert name in found.summary
    assert finding("binary.environment-is-clean", binaries(binary())).status == "passed"


def test_a_program_without_version_names_no_build_and_that_is_no_finding() -> None:
    gap = Unknown(why="unsupported", detail="no --version", source=SOURCE)
    assert (
        judge("binary.names-its-build", binary(version=msgspec.structs.replace(HASHLESS, text=gap))) is None
    )


def test_without_any_program_only_one_check_speaks() -> None:
    spoken = {
        check.id: judge(check.id, binaries(), ASKED)
        for check in registry.all_checks(["binary"])
        if BinariesFacts in check.inputs().values()
    }
    failed = [id_ for id_, found in spoken.items() if found is not None and found.status != "passed"]
    assert failed == ["binary.is-found"]
