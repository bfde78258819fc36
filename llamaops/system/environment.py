"""The environment that children get: what they need to find libraries and devices, and no more.

llama.cpp reads LLAMA_ARG_* variables and configuration files in every program, --version included, so
an inherited variable changes what is measured. Secrets have no business in a child either.
"""

from __future__ import annotations

from collections.abc import Mapping

# Names and prefixes that a child keeps: finding libraries, choosing devices, locale, and temporary files.
KEPT_NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TEMP", "TMP",
        "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
        "XDG_RUNTIME_DIR", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_CACHE_HOME", "DISPLAY",
        "WAYLAND_DISPLAY", "SYSTEMROOT",
    }
)  # fmt: skip
KEPT_PREFIXES = (
    "LC_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ROCM_", "HSA_", "GPU_", "GGML_", "VK_", "MESA_",
    "LIBGL_", "LP_", "ONEAPI_", "SYCL_", "ZES_", "ZE_", "MTL_", "METAL_", "OMP_", "GOMP_", "KMP_",
    "OPENBLAS_", "MKL_", "OCL_", "RADV_", "ANV_",
)  # fmt: skip

# Names that change what a llama.cpp program does; removed, and worth telling the operator about.
CHANGES_ENGINE_PREFIXES = ("LLAMA_", "AIP_")
CHANGES_ENGINE_NAMES = frozenset({"GGML_BACKEND_PATH", "MTMD_BACKEND_DEVICE", "HF_TOKEN"})


def child_environment(
    environ: Mapping[str, str], *, config_home: str, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment for a child.

    Args:
        environ: Our own environment.
        config_home: An empty folder; llama.cpp then finds no user configuration file.
        extra: Variables to add, such as a device selection.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if (name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)) and name not in CHANGES_ENGINE_NAMES
    }
    # An abort forks gdb on the process itself where gdb is installed; a crash should stay quick.
    return {**kept, "GGML_NO_BACKTRACE": "1", "XDG_CONFIG_HOME": config_home, **(extra or {})}


def engine_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names (never the values) of inherited variables that would change the engine."""
    return tuple(
        sorted(
            name
            for name in environ
            if name.startswith(CHANGES_ENGINE_PREFIXES) or name in CHANGES_ENGINE_NAMES
        )
    )
