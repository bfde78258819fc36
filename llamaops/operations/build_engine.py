"""Build the programs of llama.cpp that no wheel carries, for the CPU, once, into the cache.

The tests need them: llama-completion, llama-bench, llama-fit-params, llama-gguf-split and
llama-quantize; on demand llama-server and llama-cli too, as a second server build.
"""

from __future__ import annotations

import posixpath

from llamaops.errors import FetchError
from llamaops.system import build as builder
from llamaops.system import fetch as installer
from llamaops.system.build import MissingTools as MissingTools  # noqa: PLC0414 - callers need only this module
from llamaops.system.build import Toolchain as Toolchain  # noqa: PLC0414 - callers need only this module
from llamaops.system.build import toolchain as toolchain  # noqa: PLC0414 - callers need only this module
from llamaops.system.catalogue import catalogue
from llamaops.system.pip import Progress
from llamaops.system.ports import System

TARGETS = ("llama-completion", "llama-bench", "llama-fit-params", "llama-gguf-split", "llama-quantize")
SERVER_TARGETS = ("llama-server", "llama-cli")


def build_name(system: System, *, server: bool) -> str:
    """Return the name of a build: source, digest, instruction sets, and whether the server is in it."""
    source = catalogue()["full-engine"]
    name = f"{source.name}-{source.version}-{source.sha256[:8]}-{builder.instructions(system)}"
    return f"{name}-server" if server else name


def built(cache: str, system: System, *, server: bool = False) -> str | None:
    """Return the folder of the programs if the build is in the cache; cheap.

    A build with the server serves whoever asks for one without.
    """
    with_server = builder.built(cache, build_name(system, server=True))
    return with_server if server else builder.built(cache, build_name(system, server=False)) or with_server


def build(cache: str, system: System, progress: Progress, *, server: bool = False) -> str:
    """Build the programs unless they are there, and return their folder.

    Args:
        cache: The cache folder.
        system: The machine.
        progress: Called with what is being done, the steps done and all steps.
        server: Whether to build llama-server and llama-cli too.

    Raises: FetchError: no compiler, or a build that fails or takes too long.
    """
    if (there := built(cache, system, server=server)) is not None:
        return there
    tools = toolchain(system)
    if isinstance(tools, MissingTools):
        raise FetchError(tools.reason, hint="install a C++ compiler (g++ or clang), cmake and ninja")
    item = catalogue()["full-engine"]
    folder, _ = installer.install(item, cache, system, progress)
    return builder.build(
        posixpath.dirname(posixpath.join(folder, item.main)),
        cache,
        tree=build_name(system, server=False),
        name=build_name(system, server=server),
        targets=(*TARGETS, *SERVER_TARGETS) if server else TARGETS,
        tools=tools,
        system=system,
        progress=progress,
    )
