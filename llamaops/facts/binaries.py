"""Find llama.cpp's programs and learn about each, all side by side.

Run are only programs with a name of llama.cpp's own, programs that the operator named, and programs
with an ambiguous name (server, main, quantize, ...) whose file speaks of llama.cpp; those get --help
first and nothing else until the answer is llama.cpp's. No program gets any other argument than --help,
--version or --list-devices, each within bounds, with a scrubbed environment and closed standard input.

Programs that use the same libraries list the same devices, so one of them is asked for all.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from llamaops.facts.binary_probe import Answer, ask, confirm_flags, read_devices, read_help, read_version
from llamaops.facts.binary_types import BinariesFacts, BinaryFacts
from llamaops.facts.capabilities import Capabilities
from llamaops.facts.device_list import Device
from llamaops.facts.discovery import MARKS, Candidate, find_candidates
from llamaops.facts.elf import ElfFacts
from llamaops.facts.installed import Installed, collect_installed
from llamaops.facts.libraries import (
    OWN,
    BackendLibrary,
    Library,
    Linked,
    Loader,
    MissingLibrary,
    backend_name,
    package_of,
    parse_family,
)
from llamaops.facts.observe import unknown_from_os_error
from llamaops.facts.program import Start, identify, read_start
from llamaops.facts.run_failure import RunFailure
from llamaops.facts.version_text import unknown_version
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system.environment import engine_variables
from llamaops.system.ports import System

__all__ = ["BinariesFacts", "BinaryFacts", "collect_binaries", "collect_binary", "confirm_flags"]

MAX_WORKERS = 32
DIGEST_S = 5.0
"""Seconds that all digests of a run may take together."""
CHUNK_BYTES = MIB
_SCAN_BYTES = 64 * MIB
_NO_DEVICE_LIST = frozenset({"llama-quantize", "llama-gguf-split", "ggml-rpc-server", "llama"})
_NO_VERSION = frozenset({"ggml-rpc-server"})
"""Programs without --version; an RPC server must not be given an argument that it might ignore."""


class _Pending(msgspec.Struct):
    """A program whose probes are under way."""

    candidate: Candidate
    start: Start
    linked: Linked
    help: Future[Answer] | None = None
    version: Future[Answer] | None = None
    devices: Future[Answer] | None = None
    installed: Future[Fact[Installed]] | None = None


def collect_binaries(
    system: System, *, bin_dir: str | None, extra: Sequence[str] = ()
) -> BinariesFacts:
    """Find every llama.cpp program and learn about each, side by side.

    Args:
        system: The machine.
        bin_dir: A folder with programs, or above bin or build/bin; looked into before PATH.
        extra: Paths of programs that the operator named; these are run whatever they are called.
    """
    candidates, searched = find_candidates(system, bin_dir=bin_dir, extra=extra)
    with _Run(system) as run:
        found = run.collect(candidates)
    source = Source(kind="computed", name="file names in the folders searched, and the files themselves")
    return BinariesFacts(
        found=Known(value=tuple(found), source=source),
        searched=tuple(searched),
        not_run=tuple(run.not_run),
        engine_variables=engine_variables(system.environ),
        config_files=_config_files(system),
        digest_elapsed_s=round(run.digests.elapsed_s, 4),
    )


def collect_binary(system: System, path: str, role: str) -> BinaryFacts:
    """Learn about one program that the operator named or that a run is about to use."""
    candidate = Candidate(path, system.realpath(path), role, "given")
    with _Run(system) as run:
        return run.collect([candidate])[0]


def _config_files(system: System) -> tuple[str, ...]:
    home = system.environ.get("HOME", "")
    user = system.environ.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
    names = ["/etc/llama.cpp/config.ini"]
    if user:
        names.append(os.path.join(user, "llama.cpp/config.ini"))
    return tuple(name for name in names if isinstance(_size(system, name), Known))


def _size(system: System, path: str) -> Fact[int]:
    source = Source(kind="file", name=path)
    try:
        status = system.stat(path)
    except OSError as error:
        return unknown_from_os_error(source, error)
    if not stat.S_ISREG(status.st_mode):
        return Unknown(why="failed", detail=f"{path}: not a regular file", source=source)
    return Known(value=status.st_size, source=source)


class _Digests:
    """Digests of files, each once, within a bound on time for all of them."""

    def __init__(self, system: System, pool: ThreadPoolExecutor) -> None:
        self._system = system
        self._pool = pool
        self._futures: dict[str, Future[Fact[str]]] = {}
        self._began = system.clock.monotonic()
        self.elapsed_s = 0.0

    def start(self, path: str) -> Future[Fact[str]]:
        """Begin the digest of a file, unless it was begun."""
        if path not in self._futures:
            self._futures[path] = self._pool.submit(self._digest, path)
        return self._futures[path]

    def _digest(self, path: str) -> Fact[str]:
        source = Source(kind="file", name=path)
        digest = hashlib.sha256()
        began = self._system.clock.monotonic()
        try:
            with self._system.open_regular(path) as file:
                offset = 0
                while chunk := file.read_at(offset, CHUNK_BYTES):
                    digest.update(chunk)
                    offset += len(chunk)
                    if self._system.clock.monotonic() - self._began > DIGEST_S:
                        detail = f"{path}: the digests were to take no more than {DIGEST_S:g} s together"
                        return Unknown(why="timed_out", detail=detail, source=source)
        except OSError as error:
            return unknown_from_os_error(source, error)
        finally:
            self.elapsed_s += self._system.clock.monotonic() - began
        return Known(value=digest.hexdigest(), source=source)


class _Run:
    """One collection: threads, the digests, and what is remembered between programs."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._pool = ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="llamaops-binaries")
        self._loader = Loader(system)
        self.digests = _Digests(system, self._pool)
        self.not_run: list[str] = []

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def collect(self, candidates: Sequence[Candidate]) -> list[BinaryFacts]:
        """Start everything, then gather in the order given."""
        pending = [item for item in map(self._begin, candidates) if item is not None]
        self._ask_for_devices(item for item in pending if not item.candidate.ambiguous)
        confirmed = [item for item in pending if self._confirm(item)]
        self._ask_for_devices(item for item in confirmed if item.candidate.ambiguous)
        return [self._finish(item) for item in confirmed]

    def _begin(self, candidate: Candidate) -> _Pending | None:
        """Look at the file and start what may be started."""
        system = self._system
        start = read_start(system, candidate.real_path)
        if candidate.ambiguous and not _speaks_of_llama(system, candidate.real_path, start):
            self.not_run.append(candidate.path)
            return None
        item = _Pending(candidate, start, Linked({}, {}))
        item.help = self._pool.submit(ask, system, candidate.path, "--help", watched=True)
        if not candidate.ambiguous and candidate.role not in _NO_VERSION:
            item.version = self._pool.submit(ask, system, candidate.path, "--version")
        item.installed = self._pool.submit(collect_installed, system, candidate.real_path)
        if start.kind == "elf":
            item.linked = self._loader.follow(candidate.real_path)
            self.digests.start(candidate.real_path)
            for path, _header in item.linked.own.values():
                self.digests.start(path)
        return item

    def _ask_for_devices(self, items: Iterable[_Pending]) -> None:
        """Ask one program of each set of libraries; the others take its answer."""
        asked: dict[tuple[str, ...], Future[Answer]] = {}
        for item in items:
            if item.candidate.role in _NO_DEVICE_LIST:
                continue
            libraries = tuple(
                sorted(path for name, (path, _header) in item.linked.own.items() if "ggml" in name)
            )
            future = asked.get(libraries) if libraries else None
            if future is None:
                future = self._pool.submit(ask, self._system, item.candidate.path, "--list-devices")
                if libraries:
                    asked[libraries] = future
            item.devices = future

    def _confirm(self, item: _Pending) -> bool:
        """Say whether a program with an ambiguous name is llama.cpp's, by its help text."""
        if not item.candidate.ambiguous or item.help is None:
            return True
        answer = item.help.result()
        capabilities = read_help(answer)
        text = (answer.completed.stdout.text + answer.completed.stderr.text).lower()
        if isinstance(capabilities, Unknown) and answer.failure is None:
            spoken = any(mark.decode() in text for mark in MARKS)
        elif isinstance(capabilities, Known):
            spoken = _is_llama(capabilities.value, text)
        else:
            spoken = True  # it crashed: worth a finding, and its file speaks of llama.cpp
        if not spoken:
            self.not_run.append(item.candidate.path)
            return False
        if item.candidate.role not in _NO_VERSION:
            item.version = self._pool.submit(ask, self._system, item.candidate.path, "--version")
        return True

    def _finish(self, item: _Pending) -> BinaryFacts:
        """Wait for the probes of one program and put its facts together."""
        candidate, system = item.candidate, self._system
        help_answer = item.help.result() if item.help else None
        seen = help_answer.seen if help_answer else ()
        executes = identify(
            system, candidate.real_path, item.start, seen, f"{candidate.path} --help"
        )
        program = executes.value if isinstance(executes, Known) else None
        linked = item.linked
        if program is not None and program != candidate.real_path:
            linked = self._loader.follow(program)
        mapped = next(
            (entry.mapped for entry in seen if entry.executable == program and entry.mapped), ()
        )
        answers = [
            future.result() for future in (item.help, item.version, item.devices) if future is not None
        ]
        mine = [answer for answer in answers if answer.completed.argv[0] == candidate.path]
        failures = tuple(answer.failure for answer in mine if answer.failure is not None)
        capabilities = read_help(help_answer) if help_answer else _not_asked("--help")
        missing = self._missing(linked, failures, capabilities, program)
        libraries = self._libraries(program, linked, mapped)
        facts = BinaryFacts(
            role=candidate.role,
            path=candidate.path,
            also_at=candidate.also_at,
            found_by=candidate.found_by,
            real_path=candidate.real_path,
            wrapper=item.start.kind != "elf",
            executes=executes,
            elf=self._elf(program, executes),
            size_bytes=executes if isinstance(executes, Unknown) else _size(system, executes.value),
            sha256=executes if isinstance(executes, Unknown) else self.digests.start(executes.value).result(),
            libraries=libraries,
            missing_libraries=missing,
            backends=_backends(libraries),
            installed=item.installed.result() if item.installed else _not_asked("its owner"),
            runs=_not_asked("--help"),
            failures=failures,
            probes=tuple(answer.probe for answer in mine),
            version=read_version(item.version.result()) if item.version else _no_version(),
            capabilities=capabilities,
            devices=self._devices(item, capabilities),
        )
        return msgspec.structs.replace(facts, runs=_runs(facts, help_answer))

    def _elf(self, program: str | None, executes: Fact[str]) -> Fact[ElfFacts]:
        if program is None:
            return executes if isinstance(executes, Unknown) else _not_asked("its file")
        source = Source(kind="file", name=program)
        header = self._loader.read_elf(program)
        if header is None:
            return Unknown(why="unparsed", detail=f"{program}: no readable ELF header", source=source)
        return Known(value=header, source=source)

    def _missing(
        self,
        linked: Linked,
        failures: Sequence[RunFailure],
        capabilities: Fact[Capabilities],
        program: str | None,
    ) -> Fact[tuple[MissingLibrary, ...]]:
        """Join what the file's header says and what the loader said; a program that ran misses nothing."""
        named = {item.what: None for item in failures if item.kind == "missing_library" and item.what}
        source = Source(kind="computed", name=f"needed libraries of {program}, in the loader's order")
        if isinstance(capabilities, Known):
            return Known(value=(), source=source)
        if program is None and not named:
            return Unknown(why="not_attempted", detail="the program that executes is not known", source=source)
        family = self._family()
        missing = {**{name: None for name in named}, **linked.missing}
        return Known(
            value=tuple(
                MissingLibrary(name=name, needed_by=needed_by, package=package_of(name, family))
                for name, needed_by in missing.items()
            ),
            source=source,
        )

    def _family(self) -> str:
        try:
            return parse_family(self._system.read_text("/etc/os-release", limit_bytes=65536))
        except OSError:
            return "other"

    def _libraries(
        self, program: str | None, linked: Linked, mapped: Sequence[str]
    ) -> Fact[tuple[Library, ...]]:
        """Put together the libraries that are linked, seen mapped, and lying where plugins are loaded from."""
        if program is None:
            return _not_asked("its libraries")
        places: dict[str, tuple[str, str]] = {}
        for path in mapped:
            if OWN.match(os.path.basename(path)):
                places[self._system.realpath(path)] = (os.path.basename(path), "mapped")
        for name, (path, _header) in linked.own.items():
            places[path] = (name, "linked")
        folders = {os.path.dirname(program)}
        folders |= {os.path.dirname(path) for path in places if backend_name(os.path.basename(path))}
        for folder in sorted(folders):
            for name in sorted(self._loader.listing(folder)):
                if backend_name(name) is not None:
                    path = self._system.realpath(os.path.join(folder, name))
                    places.setdefault(path, (name, "plugin"))
        digests = {path: self.digests.start(path) for path in places}
        found = [
            Library(
                name=name,
                path=path,
                how=how,  # type: ignore[arg-type]  # one of the three words above
                size_bytes=_size(self._system, path),
                sha256=digests[path].result(),
                build_id=header.build_id if (header := self._loader.read_elf(path)) else None,
            )
            for path, (name, how) in sorted(places.items())
        ]
        return Known(value=tuple(found), source=Source(kind="file", name=f"{program} and its folder"))

    def _devices(
        self, item: _Pending, capabilities: Fact[Capabilities]
    ) -> Fact[tuple[Device, ...]]:
        if item.devices is not None:
            return read_devices(item.devices.result())
        source = capabilities.source
        if isinstance(capabilities, Unknown):
            return Unknown(why=capabilities.why, detail=capabilities.detail, source=source)
        if capabilities.value.has("--list-devices"):
            return read_devices(ask(self._system, item.candidate.path, "--list-devices"))
        return Unknown(why="unsupported", detail="its help lists no --list-devices", source=source)


def _not_asked(what: str) -> Unknown:
    return Unknown(
        why="not_attempted",
        detail=f"{what} was not looked at",
        source=Source(kind="computed", name="not attempted"),
    )


def _no_version():  # noqa: ANN202 - see below
    return unknown_version(
        "unsupported",
        "this program has no --version",
        Source(kind="computed", name="programs without --version"),
    )


def _runs(facts: BinaryFacts, answer: Answer | None) -> Fact[bool]:
    """Say whether the program gave any answer that we know."""
    source = answer.stdout if answer else Source(kind="computed", name="probes")
    texts: list[Fact[str] | Fact[Capabilities] | Fact[tuple[Device, ...]]] = [
        facts.capabilities,
        facts.version.text,
    ]
    if any(isinstance(text, Known) for text in texts):
        return Known(value=True, source=source)
    if facts.failures:
        return Known(value=False, source=source)
    return Unknown(
        why="unparsed",
        detail=f"{facts.path} ended by itself, with nothing that a llama.cpp program says",
        source=source,
    )


def _backends(libraries: Fact[tuple[Library, ...]]) -> Fact[tuple[BackendLibrary, ...]]:
    if isinstance(libraries, Unknown):
        return libraries
    found = tuple(
        BackendLibrary(name=name, path=library.path, how=library.how)
        for library in libraries.value
        if (name := backend_name(library.name)) is not None
    )
    if not found:
        return Unknown(
            why="unsupported",
            detail="no back end lies there as a library: they are linked into the program itself",
            source=libraries.source,
        )
    return Known(value=found, source=libraries.source)


def _speaks_of_llama(system: System, path: str, start: Start) -> bool:
    """Say whether a file contains a word of llama.cpp's, so that running it is no blind guess."""
    if start.kind not in {"elf", "script"}:
        return False
    try:
        with system.open_regular(path) as file:
            offset, tail = 0, b""
            while offset < _SCAN_BYTES and (chunk := file.read_at(offset, CHUNK_BYTES)):
                text = (tail + chunk).lower()
                if any(mark in text for mark in MARKS):
                    return True
                offset, tail = offset + len(chunk), text[-16:]
    except OSError:
        return False
    return False


def _is_llama(capabilities: Capabilities, text: str) -> bool:
    """Say whether a help text is one of llama.cpp's: its typical options, or its own words."""
    typical = ("--ctx-size", "--n-gpu-layers", "--allow-requantize", "--n-predict", "--split-max-tensors")
    return any(capabilities.find(flag) for flag in typical) or any(mark.decode() in text for mark in MARKS)
