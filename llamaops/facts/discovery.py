"""Where llama.cpp's programs may lie, without running any."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from llamaops.schema.bounds import MIB
from llamaops.system.ports import System

FoundBy = Literal["given", "bin_dir", "PATH", "build_folder"]

ROLES = (
    "llama-server", "llama-completion", "llama-cli", "llama-bench", "llama-fit-params",
    "llama-batched-bench", "llama-tokenize", "llama-perplexity", "llama-imatrix", "llama-mtmd-cli",
    "llama-tts", "llama-quantize", "llama-gguf-split", "llama-results", "ggml-rpc-server",
)  # fmt: skip
"""Names that are llama.cpp's own; a program so called is run with --help and --version."""

AMBIGUOUS = {
    "server": "llama-server",
    "main": "main",
    "quantize": "llama-quantize",
    "perplexity": "llama-perplexity",
    "imatrix": "llama-imatrix",
    "rpc-server": "ggml-rpc-server",
    "llama": "llama",
}
"""Names that anything may have, with the role: run only when the file itself speaks of llama.cpp."""

MARKS = (b"ggml", b"gguf", b"libllama", b"llama-server", b"llama.cpp", b"llama-cli")
"""Words that the file of an ambiguous name has to contain before it is run, in lower case."""

BUILD_FOLDERS = (
    "build/bin", "bin", "llama.cpp/build/bin", "~/llama.cpp/build/bin", "/opt/llama.cpp/build/bin",
    "/opt/llama.cpp/bin", "/opt/llama.cpp", "/usr/local/llama.cpp/bin", "/usr/lib/llama.cpp", "/app",
)  # fmt: skip
"""Usual build folders, from the working directory or the home directory; /app is the official image's."""

_SCAN_BYTES = 64 * MIB
_VARIANTS = tuple(f"{role}-" for role in ROLES)


class Candidate(msgspec.Struct, frozen=True):
    """A file whose name is that of a llama.cpp program."""

    path: str
    real_path: str
    role: str
    found_by: FoundBy
    also_at: tuple[str, ...] = ()
    ambiguous: bool = False


def role_of(name: str) -> str | None:
    """Return the role that a file name stands for; `llama-server-vulkan` is a llama-server."""
    if name in ROLES:
        return name
    if name in AMBIGUOUS:
        return AMBIGUOUS[name]
    if "." in name or not name.startswith(_VARIANTS):
        return None  # llama-server.1, llama-cli.bak, libllama.so: no program
    return next((role for role in ROLES if name.startswith(role + "-")), None)


def find_candidates(
    system: System, *, bin_dir: str | None, extra: Sequence[str]
) -> tuple[list[Candidate], list[str]]:
    """Return the programs found and the folders searched, each file once, in order of precedence."""
    searched: list[str] = []
    found: dict[tuple[str, str], Candidate] = {}
    for path, by in _paths(system, bin_dir, extra, searched):
        name = os.path.basename(path)
        role = role_of(name) or (name if by == "given" else None)
        if role is None:
            continue
        real_path = system.realpath(path)
        earlier = found.get((real_path, role))
        if earlier is None:
            ambiguous = name in AMBIGUOUS and by != "given"
            found[real_path, role] = Candidate(path, real_path, role, by, (), ambiguous)
        elif path != earlier.path and path not in earlier.also_at:
            found[real_path, role] = msgspec.structs.replace(earlier, also_at=(*earlier.also_at, path))
    return list(found.values()), searched


def _paths(
    system: System, bin_dir: str | None, extra: Sequence[str], searched: list[str]
) -> Iterator[tuple[str, FoundBy]]:
    for path in extra:
        yield path, "given"
    for folder, by in _folders(system, bin_dir):
        if folder in searched:
            continue
        searched.append(folder)
        try:
            names = system.list_dir(folder)
        except OSError:
            continue
        for name in names:
            if role_of(name) is not None and _is_file(system, path := os.path.join(folder, name)):
                yield path, by


def _folders(system: System, bin_dir: str | None) -> Iterable[tuple[str, FoundBy]]:
    if bin_dir:
        for below in ("", "bin", "build/bin"):
            yield os.path.normpath(os.path.join(bin_dir, below)), "bin_dir"
    for folder in system.environ.get("PATH", "").split(":"):
        # A relative entry, or an empty one, means the working directory: anybody's files.
        if folder.startswith("/"):
            yield os.path.normpath(folder), "PATH"
    home = system.environ.get("HOME", "")
    for folder in BUILD_FOLDERS:
        if not folder.startswith("~"):
            yield os.path.abspath(folder), "build_folder"
        elif home:
            yield home + folder[1:], "build_folder"


def _is_file(system: System, path: str) -> bool:
    """Say whether a path leads to a regular file; a dangling link counts, for it is worth a finding."""
    import stat

    try:
        return stat.S_ISREG(system.stat(path).st_mode)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def speaks_of_llama(system: System, path: str) -> bool:
    """Say whether a file contains a word of llama.cpp's, so that running it is no blind guess."""
    try:
        with system.open_regular(path) as file:
            offset, tail = 0, b""
            while offset < _SCAN_BYTES and (chunk := file.read_at(offset, MIB)):
                text = (tail + chunk).lower()
                if any(mark in text for mark in MARKS):
                    return True
                offset, tail = offset + len(chunk), text[-16:]
    except OSError:
        return False
    return False
