"""Find llama.cpp's programs and learn about each, all side by side.

Run are only programs with a name of llama.cpp's own, programs that the operator named, and programs
with an ambiguous name (server, main, quantize, ...) whose file speaks of llama.cpp; those get --help
first and nothing else until the answer is llama.cpp's. No program gets any other argument than --help,
--version or --list-devices, each within bounds, with a scrubbed environment and closed standard input.

Programs that use the same libraries list the same devices, so one of them is asked for all: each list
makes a back end start its driver and take memory on the device.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

import msgspec

from llamaops.facts.binary_libraries import backends_of, collect_libraries, collect_missing
from llamaops.facts.binary_probe import Answer, ask, confirm_flags, read_devices, read_help, read_version
from llamaops.facts.binary_types import BinariesFacts, BinaryFacts, Inherited
from llamaops.facts.capabilities import Capabilities
from llamaops.facts.device_list import Device
from llamaops.facts.digests import Digests
from llamaops.facts.discovery import MARKS, Candidate, find_candidates, speaks_of_llama
from llamaops.facts.elf import ElfFacts
from llamaops.facts.file_size import file_size
from llamaops.facts.installed import Installed, collect_installed
from llamaops.facts.libraries import Linked, Loader
from llamaops.facts.program import Start, identify, read_start
from llamaops.facts.version_text import VersionFacts, unknown_version
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system import parallel
from llamaops.system.environment import engine_variables
from llamaops.system.parallel import Pending
from llamaops.system.ports import System

__all__ = ["BinariesFacts", "BinaryFacts", "collect_binaries", "collect_binary", "confirm_flags"]

MAX_CHILDREN = 32
"""Programs that run at the same time."""
_NO_DEVICE_LIST = frozenset({"llama-quantize", "llama-gguf-split", "ggml-rpc-server", "llama"})
"""Programs that are not asked for devices unless their help text offers the list."""
_NO_VERSION = frozenset({"ggml-rpc-server"})
"""Programs without --version: an RPC server must not get an argument that it might pass over."""
_TYPICAL = ("--ctx-size", "--n-gpu-layers", "--allow-requantize", "--n-predict", "--split-max-tensors")


def collect_binaries(system: System, *, bin_dir: str | None, extra: Sequence[str] = ()) -> BinariesFacts:
    """Find every llama.cpp program and learn about each, side by side.

    Args:
        system: The machine.
        bin_dir: A folder with programs, or above bin or build/bin; looked into before PATH.
        extra: Paths of programs that the operator named; these are run whatever they are called.
    """
    candidates, searched = find_candidates(system, bin_dir=bin_dir, extra=extra)
    run = _Run(system)
    found = [_without_prose(binary) for binary in run.collect(candidates)]
    source = Source(kind="computed", name="names in the folders searched, and the files themselves")
    return BinariesFacts(
        found=Known(value=tuple(found), source=source),
        searched=tuple(searched),
        not_run=tuple(run.not_run),
        inherited=run.inherited,
        digest_elapsed_s=round(run.digests.elapsed_s, 4),
    )


def _without_prose(binary: BinaryFacts) -> BinaryFacts:
    """Leave out help texts, which are evidence too: ten programs would make a record of a megabyte."""
    if isinstance(binary.capabilities, Unknown):
        return binary
    short = Known(value=binary.capabilities.value.without_prose(), source=binary.capabilities.source)
    return msgspec.structs.replace(binary, capabilities=short)


def collect_binary(system: System, path: str, role: str) -> BinaryFacts:
    """Learn about one program that the operator named or that a run is about to use."""
    candidate = Candidate(path, system.realpath(path), role, "given")
    return _Run(system).collect([candidate])[0]


def _inherited(system: System) -> Inherited:
    """Look for variables and configuration files that engines read."""
    home = system.environ.get("HOME", "")
    user = system.environ.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
    names = ["/etc/llama.cpp/config.ini"]
    if user:
        names.append(os.path.join(user, "llama.cpp/config.ini"))
    return Inherited(
        variables=engine_variables(system.environ),
        config_files=tuple(name for name in names if isinstance(file_size(system, name), Known)),
    )


class _Program:
    """A program whose probes are under way."""

    def __init__(
        self, candidate: Candidate, start: Start, help_: Pending[Answer], installed: Pending[Fact[Installed]]
    ) -> None:
        self.candidate = candidate
        self.start = start
        self.linked = Linked({}, {})
        self.help = help_
        self.version: Pending[Answer] | None = None
        self.devices: Pending[Answer] | None = None
        self.installed = installed

    def answers(self) -> list[Answer]:
        """Return the answers of this program, without a device list that another one gave."""
        calls = (self.help, self.version, self.devices)
        given = [call.result() for call in calls if call is not None]
        return [answer for answer in given if answer.completed.argv[0] == self.candidate.path]


class _Run:
    """One collection: what is remembered between programs."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._loader = Loader(system)
        self._turns = threading.BoundedSemaphore(MAX_CHILDREN)
        self.digests = Digests(system)
        self.inherited = _inherited(system)
        self.not_run: list[str] = []

    def collect(self, candidates: Sequence[Candidate]) -> list[BinaryFacts]:
        """Start everything, then gather in the order given."""
        pending = [item for item in map(self._begin, candidates) if item is not None]
        self._ask_for_devices(item for item in pending if not item.candidate.ambiguous)
        confirmed = [item for item in pending if self._confirm(item)]
        self._ask_for_devices(item for item in confirmed if item.candidate.ambiguous)
        return [self._finish(item) for item in confirmed]

    def _begin(self, candidate: Candidate) -> _Program | None:
        """Look at the file and start what may be started."""
        start = read_start(self._system, candidate.real_path)
        if candidate.ambiguous and not speaks_of_llama(self._system, candidate.real_path):
            self.not_run.append(candidate.path)
            return None
        owner = parallel.start(lambda: collect_installed(self._system, candidate.real_path))
        item = _Program(candidate, start, self._ask(candidate, "--help"), owner)
        if not candidate.ambiguous and candidate.role not in _NO_VERSION:
            item.version = self._ask(candidate, "--version")
        if start.kind == "elf":
            item.linked = self._loader.follow(candidate.real_path)
            self.digests.start(candidate.real_path)
            for path, _header in item.linked.own.values():
                self.digests.start(path)
        return item

    def _ask(self, candidate: Candidate, argument: str) -> Pending[Answer]:
        def run() -> Answer:
            with self._turns:
                # Of the three only the help text is long enough for the program to be looked at for sure.
                return ask(self._system, candidate.path, argument, watched=argument == "--help")

        return parallel.start(run)

    def _ask_for_devices(self, items: Iterable[_Program]) -> None:
        """Ask one program of each set of libraries; the others take its answer."""
        asked: dict[tuple[str, ...], Pending[Answer]] = {}
        for item in items:
            if item.candidate.role in _NO_DEVICE_LIST:
                continue
            libraries = tuple(
                sorted(path for name, (path, _header) in item.linked.own.items() if "ggml" in name)
            )
            earlier = asked.get(libraries) if libraries else None
            item.devices = earlier or self._ask(item.candidate, "--list-devices")
            if libraries:
                asked[libraries] = item.devices

    def _confirm(self, item: _Program) -> bool:
        """Say whether a program with an ambiguous name is llama.cpp's, by its help text."""
        if not item.candidate.ambiguous:
            return True
        if not _answers_as_llama(item.help.result()):
            self.not_run.append(item.candidate.path)
            return False
        if item.candidate.role not in _NO_VERSION:
            item.version = self._ask(item.candidate, "--version")
        return True

    def _finish(self, item: _Program) -> BinaryFacts:
        """Wait for the probes of one program and put its facts together."""
        candidate, system, loader = item.candidate, self._system, self._loader
        helped = item.help.result()
        executes = identify(system, candidate.real_path, item.start, helped.seen, helped.stdout.name)
        program = executes.value if isinstance(executes, Known) else None
        linked = item.linked if program in {None, candidate.real_path} else loader.follow(str(program))
        mapped = next((seen.mapped for seen in helped.seen if seen.executable == program), ())
        answers = item.answers()
        failures = tuple(answer.failure for answer in answers if answer.failure is not None)
        capabilities = read_help(helped)
        libraries = collect_libraries(
            system, loader, self.digests, program=program, linked=linked, mapped=mapped
        )
        version = read_version(item.version.result()) if item.version else _no_version(capabilities)
        return BinaryFacts(
            role=candidate.role,
            path=candidate.path,
            also_at=candidate.also_at,
            found_by=candidate.found_by,
            real_path=candidate.real_path,
            wrapper=item.start.kind == "script",
            executes=executes,
            elf=_header(loader, executes),
            size_bytes=executes if isinstance(executes, Unknown) else file_size(system, executes.value),
            sha256=executes if isinstance(executes, Unknown) else self.digests.of(executes.value),
            libraries=libraries,
            missing_libraries=collect_missing(system, program, linked, failures, capabilities),
            backends=backends_of(libraries),
            installed=item.installed.result(),
            runs=_runs(helped, capabilities, version, failed=bool(failures)),
            failures=failures,
            probes=tuple(answer.probe for answer in answers),
            version=version,
            capabilities=capabilities,
            devices=self._devices(item, capabilities),
            inherited=self.inherited,
        )

    def _devices(self, item: _Program, capabilities: Fact[Capabilities]) -> Fact[tuple[Device, ...]]:
        if item.devices is not None:
            return read_devices(item.devices.result())
        if isinstance(capabilities, Unknown):
            return capabilities
        if capabilities.value.has("--list-devices"):
            return read_devices(ask(self._system, item.candidate.path, "--list-devices"))
        detail = "its help lists no --list-devices"
        return Unknown(why="unsupported", detail=detail, source=capabilities.source)


def _header(loader: Loader, executes: Fact[str]) -> Fact[ElfFacts]:
    if isinstance(executes, Unknown):
        return executes
    header = loader.read_elf(executes.value)
    source = Source(kind="file", name=executes.value)
    if header is None:
        return Unknown(why="unparsed", detail=f"{executes.value}: no readable ELF header", source=source)
    return Known(value=header, source=source)


def _no_version(capabilities: Fact[Capabilities]) -> VersionFacts:
    return unknown_version("unsupported", "this program has no --version", capabilities.source)


def _answers_as_llama(answer: Answer) -> bool:
    """Say whether a help text is one of llama.cpp's: its typical options, or its own words."""
    if answer.failure is not None:
        return True  # it crashed: worth a finding, since its file speaks of llama.cpp
    capabilities = read_help(answer)
    if isinstance(capabilities, Known) and any(capabilities.value.find(flag) for flag in _TYPICAL):
        return True
    text = (answer.completed.stdout.text + answer.completed.stderr.text).lower()
    return any(mark.decode() in text for mark in MARKS)


def _runs(
    answer: Answer, capabilities: Fact[Capabilities], version: VersionFacts, *, failed: bool
) -> Fact[bool]:
    """Say whether the program gave any answer that we know."""
    if isinstance(capabilities, Known) or isinstance(version.text, Known):
        return Known(value=True, source=answer.stdout)
    if failed:
        return Known(value=False, source=answer.stdout)
    detail = f"{answer.stdout.name}: it ended by itself and said nothing that a llama.cpp program says"
    return Unknown(why="unparsed", detail=detail, source=answer.stdout)
