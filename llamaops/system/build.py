"""Compile llama.cpp for the CPU and put the finished programs into the cache.

The build tree stays in the cache, so that an interrupted build goes on where it stopped. Only a
finished build is copied to its place, with a stamp; its programs find their libraries beside them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence

from llamaops.errors import FetchError
from llamaops.schema.bounds import MIB, Bounds
from llamaops.schema.shape import Shape
from llamaops.system import cache as store
from llamaops.system import process
from llamaops.system.cpu_flags import cpu_flags
from llamaops.system.pip import Progress
from llamaops.system.ports import System

CONFIGURE = Bounds(wall_s=300, keep_bytes=MIB, total_bytes=16 * MIB)
COMPILE = Bounds(wall_s=2400, grace_s=5, keep_bytes=MIB, total_bytes=64 * MIB)
NEEDED_BYTES = 400 * MIB
INSTRUCTIONS = {"avx2": ("avx", "avx2", "fma", "f16c", "bmi2")}
"""What a build may take for granted, by the flags of /proc/cpuinfo; without them it is `base`."""

OPTIONS = (
    "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_BUILD_RPATH=$ORIGIN", "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF",
)  # fmt: skip
"""What every build is configured with; a source that has no such option does not mind."""


class Recipe(Shape, frozen=True, kw_only=True):
    """How the sources of one age of llama.cpp are built."""

    title: str
    """What messages call the build."""
    targets: tuple[str, ...]
    """What to build; each is a program."""
    options: tuple[str, ...]
    """Options of cmake beside `OPTIONS`."""
    prefix: str = "GGML"
    """What the options for instruction sets begin with; LLAMA in sources before June 2024."""


class Toolchain(Shape, frozen=True, kw_only=True):
    """The programs a build needs."""

    cmake: str
    """Path of cmake."""
    ninja: str
    """Path of ninja."""
    compiler: str
    """Path of the C++ compiler, or what CXX says."""


class MissingTools(Shape, frozen=True, kw_only=True):
    """Why nothing can be built here."""

    names: tuple[str, ...]
    """The programs that are missing."""

    def reason(self, title: str) -> str:
        """Return why a build of this title cannot be made, as one sentence without a full stop."""
        return f"the {title} cannot be built here without {' and '.join(self.names)}"


def toolchain(system: System) -> Toolchain | MissingTools:
    """Find cmake and ninja, beside this Python or on PATH, and a C++ compiler."""
    cmake, ninja, compiler = (
        _beside_or_path("cmake", system),
        _beside_or_path("ninja", system),
        _compiler(system),
    )
    if cmake is None or ninja is None or compiler is None:
        wanted = (("cmake", cmake), ("ninja", ninja), ("a C++ compiler", compiler))
        return MissingTools(names=tuple(name for name, path in wanted if path is None))
    return Toolchain(cmake=cmake, ninja=ninja, compiler=compiler)


def _beside_or_path(name: str, system: System) -> str | None:
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if system.access(beside, os.X_OK) else system.which(name)


def _compiler(system: System) -> str | None:
    if named := system.environ.get("CXX"):  # may carry arguments (ccache g++), so cmake judges it
        return named
    return next((path for name in ("c++", "g++", "clang++") if (path := system.which(name))), None)


def instructions(system: System) -> str:
    """Return the name of what a build for this host may take for granted: avx2 or base."""
    flags = cpu_flags(system) or frozenset()
    return next((name for name, needed in INSTRUCTIONS.items() if flags.issuperset(needed)), "base")


def built(cache: str, name: str) -> str | None:
    """Return the folder of the programs of a build if it is in the cache; cheap."""
    folder = os.path.join(cache, "engines", name)
    return os.path.join(folder, "bin") if store.is_whole(folder, name) else None


def build(
    source: str, cache: str, *, tree: str, name: str, recipe: Recipe, tools: Toolchain,
    system: System, progress: Progress,
) -> str:  # fmt: skip
    """Build the targets of a recipe and return the folder of the programs.

    Args:
        source: The folder of llama.cpp's own CMakeLists.txt.
        cache: The cache folder.
        tree: The name of the build tree, which builds with more targets share.
        name: The name of the finished build.
        recipe: What to build, and how.
        tools: What to build with.
        system: The machine.
        progress: Called with the steps done and all steps.

    Raises: FetchError.
    """
    wait_s = COMPILE.wall_s + CONFIGURE.wall_s
    with store.explained(recipe.title, cache), store.locked(cache, wait_s=wait_s):
        if (there := built(cache, name)) is not None:  # another llamaops was faster
            return there
        store.need_space(cache, needed_bytes=NEEDED_BYTES, title=recipe.title)
        objects = os.path.join(cache, "builds", tree)
        _compile(source, objects, recipe, tools, system, progress)
        with store.work_folder(cache) as work:
            folder = _collect(objects, recipe.targets, work)
            store.publish(folder, os.path.join(cache, "engines", name), name)
    return os.path.join(cache, "engines", name, "bin")


def _compile(
    source: str, objects: str, recipe: Recipe, tools: Toolchain, system: System, progress: Progress
) -> None:
    os.makedirs(objects, mode=0o700, exist_ok=True)
    # Compilers and their settings come from the operator's environment, so it is passed whole.
    env = {**system.environ, "NINJA_STATUS": "[%f/%t] "}
    place = ["-S", source, "-B", objects, f"-DCMAKE_MAKE_PROGRAM={tools.ninja}"]
    configure = [tools.cmake, *place, *OPTIONS, *recipe.options, *_instruction_options(recipe, system)]
    progress(f"configure {recipe.title}", 0, None)
    _must(process.run(configure, bounds=CONFIGURE, env=env), "configured", objects, recipe)

    def steps(chunk: bytes) -> None:
        if seen := re.findall(rb"\[(\d+)/(\d+)\]", chunk):
            progress(f"build {recipe.title}", int(seen[-1][0]), int(seen[-1][1]))

    argv = [tools.ninja, "-C", objects, "-j", str(_cores()), *recipe.targets]
    _must(process.run(argv, bounds=COMPILE, env=env, on_stdout=steps), "built", objects, recipe)


def _instruction_options(recipe: Recipe, system: System) -> list[str]:
    """Return the switches of every instruction set; never those of the machine that happens to compile."""
    switch = "ON" if instructions(system) == "avx2" else "OFF"
    sets = [f"-D{recipe.prefix}_{name.upper()}={switch}" for name in INSTRUCTIONS["avx2"]]
    return [f"-D{recipe.prefix}_NATIVE=OFF", *sets]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _must(done: process.Completed, what: str, objects: str, recipe: Recipe) -> None:
    if done.ok:
        return
    log = os.path.join(objects, "llamaops-failed.log")
    with open(log, "wb") as file:
        file.write(done.stdout.data + b"\n" + done.stderr.data)
    lines = (done.stdout.text + "\n" + done.stderr.text).splitlines()
    first = next(
        (line.strip() for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)), "no error line"
    )
    raise FetchError(
        f"the {recipe.title} could not be {what} ({process.describe(done.end)}): {first[:200]}",
        hint=f"the whole output is in {log}",
    )


def _collect(objects: str, targets: Sequence[str], work: str) -> str:
    folder = os.path.join(work, "built")
    programs = os.path.join(folder, "bin")
    os.makedirs(programs, mode=0o700)
    for entry in os.scandir(os.path.join(objects, "bin")):
        if entry.name in targets or ".so" in entry.name or entry.name.endswith(".dylib"):
            shutil.copy2(entry.path, os.path.join(programs, entry.name), follow_symlinks=False)
    lacking = [name for name in targets if not os.path.isfile(os.path.join(programs, name))]
    if lacking:
        raise FetchError(
            f"the build did not make {', '.join(lacking)}", hint="report this as a defect of llamaops"
        )
    return folder
