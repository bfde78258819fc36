"""Compilers of accelerator back ends, and the variables that choose among devices."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.facts.command import tell
from llamaops.facts.derive import derive
from llamaops.schema.bounds import KIB, Bounds
from llamaops.schema.fact import Fact, Source, known
from llamaops.schema.shape import Shape
from llamaops.system.parallel import start
from llamaops.system.ports import System

_BOUNDS = Bounds(wall_s=10.0, keep_bytes=64 * KIB, total_bytes=1 << 20)

# Compiler, where it is when PATH does not have it, and the words before its version.
_COMPILERS = (
    ("nvcc", "/usr/local/cuda/bin/nvcc", ("release ",)),
    ("hipcc", "/opt/rocm/bin/hipcc", ("HIP version: ",)),
    ("icpx", "/opt/intel/oneapi/compiler/latest/bin/icpx", ("Compiler ",)),
    ("glslc", "/usr/local/bin/glslc", ("shaderc ",)),
)

VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION",
    "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK", "SYCL_DEVICE_FILTER", "SYCL_DEVICE_ALLOWLIST",
    "GGML_VK_VISIBLE_DEVICES", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE", "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
    "MUSA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES",
)  # fmt: skip
_VALUE_LENGTH = 500


class Toolkit(Shape, frozen=True, kw_only=True):
    """An installed compiler."""

    name: str
    """Name of the program."""
    path: str
    """Where it is."""
    version: Fact[str]
    """Version that it tells."""


class Variable(Shape, frozen=True, kw_only=True):
    """An environment variable that chooses or hides devices."""

    name: str
    """Name."""
    value: str
    """Value; device numbers, identifiers and paths."""


def collect_toolkits(system: System) -> Fact[tuple[Toolkit, ...]]:
    """Look for the compilers on PATH and where their installers put them; ask each for its version."""
    source = Source(kind="computed", name=f"{', '.join(one[0] for one in _COMPILERS)} on PATH and by default")
    asked = [
        (name, path, start(lambda path=path, words=words: _version(system, path, words)))  # type: ignore[misc]  # mypy cannot type a lambda's defaults
        for name, default, words in _COMPILERS
        if (path := _find(system, name, default)) is not None
    ]
    return known(
        tuple(Toolkit(name=name, path=path, version=version.result()) for name, path, version in asked),
        source,
    )


def _find(system: System, name: str, default: str) -> str | None:
    found = system.which(name)
    if found is not None:
        return found
    try:
        system.stat(default)
    except OSError:
        return None
    return default


def _version(system: System, path: str, words: tuple[str, ...]) -> Fact[str]:
    return derive(tell(system, (path, "--version"), bounds=_BOUNDS), lambda text: parse_version(text, words))


def parse_version(text: str, words: tuple[str, ...]) -> str:
    """Return the word after one of `words`.

    Raises: ParseError.
    """
    for word in words:
        rest = text.partition(word)[2].split()
        if rest:
            return rest[0].rstrip(",")
    raise ParseError(f"no version after {words[0]!r}")


def collect_variables(system: System) -> Fact[tuple[Variable, ...]]:
    """Return the variables that choose devices and are set, empty ones included."""
    environ = system.environ
    return known(
        tuple(
            Variable(name=name, value=environ[name][:_VALUE_LENGTH]) for name in VARIABLES if name in environ
        ),
        Source(kind="computed", name="environment"),
    )
