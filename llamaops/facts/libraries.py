"""Find the libraries that the loader would find, and name the package of one that it would not."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
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

Family = Literal["debian", "fedora", "arch", "alpine", "suse", "other"]

_PACKAGES: dict[str, dict[str, str]] = {
    r"libgomp\.so\.1": {"debian": "libgomp1", "fedora": "libgomp", "arch": "gcc-libs", "alpine": "libgomp", "suse": "libgomp1"},
    r"libstdc\+\+\.so\.6": {"debian": "libstdc++6", "fedora": "libstdc++", "arch": "gcc-libs", "alpine": "libstdc++", "suse": "libstdc++6"},
    r"libgcc_s\.so\.1": {"debian": "libgcc-s1", "fedora": "libgcc", "arch": "gcc-libs", "alpine": "libgcc", "suse": "libgcc_s1"},
    r"libcurl\.so\.4": {"debian": "libcurl4", "fedora": "libcurl", "arch": "curl", "alpine": "libcurl", "suse": "libcurl4"},
    r"libcurl-gnutls\.so\.4": {"debian": "libcurl3-gnutls"},
    r"lib(ssl|crypto)\.so\.3": {"debian": "libssl3", "fedora": "openssl-libs", "arch": "openssl", "alpine": "openssl", "suse": "libopenssl3"},
    r"lib(ssl|crypto)\.so\.1\.1": {"debian": "libssl1.1", "fedora": "openssl1.1", "arch": "openssl-1.1", "suse": "libopenssl1_1"},
    r"libvulkan\.so\.1": {"debian": "libvulkan1", "fedora": "vulkan-loader", "arch": "vulkan-icd-loader", "alpine": "vulkan-loader", "suse": "libvulkan1"},
    r"libOpenCL\.so\.1": {"debian": "ocl-icd-libopencl1", "fedora": "ocl-icd", "arch": "ocl-icd", "alpine": "ocl-icd", "suse": "libOpenCL1"},
    r"libopenblas\.so\.0": {"debian": "libopenblas0", "fedora": "openblas", "arch": "openblas", "alpine": "openblas", "suse": "libopenblas0"},
    r"libnuma\.so\.1": {"debian": "libnuma1", "fedora": "numactl-libs", "arch": "numactl", "alpine": "numactl", "suse": "libnuma1"},
    r"libz\.so\.1": {"debian": "zlib1g", "fedora": "zlib", "arch": "zlib", "alpine": "zlib", "suse": "libz1"},
    r"libzstd\.so\.1": {"debian": "libzstd1", "fedora": "libzstd", "arch": "zstd", "alpine": "zstd-libs", "suse": "libzstd1"},
}  # fmt: skip

_VENDORS = (
    (r"libcuda\.so\.1|libnvidia-", "the NVIDIA driver (in a container: the NVIDIA container toolkit gives it)"),
    (r"lib(cudart|cublas|cublasLt|nvrtc|nccl|curand|cufft)\.so\.(?P<major>\d+)", "the runtime libraries of CUDA {major}"),
    (r"lib(amdhip64|hipblas|rocblas|hsa-runtime64|hipblaslt|rocsolver)\.so\.(?P<major>\d+)", "the runtime libraries of ROCm (its library version {major})"),
    (r"lib(sycl|ze_loader|svml|imf|intlc|irng|iomp5|mkl_\w+|dnnl|tbb)\.so", "the Intel oneAPI runtime"),
    (r"libmusa|libmublas", "the MUSA runtime"),
    (r"libascendcl", "the CANN toolkit"),
    (r"lib(llama|ggml|mtmd)", "llama.cpp itself: its libraries belong beside the program or on its run path"),
)  # fmt: skip


class Library(Shape, frozen=True, kw_only=True):
    """A library of llama.cpp's own that a program uses."""

    name: str
    """File name as it is asked for, or as it lies there."""
    path: str
    """The file, symbolic links resolved."""
    how: Literal["linked", "mapped", "plugin"]
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
    how: Literal["linked", "mapped", "plugin"]
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
        """Follow what an ELF file needs, through llama.cpp's own libraries; system libraries end the search."""
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
        return [*self._from_configuration(), *folders, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"]

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


def package_of(library: str, family: Family) -> str | None:
    """Return what provides a library on a family of distributions, or None."""
    for pattern, packages in _PACKAGES.items():
        if re.match(pattern + r"(\.|$)", library):
            name = packages.get(family)
            return f"package {name}" if name else None
    for pattern, what in _VENDORS:
        found = re.match(pattern, library)
        if found:
            return what.format(**found.groupdict())
    return None


def parse_family(os_release: str) -> Family:
    """Read the distribution's family from /etc/os-release."""
    fields: Mapping[str, str] = dict(
        line.split("=", 1) for line in os_release.splitlines() if re.match(r"ID(_LIKE)?=", line)
    )
    names = " ".join(fields.values()).replace('"', " ").lower().split()
    families: tuple[tuple[Family, set[str]], ...] = (
        ("debian", {"debian", "ubuntu"}),
        ("fedora", {"fedora", "rhel", "centos", "rocky", "almalinux", "amzn"}),
        ("arch", {"arch", "manjaro"}),
        ("alpine", {"alpine"}),
        ("suse", {"suse", "opensuse", "sles", "opensuse-tumbleweed", "opensuse-leap"}),
    )
    return next((family for family, ids in families if ids & set(names)), "other")
