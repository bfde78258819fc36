"""How a file came onto the machine: which package manager, build folder or store owns it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Literal

from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

HowInstalled = Literal[
    "dpkg", "rpm", "apk", "pacman", "wheel", "homebrew", "nix", "guix", "conda", "source", "snap", "flatpak"
]
_BOUNDS = Bounds(wall_s=10.0, total_bytes=4 << 20)
_LIMIT_BYTES = 32 << 20
_ANCESTORS = 6
_OPTIONS = (
    "CUDA|HIP|MUSA|VULKAN|METAL|SYCL|OPENCL|RPC|BLAS|CANN|WEBGPU|OPENVINO|ZDNN|ZENDNN|HEXAGON|VIRTGPU"
    "|BACKEND_DL|CPU_ALL_VARIANTS|NATIVE|OPENMP|STATIC"
)


class Installed(Shape, frozen=True, kw_only=True):
    """Who put a file there."""

    by: HowInstalled
    """The package manager, store or build."""
    name: str
    """The package, formula, or for `source` the build folder."""
    version: str | None = None
    """The package's version; it says nothing about llama.cpp's build number."""
    detail: str | None = None
    """For `source`: build type and the GGML options that were switched on."""


def collect_installed(system: System, real_path: str) -> Fact[Installed]:
    """Find who owns a file; Unknown `absent` when nobody we know does."""
    for look in (_by_path, _source_tree, _wheel, _conda):
        found = look(system, real_path)
        if found is not None:
            return found
    for database, ask in _DATABASES:
        if _exists(system, database):
            owner = ask(system, real_path)
            if owner is not None:
                return owner
    return Unknown(
        why="absent",
        detail=f"no package database, wheel, store or build folder accounts for {real_path}",
        source=Source(kind="computed", name=f"owner of {real_path}"),
    )


def _known(installed: Installed, kind: Literal["file", "command", "computed"], name: str) -> Known[Installed]:
    return Known(value=installed, source=Source(kind=kind, name=name))


def _exists(system: System, path: str) -> bool:
    try:
        system.stat(path)
    except OSError:
        return False
    return True


_PATHS: tuple[tuple[HowInstalled, str], ...] = (
    ("homebrew", r"/Cellar/(?P<name>[^/]+)/(?P<version>[^/]+)/"),
    ("nix", r"/nix/store/[a-z0-9]{32}-(?P<name>[^/]+?)(?:-(?P<version>\d[^/]*))?/"),
    ("guix", r"/gnu/store/[a-z0-9]{32}-(?P<name>[^/]+?)(?:-(?P<version>\d[^/]*))?/"),
    ("snap", r"^(?:/var/lib)?/snap/(?P<name>[^/]+)/(?P<version>[^/]+)/"),
    ("flatpak", r"/flatpak/(?:app|runtime)/(?P<name>[^/]+)/"),
)


def _by_path(_system: System, path: str) -> Fact[Installed] | None:
    for by, pattern in _PATHS:
        found = re.search(pattern, path)
        if found:
            parts = found.groupdict()
            installed = Installed(by=by, name=parts["name"], version=parts.get("version"))
            return _known(installed, "computed", f"path {path}")
    return None


def _ancestors(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    for _level in range(_ANCESTORS):
        yield folder
        if folder in {"/", ""}:
            return
        folder = os.path.dirname(folder)


def _source_tree(system: System, path: str) -> Fact[Installed] | None:
    for folder in _ancestors(path):
        cache = os.path.join(folder, "CMakeCache.txt")
        try:
            text = system.read_text(cache, limit_bytes=_LIMIT_BYTES)
        except OSError:
            continue
        return _known(Installed(by="source", name=folder, detail=parse_cmake_cache(text)), "file", cache)
    return None


def parse_cmake_cache(text: str) -> str | None:
    """Return the build type and the GGML options that are on, as they were configured."""
    build_type = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\S+)", text, re.MULTILINE)
    # Which back ends and how: the dozens of other switches are on by default and say nothing.
    switched_on = re.findall(rf"^(GGML_(?:{_OPTIONS})):BOOL=(?:ON|1|TRUE)$", text, re.MULTILINE)
    words = ([f"CMAKE_BUILD_TYPE={build_type[1]}"] if build_type else []) + sorted(switched_on)
    return " ".join(words) or None


def _wheel(system: System, path: str) -> Fact[Installed] | None:
    """Look for a RECORD that lists the file: beside its package, or for a script in lib/python*/."""
    for folder in _ancestors(path):
        for site in (folder, *_script_sites(system, folder)):
            relative = os.path.relpath(path, site)
            for name in _listing(system, site):
                if not name.endswith(".dist-info"):
                    continue
                record = os.path.join(site, name, "RECORD")
                if _lists(system, record, relative):
                    distribution, _, version = name.removesuffix(".dist-info").partition("-")
                    installed = Installed(by="wheel", name=distribution, version=version or None)
                    return _known(installed, "file", record)
    return None


def _script_sites(system: System, folder: str) -> list[str]:
    """Return the site-packages folders of an environment whose bin folder this is."""
    if os.path.basename(folder) not in {"bin", "Scripts"}:
        return []
    library = os.path.join(os.path.dirname(folder), "lib")
    return [
        os.path.join(library, name, site)
        for name in _listing(system, library)
        if name.startswith("python3")
        for site in ("site-packages", "dist-packages")
    ]


def _listing(system: System, folder: str) -> list[str]:
    try:
        return system.list_dir(folder)
    except OSError:
        return []


def _lists(system: System, record: str, relative: str) -> bool:
    try:
        text = system.read_text(record, limit_bytes=_LIMIT_BYTES)
    except OSError:
        return False
    return re.search(rf'^"?{re.escape(relative)}"?,', text, re.MULTILINE) is not None


def _conda(system: System, path: str) -> Fact[Installed] | None:
    for folder in _ancestors(path):
        meta = os.path.join(folder, "conda-meta")
        relative = os.path.relpath(path, folder)
        for name in _listing(system, meta):
            # Only packages that may hold the program: an environment has hundreds of these files.
            if not name.endswith(".json") or not re.search(r"llama|ggml", name):
                continue
            try:
                text = system.read_text(os.path.join(meta, name), limit_bytes=_LIMIT_BYTES)
            except OSError:
                continue
            if f'"{relative}"' in text:
                package, version = name.removesuffix(".json").rsplit("-", 2)[:2]
                installed = Installed(by="conda", name=package, version=version)
                return _known(installed, "file", os.path.join(meta, name))
    return None


def _command(system: System, *argv: str) -> tuple[bool, str]:
    completed = system.run(argv, bounds=_BOUNDS)
    return completed.ok, completed.stdout.text


def _dpkg(system: System, path: str) -> Fact[Installed] | None:
    # A merged /usr: the database may know the file below /bin or below /usr/bin.
    names = [path, path.removeprefix("/usr") if path.startswith("/usr/") else "/usr" + path]
    _ok, text = _command(system, "dpkg-query", "--search", *names)
    owner = parse_dpkg_search(text)
    if owner is None:
        return None
    ok, version = _command(system, "dpkg-query", "--show", "--showformat=${Version}", owner)
    installed = Installed(by="dpkg", name=owner, version=version.strip() if ok and version.strip() else None)
    return _known(installed, "command", f"dpkg-query --search {path}")


def parse_dpkg_search(text: str) -> str | None:
    """Return the package from `package: /path`; lines about diversions are passed over."""
    for line in text.splitlines():
        found = re.match(r"(?P<package>[a-z0-9][a-z0-9+.-]*)(?::\w+)?(?:, [^:]+(?::\w+)?)*: /", line)
        if found:
            return found["package"]
    return None


def _rpm(system: System, path: str) -> Fact[Installed] | None:
    ok, text = _command(system, "rpm", "-qf", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", path)
    words = text.split()
    if not ok or len(words) < 2:  # noqa: PLR2004 - name and version
        return None
    return _known(Installed(by="rpm", name=words[0], version=words[1]), "command", f"rpm -qf {path}")


def _pacman(system: System, path: str) -> Fact[Installed] | None:
    ok, text = _command(system, "pacman", "-Qo", path)
    found = re.search(r" is owned by (\S+) (\S+)", text)
    if not ok or not found:
        return None
    return _known(Installed(by="pacman", name=found[1], version=found[2]), "command", f"pacman -Qo {path}")


_APK_DATABASE = "/lib/apk/db/installed"


def _apk(system: System, path: str) -> Fact[Installed] | None:
    try:
        text = system.read_text(_APK_DATABASE, limit_bytes=_LIMIT_BYTES)
    except OSError:
        return None
    owner = parse_apk_owner(text, path)
    return None if owner is None else _known(owner, "file", _APK_DATABASE)


def parse_apk_owner(text: str, path: str) -> Installed | None:
    """Return the package that owns a file, from the database of Alpine's apk."""
    folder, name = os.path.split(path.lstrip("/"))
    for package in text.split("\n\n"):
        current = None
        for line in package.split("\n"):
            if line.startswith("F:"):
                current = line[2:]
            elif current == folder and line == f"R:{name}":
                fields = dict(re.findall(r"^([PV]):(.+)$", package, re.MULTILINE))
                return Installed(by="apk", name=fields.get("P", "?"), version=fields.get("V"))
    return None


_DATABASES: tuple[tuple[str, Callable[[System, str], Fact[Installed] | None]], ...] = (
    ("/var/lib/dpkg/status", _dpkg),
    (_APK_DATABASE, _apk),
    ("/var/lib/pacman/local", _pacman),
    ("/usr/lib/sysimage/rpm", _rpm),
    ("/var/lib/rpm", _rpm),
)
