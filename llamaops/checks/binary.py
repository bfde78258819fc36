"""Do the programs run, know their build, have their libraries, and see the device asked for?

`binary.all-*` judge every program that would be used (the first of each role); the others judge the one
program of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinariesFacts, BinaryFacts
from llamaops.facts.binary_types import Inherited
from llamaops.facts.device_list import Device
from llamaops.facts.run_failure import FailureKind, RunFailure
from llamaops.schema.fact import Known, Unknown

GENERATING = frozenset({"llama-server", "llama-completion", "llama-cli", "main"})
"""Roles that can load a model and generate."""
NO_ACCELERATOR = frozenset({"BLAS", "ZenDNN", "CPU", "AMX"})
"""Names that a device list may hold although no memory of a device is behind them."""

_INSTALL = (
    "install llama.cpp or build it, and put its folder on PATH or name it with --bin-dir; "
    "`llamaops fetch` gets a small embedded server"
)
_RUN_REMEDY = "run the command shown yourself and read its output; its evidence is in this record"
_REMEDIES: dict[FailureKind, str] = {
    "missing_library": "install what provides the library; llama.cpp's own belong beside the program",
    "library_too_old": "it was built on a newer system: take another build, or build it here",
    "undefined_symbol": "program and libraries are of different builds: remove the older libllama and "
    "libggml from LD_LIBRARY_PATH and the loader's folders, or reinstall both together",
    "illegal_instruction": "the build uses instructions that this processor lacks: take a build with CPU "
    "variants (GGML_CPU_ALL_VARIANTS), or build it here with GGML_NATIVE=ON",
    "crashed": "run it under a debugger, or try another build; look at the last lines of its output",
    "timed_out": "a driver that does not answer is the usual cause: try the vendor's own tool "
    "(nvidia-smi, vulkaninfo), then look into the kernel's log",
    "not_executable": "chmod +x the file, and check that its file system is not mounted noexec",
    "wrong_architecture": "take a build for this machine's architecture",
    "bad_interpreter": "the script's interpreter or the program's loader is not there: musl and glibc builds "
    "cannot stand in for each other",
    "not_found": "a link or wrapper leads to a file that is not there: reinstall it",
    "config_file": "a value in a configuration file does not parse: correct /etc/llama.cpp/config.ini, which "
    "every program reads, --version included",
    "engine_variable": "unset the variable, or correct its value",
}


@check(
    "binary.is-found",
    title="A program that can generate is installed",
    boundary="binary",
    remedy=_INSTALL,
)
def is_found(binaries: BinariesFacts) -> Verdict:
    """Ask for one of llama-server, llama-completion, llama-cli or main."""
    found = binaries.found.need()
    usable = sorted({binary.role for binary in found if binary.role in GENERATING})
    folders = f"{len(binaries.searched)} folders"
    if usable:
        summary = f"{len(found)} llama.cpp programs in {folders}, {', '.join(usable)} among them"
    else:
        left = f"; left alone, since they do not speak of llama.cpp: {', '.join(binaries.not_run)}"
        summary = f"none of {', '.join(sorted(GENERATING))} in {folders}" + (left if binaries.not_run else "")
    return Verdict(
        holds=bool(usable),
        summary=summary,
        expected="a program that can load a model and generate",
        observed=", ".join(usable) or "none",
    )


def in_use(binaries: BinariesFacts) -> tuple[BinaryFacts, ...]:
    """Return the programs that would be used: the first of each role."""
    first: dict[str, BinaryFacts] = {}
    for binary in binaries.found.need():
        first.setdefault(binary.role, binary)
    return tuple(first.values())


@check("binary.all-run", title="Every program in use runs", boundary="binary", remedy=_RUN_REMEDY)
def all_run(binaries: BinariesFacts) -> Verdict | NotApplicable:
    """Ask that the first program of each role started, ended by itself, and gave a known answer."""
    programs = in_use(binaries)
    if not programs:
        return NotApplicable("no program was found")
    failures = [failure for binary in programs for failure in binary.failures]
    if not failures:
        for binary in programs:
            binary.runs.need()
    return _judge_runs([binary.path for binary in programs], failures)


@check("binary.program-runs", title="The program runs", boundary="binary", remedy=_RUN_REMEDY)
def runs(binary: BinaryFacts) -> Verdict:
    """Ask that it started, ended by itself, and gave an answer that we know."""
    if not binary.failures:
        binary.runs.need()
    return _judge_runs([binary.path], binary.failures)


def _judge_runs(paths: list[str], failures: Iterable[RunFailure]) -> Verdict:
    failed = list(failures)
    if not failed:
        return Verdict(
            holds=True,
            summary=f"{len(paths)} of {len(paths)} ran and answered: {_short(paths)}",
            expected="ends by itself with an answer that we know",
            observed="it does",
        )
    worst = failed[0]
    more = f" (and {len(failed) - 1} more failed probes)" if len(failed) > 1 else ""
    return Verdict(
        holds=False,
        summary=f"{worst.kind.replace('_', ' ')}: {worst.detail}{more}",
        expected="ends by itself with an answer that we know",
        observed="; ".join(dict.fromkeys(failure.detail for failure in failed)),
        remedy=_REMEDIES.get(worst.kind),
        evidence=tuple(dict.fromkeys(id_ for failure in failed for id_ in failure.evidence)),
    )


def _short(paths: list[str], limit: int = 3) -> str:
    more = f" and {len(paths) - limit} more" if len(paths) > limit else ""
    return ", ".join(paths[:limit]) + more


@check(
    "binary.all-have-their-libraries",
    title="Every program in use finds its libraries",
    boundary="binary",
    remedy=_REMEDIES["missing_library"],
)
def all_have_their_libraries(binaries: BinariesFacts) -> Verdict | NotApplicable:
    """Ask that the loader finds every library of the first program of each role."""
    programs = in_use(binaries)
    return _judge_libraries(programs) if programs else NotApplicable("no program was found")


@check(
    "binary.has-its-libraries",
    title="The program finds its libraries",
    boundary="binary",
    remedy=_REMEDIES["missing_library"],
)
def has_its_libraries(binary: BinaryFacts) -> Verdict:
    """Ask that the loader finds every library that it needs."""
    return _judge_libraries([binary])


def _judge_libraries(programs: Iterable[BinaryFacts]) -> Verdict:
    missing: dict[str, str | None] = {}
    unknown: Unknown | None = None
    for binary in programs:
        if isinstance(binary.missing_libraries, Unknown):
            unknown = binary.missing_libraries
        else:
            missing.update({library.name: library.package for library in binary.missing_libraries.value})
    if unknown is not None and not missing:
        unknown.need()
    named = [f"{name} ({package})" if package else name for name, package in missing.items()]
    packages = [package for package in dict.fromkeys(missing.values()) if package]
    return Verdict(
        holds=not missing,
        summary=f"missing: {', '.join(named)}" if named else "the loader finds every library",
        expected="every needed library found",
        observed=", ".join(named) or "all found",
        remedy=f"install {', '.join(packages)}" if packages and len(packages) == len(missing) else None,
    )


@check(
    "binary.names-its-build",
    title="The program names the commit it was built from",
    boundary="binary",
    severity="advisory",
    remedy="keep the digest in this record with your results: it is the only identity that this build has",
)
def names_its_build(binary: BinaryFacts) -> Verdict | NotApplicable:
    """Ask for a commit hash; builds from archives have none, distributions put a word in its place."""
    text = binary.version.text
    if isinstance(text, Unknown) and text.why == "unsupported":
        return NotApplicable(text.detail)
    line = text.need()
    commit = binary.version.commit
    is_hash = isinstance(commit, Known) and re.fullmatch(r"[0-9a-f]{6,40}", commit.value) is not None
    return Verdict(
        holds=is_hash,
        summary=f"`{line}` names a commit" if is_hash else f"`{line}` names no commit",
        expected="a commit hash",
        observed=commit.value if isinstance(commit, Known) else commit.detail,
    )


@check(
    "binary.identity-is-known",
    title="It is known which file executes",
    boundary="binary",
    severity="advisory",
    remedy="name the program itself instead of the wrapper; the digest of a script identifies nothing",
)
def identity_is_known(binary: BinaryFacts) -> Verdict:
    """Ask for the ELF file behind links, scripts and launchers."""
    executes = binary.executes.need()
    through = f"{binary.path} leads to {executes}" if executes != binary.path else executes
    return Verdict(
        holds=True,
        summary=f"{through}, a script in between" if binary.wrapper else through,
        expected="the file that executes",
        observed=executes,
    )


@check(
    "binary.libraries-agree",
    title="Program and libraries are of one build",
    boundary="binary",
    severity="advisory",
    remedy="remove the other installation from LD_LIBRARY_PATH and the loader's folders, or reinstall",
)
def libraries_agree(binary: BinaryFacts) -> Verdict | NotApplicable:
    """Compare the version said with that of libllama's file, and the libraries linked with those loaded."""
    libraries = binary.libraries.need()
    if not any(library.how != "plugin" for library in libraries):
        return NotApplicable("the program holds its libraries itself")
    differences = []
    places: dict[str, set[str]] = {}
    for library in libraries:
        if library.how != "plugin":
            places.setdefault(re.split(r"\.(?:so|dylib)", library.name)[0], set()).add(library.path)
    differences += [
        f"{name} from {' and '.join(sorted(paths))}" for name, paths in places.items() if len(paths) > 1
    ]
    semver = binary.version.semver
    for library in libraries:
        found = re.search(r"/libllama\.so\.(\d+\.\d+\.\d+)$", library.path)
        if found and isinstance(semver, Known) and found[1] != semver.value:
            differences.append(f"the program says {semver.value}, its libllama is {found[1]}")
    return Verdict(
        holds=not differences,
        summary="; ".join(differences) or f"{len(libraries)} libraries, none of another build seen",
        expected="one build",
        observed="; ".join(differences) or "no difference seen",
    )


@check(
    "binary.installations-agree",
    title="All programs in use are of one build",
    boundary="binary",
    severity="advisory",
    remedy="name one folder with --bin-dir, so that measurements and server come from the same build",
)
def installations_agree(binaries: BinariesFacts) -> Verdict | NotApplicable:
    """Compare what the programs in use say about their build."""
    builds: dict[str, list[str]] = {}
    for binary in in_use(binaries):
        if isinstance(binary.version.text, Known):
            builds.setdefault(binary.version.text.value, []).append(binary.path)
    if not builds:
        return NotApplicable("no program named its build")
    said = "; ".join(f"{text}: {_short(paths)}" for text, paths in builds.items())
    return Verdict(
        holds=len(builds) == 1,
        summary=said if len(builds) > 1 else f"all say {next(iter(builds))}",
        expected="one build",
        observed=f"{len(builds)} builds",
    )


def _asks_for_device(asked: AskedFacts) -> str | None:
    """Return what the run asks of a device, or None when it asks for none."""
    if asked.expect_device:
        return None if asked.expect_device.upper() in {"CPU", "NONE"} else asked.expect_device
    layers = (asked.n_gpu_layers or "auto").strip()
    if layers in {"auto", "-1", "0"}:
        return None
    return "any accelerator"


def _matching(devices: Iterable[Device], wanted: str) -> list[Device]:
    return [
        device
        for device in devices
        if device.name not in NO_ACCELERATOR
        and (wanted == "any accelerator" or device.name.lower().startswith(wanted.lower()))
    ]


_DEVICE_REMEDY = (
    "check the driver and the permissions of the device nodes, and that this build has the back end: "
    "a plugin whose driver library is missing is passed over without a word"
)


@check(
    "binary.lists-expected-device",
    title="The program lists the device asked for",
    boundary="binary",
    remedy=_DEVICE_REMEDY,
)
def lists_expected_device(binary: BinaryFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look for the device in the program's own list; being listed is necessary, and no proof of use."""
    wanted = _asks_for_device(asked)
    if wanted is None:
        return NotApplicable("no device was asked for")
    return _judge_devices(wanted, binary.devices.need(), _evidence(binary))


@check(
    "binary.any-lists-expected-device",
    title="A program that can generate lists the device asked for",
    boundary="binary",
    remedy=_DEVICE_REMEDY,
)
def any_lists_expected_device(binaries: BinariesFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look for the device in the lists of the programs in use."""
    wanted = _asks_for_device(asked)
    if wanted is None:
        return NotApplicable("no device was asked for")
    programs = [binary for binary in in_use(binaries) if binary.role in GENERATING]
    if not programs:
        return NotApplicable("no program was found")
    known = [binary for binary in programs if isinstance(binary.devices, Known)]
    devices = [device for binary in known for device in binary.devices.need()]
    if not _matching(devices, wanted) and len(known) < len(programs):
        next(binary for binary in programs if isinstance(binary.devices, Unknown)).devices.need()
    evidence = tuple(dict.fromkeys(id_ for binary in known for id_ in _evidence(binary)))
    return _judge_devices(wanted, devices, evidence)


def _evidence(binary: BinaryFacts) -> tuple[str, ...]:
    evidence = binary.devices.source.evidence
    return (evidence,) if evidence else ()


def _judge_devices(wanted: str, devices: Iterable[Device], evidence: tuple[str, ...]) -> Verdict:
    listed = list(dict.fromkeys(f"{device.name} ({device.description})" for device in devices))
    found = list(dict.fromkeys(device.name for device in _matching(devices, wanted)))
    return Verdict(
        holds=bool(found),
        summary=f"asked for {wanted}, listed: {', '.join(listed) or 'none'}",
        expected=wanted,
        observed=", ".join(found) or "not listed",
        evidence=evidence,
    )


_CLEAN_REMEDY = (
    "unset the variables, or move the settings to the command line where a record shows them; "
    "llamaops gives its own children neither the variables nor the user's configuration file"
)


@check(
    "binary.environment-is-clean",
    title="Nothing inherited changes the engines",
    boundary="binary",
    severity="advisory",
    remedy=_CLEAN_REMEDY,
)
def environment_is_clean(binaries: BinariesFacts) -> Verdict:
    """Ask for no LLAMA_* variable and no configuration file: both change every program without a trace."""
    return _judge_inherited(binaries.inherited)


@check(
    "binary.run-environment-is-clean",
    title="Nothing inherited changes the program",
    boundary="binary",
    severity="advisory",
    remedy=_CLEAN_REMEDY,
)
def run_environment_is_clean(binary: BinaryFacts) -> Verdict:
    """Ask the same for the program of a run, which cannot be kept from reading a file below /etc."""
    return _judge_inherited(binary.inherited)


def _judge_inherited(inherited: Inherited) -> Verdict:
    found = (*inherited.variables, *inherited.config_files)
    return Verdict(
        holds=not found,
        summary=f"engines read {', '.join(found)}" if found else "no engine variable, no configuration file",
        expected="no LLAMA_* variable and no llama.cpp configuration file",
        observed=", ".join(found) or "none",
    )
