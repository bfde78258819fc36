"""Find the libraries that the loader would find, and name the package of one that it would not."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.elf import ElfFacts, parse_elf
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

OWN = re.compile(r"lib(?:llama|ggml|mtmd)[\w.+-]*\.(?:so|dylib)[\d.]*$")
"""Libraries that belong to llama.cpp."""
_BACKEND = re.compile(r"libggml-(?!base\b)([\w-]+?)\.(?:so|dylib)")
_MAX_OBJECTS = 200

_TRIPLETS = {
    "x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "riscv64": "riscv64-linux-gnu",
    "powerpc64": "powerpc64le-linux-gnu", "s390x": "s390x-linux-gnu", "arm": "arm-linux-gnueabihf",
    "i386": "i386-linux-gnu", "loongarch64": "loongarch64-linux-gnu",
}  # fmt: skip


HowFound = Literal["linked", "mapped", "plugin"]


class Library(Shape, frozen=True, kw_only=True):
    """A library of llama.cpp's own that a program uses."""

    name: str
    """File name as it is asked for, or as it lies there."""
    path: str
    """The file, symbolic links resolved."""
    how: HowFound
    """Asked for by name, seen in the running program, or lying where plugins are loaded from."""
    size_bytes: Fact[int]
    """Size of the file."""
    sha256: Fact[str]
    """Digest of the file in hex."""
    build_id: str | None = None
    """The linker's identity of the build, in hex."""


class MissingLibrary(Shape, frozen=True, kw_only=True):
    """A library that the loader does not find."""

    name: str
    """As it is asked for."""
    needed_by: str | None
    """The file that asks for it; none when only the loader's message names it."""
    package: str | None
    """What provides it on this system; none when we do not know."""


class BackendLibrary(Shape, frozen=True, kw_only=True):
    """A back end that is present as a library; present is not loaded, and loaded is not used."""

    name: str
    """Such as cpu, cpu-zen4, vulkan, cuda, hip, rpc, blas."""
    path: str
    """The file, symbolic links resolved."""
    how: HowFound
    """Asked for by name, seen in the running program, or lying where plugins are loaded from."""


class Linked(msgspec.Struct):
    """What following the needed libraries gave."""

    own: dict[str, tuple[str, ElfFacts]]
    """llama.cpp's own libraries by name: real path and header."""
    missing: dict[str, str]
    """Names not found, with the file that needs them."""


class Loader:
    """Searches libraries in the order of the dynamic loader; one per run, for it remembers folders."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._folders: dict[str, frozenset[str]] = {}
        self._elf: dict[str, ElfFacts | None] = {}
        self._configured: list[str] | None = None

    def read_elf(self, path: str) -> ElfFacts | None:
        """Return a file's ELF header, or None when it is none or is unreadable."""
        if path not in self._elf:
            try:
                with self._system.open_regular(path) as file:
                    self._elf[path] = parse_elf(file.read_at)
            except (OSError, ParseError):
                self._elf[path] = None
        return self._elf[path]

    def follow(self, path: str) -> Linked:
        """Follow what an ELF file needs; a library in a folder of the system ends the search."""
        found = Linked({}, {})
        elf = self.read_elf(path)
        if elf is None or elf.interpreter is None:
            return found
        queue: list[tuple[str, ElfFacts, tuple[str, ...]]] = [(path, elf, ())]
        done: set[str] = set()
        while queue and len(done) < _MAX_OBJECTS:
            holder, header, inherited = queue.pop(0)
            rpath = () if header.runpath else self._expand(header.rpath, holder) + inherited
            for name in header.needed:
                if name in done:
                    continue
                done.add(name)
                place = self._search(name, holder, header, rpath)
                if place is None:
                    found.missing[name] = holder
                    continue
                library, is_system = place
                child = None if is_system else self.read_elf(library)
                if child is not None:
                    if OWN.match(name):
                        found.own[name] = (self._system.realpath(library), child)
                    queue.append((library, child, rpath))
        return found

    def _search(
        self, name: str, holder: str, header: ElfFacts, rpath: tuple[str, ...]
    ) -> tuple[str, bool] | None:
        """Return where a library is found, and whether that is a folder of the system."""
        if "/" in name:
            return (name, False) if self._has(os.path.dirname(name), os.path.basename(name)) else None
        from_environment = self._system.environ.get("LD_LIBRARY_PATH", "").split(":")
        near = [*rpath, *from_environment, *self._expand(header.runpath, holder)]
        for folder in near:
            if folder and self._has(folder, name):
                return os.path.join(folder, name), False
        for folder in self._system_folders(header.machine):
            if self._has(folder, name):
                # A packaged llama.cpp keeps its libraries there too; they are followed.
                return os.path.join(folder, name), OWN.match(name) is None
        return None

    def _has(self, folder: str, name: str) -> bool:
        if folder not in self._folders:
            try:
                self._folders[folder] = frozenset(self._system.list_dir(folder))
            except OSError:
                self._folders[folder] = frozenset()
        return name in self._folders[folder]

    def listing(self, folder: str) -> frozenset[str]:
        """Return the names in a folder; empty when it cannot be read."""
        self._has(folder, "")
        return self._folders[folder]

    def _expand(self, folders: Sequence[str], holder: str) -> tuple[str, ...]:
        origin = os.path.dirname(holder)
        return tuple(
            os.path.normpath(folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
            for folder in folders
        )

    def _system_folders(self, machine: str) -> list[str]:
        triplet = _TRIPLETS.get(machine, "")
        folders = [f"/lib/{triplet}", f"/usr/lib/{triplet}"] if triplet else []
        return [
            *self._from_configuration(),
            *folders,
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
            "/usr/local/lib",
        ]

    def _from_configuration(self) -> list[str]:
        """Return the folders that /etc/ld.so.conf and its parts name."""
        if self._configured is None:
            names = ["/etc/ld.so.conf"]
            names += [
                f"/etc/ld.so.conf.d/{name}"
                for name in sorted(self.listing("/etc/ld.so.conf.d"))
                if name.endswith(".conf")
            ]
            self._configured = []
            for name in names:
                try:
                    text = self._system.read_text(name, limit_bytes=65536)
                except OSError:
                    continue
                lines = (line.split("#")[0].strip() for line in text.splitlines())
                self._configured += [line for line in lines if line.startswith("/")]
        return self._configured


def backend_name(file_name: str) -> str | None:
    """Return the back end that a library's file name stands for: libggml-cpu-zen4.so is cpu-zen4."""
    found = _BACKEND.match(file_name)
    return found[1] if found else None
