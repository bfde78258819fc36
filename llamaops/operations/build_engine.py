"""Build the programs of llama.cpp that no wheel carries, for the CPU, once, into the cache.

The tests need them: llama-completion, llama-bench, llama-fit-params, llama-gguf-split and
llama-quantize; on demand llama-server and llama-cli too, as a second server build. On demand also
servers of 2024 and 2025, which operators still run.
"""

from __future__ import annotations

import posixpath

import msgspec

from llamaops.errors import FetchError
from llamaops.system import build as builder
from llamaops.system import fetch as installer
from llamaops.system.build import MissingTools as MissingTools  # noqa: PLC0414 - callers need only this module
from llamaops.system.build import Recipe
from llamaops.system.build import Toolchain as Toolchain  # noqa: PLC0414 - callers need only this module
from llamaops.system.build import toolchain as toolchain  # noqa: PLC0414 - callers need only this module
from llamaops.system.catalogue import catalogue
from llamaops.system.pip import Progress
from llamaops.system.ports import System

TARGETS = ("llama-completion", "llama-bench", "llama-fit-params", "llama-gguf-split", "llama-quantize")
SERVER_TARGETS = ("llama-server", "llama-cli")
WITH_SERVER = "-server"

_FULL = Recipe(
    title="full engine",
    targets=TARGETS,
    options=("-DBUILD_SHARED_LIBS=ON", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF"),
)
RECIPES = {
    "full-engine": _FULL,
    "full-engine-server": msgspec.structs.replace(_FULL, targets=(*TARGETS, *SERVER_TARGETS)),
    "old-engine-2025": Recipe(
        title="engine of August 2025",
        targets=SERVER_TARGETS,
        options=("-DBUILD_SHARED_LIBS=ON", "-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_BUILD_EXAMPLES=OFF"),
    ),
    # Its shared library would lie outside bin, and its programs were examples.
    "old-engine-2024": Recipe(
        title="engine of March 2024",
        targets=("server", "main"),
        options=("-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_EXAMPLES=ON", "-DLLAMA_CCACHE=OFF"),
        prefix="LLAMA",
    ),
}
"""How to build each of what `fetch` calls `BUILDS`."""


def source_of(name: str) -> str:
    """Return the name of the source in the catalogue that a build is made from."""
    return name.removesuffix(WITH_SERVER)


def build_name(system: System, name: str = "full-engine") -> str:
    """Return the name of a build: source, digest, instruction sets, and whether it has the server."""
    source = catalogue()[source_of(name)]
    folder = f"{source.name}-{source.version}-{source.sha256[:8]}-{builder.instructions(system)}"
    return folder if name == source_of(name) else folder + WITH_SERVER


def built(cache: str, system: System, name: str = "full-engine") -> str | None:
    """Return the folder of the programs if the build is in the cache; cheap.

    A build with the server serves whoever asks for one without.
    """
    larger = name + WITH_SERVER
    there = builder.built(cache, build_name(system, name))
    return there or (builder.built(cache, build_name(system, larger)) if larger in RECIPES else None)


def build(cache: str, system: System, progress: Progress, name: str = "full-engine") -> str:
    """Build the programs unless they are there, and return their folder.

    Args:
        cache: The cache folder.
        system: The machine.
        progress: Called with what is being done, the steps done and all steps.
        name: One of `RECIPES`.

    Raises: FetchError: no compiler, or a build that fails or takes too long.
    """
    if (there := built(cache, system, name)) is not None:
        return there
    recipe, tools = RECIPES[name], toolchain(system)
    if isinstance(tools, MissingTools):
        raise FetchError(
            tools.reason(recipe.title), hint="install a C++ compiler (g++ or clang), cmake and ninja"
        )
    item = catalogue()[source_of(name)]
    folder, _ = installer.install(item, cache, system, progress)
    return builder.build(
        posixpath.dirname(posixpath.join(folder, item.main)),
        cache,
        tree=build_name(system, source_of(name)),
        name=build_name(system, name),
        recipe=recipe,
        tools=tools,
        system=system,
        progress=progress,
    )
