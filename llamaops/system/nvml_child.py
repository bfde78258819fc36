"""Ask NVML what `nvml` wants to know; a program of its own, never imported by llamaops.

It prints one JSON line before each call and one with the answer, so that a call that does not return is
known by name and loses nothing that was answered before it. Run as

    python -I -S nvml_child.py FOLDER_OF_PYNVML
"""

from __future__ import annotations

import ctypes
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Where drivers put the library without telling the loader: WSL, container runtimes, NixOS.
_ELSEWHERE = (
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)
_LIBRARY = "libnvidia-ml.so.1"
_MAX_DEVICES = 64
_MIG_QUESTIONS = 4  # name, uuid, pci, memory
_MAX_PROCESSES = 256


class _NotFoundError(Exception):
    value = 12  # NVML_ERROR_LIBRARY_NOT_FOUND


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _ask(place: dict[str, Any], query: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - JSON
    """Make one call, print what it said, and return its value; None after an error."""
    line = {**place, "query": query}
    _say(line)
    try:
        value = call()
        json.dumps(value)
    except Exception as error:  # noqa: BLE001 - whatever one call raises is its answer
        _say({**line, "code": getattr(error, "value", -1), "text": str(error) or type(error).__name__})
        return None
    _say({**line, "value": value})
    return value


def _load() -> str:
    """Load the library, so that the binding finds it by its name."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as first:
        for path in _ELSEWHERE:
            try:
                ctypes.CDLL(path)
            except OSError:
                continue
            return path
        if "No such file" in str(first):
            raise _NotFoundError(_LIBRARY + ": no such library") from None
        raise
    return _LIBRARY


def _memory(nvml: Any, handle: Any) -> dict[str, int]:  # noqa: ANN401 - the binding has no types
    try:
        told = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError:  # older drivers count reserved memory as used
        told = nvml.nvmlDeviceGetMemoryInfo(handle)
    return {"total": told.total, "free": told.free, "used": told.used}


def _processes(nvml: Any, handle: Any) -> list[dict[str, int | None]]:  # noqa: ANN401
    found: dict[int, int | None] = {}
    for told in [
        *nvml.nvmlDeviceGetComputeRunningProcesses(handle),
        *nvml.nvmlDeviceGetGraphicsRunningProcesses(handle),
    ]:
        found[told.pid] = told.usedGpuMemory
    return [{"pid": pid, "used": used} for pid, used in list(found.items())[:_MAX_PROCESSES]]


def _throttle(nvml: Any, handle: Any) -> int:  # noqa: ANN401
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except nvml.NVMLError:
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _uncorrected(nvml: Any, handle: Any) -> int:  # noqa: ANN401
    return int(
        nvml.nvmlDeviceGetTotalEccErrors(
            handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
    )


def _questions(nvml: Any, handle: Any) -> Iterator[tuple[str, Callable[[], Any]]]:  # noqa: ANN401
    yield "name", lambda: nvml.nvmlDeviceGetName(handle)
    yield "uuid", lambda: nvml.nvmlDeviceGetUUID(handle)
    yield "pci", lambda: nvml.nvmlDeviceGetPciInfo(handle).busId
    yield "memory", lambda: _memory(nvml, handle)
    yield "compute_capability", lambda: list(nvml.nvmlDeviceGetCudaComputeCapability(handle))
    yield "compute_mode", lambda: nvml.nvmlDeviceGetComputeMode(handle)
    yield "mig_mode", lambda: list(nvml.nvmlDeviceGetMigMode(handle))
    yield "ecc_mode", lambda: list(nvml.nvmlDeviceGetEccMode(handle))
    yield "ecc_uncorrected", lambda: _uncorrected(nvml, handle)
    yield "persistence", lambda: nvml.nvmlDeviceGetPersistenceMode(handle)
    yield "display", lambda: nvml.nvmlDeviceGetDisplayActive(handle)
    yield "power_limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle)
    yield "power_draw", lambda: nvml.nvmlDeviceGetPowerUsage(handle)
    yield "temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
    yield "throttle", lambda: _throttle(nvml, handle)
    yield "utilization", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu
    yield (
        "link",
        lambda: [
            nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
            nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        ],
    )
    yield (
        "link_max",
        lambda: [
            nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
            nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        ],
    )
    yield "processes", lambda: _processes(nvml, handle)


def _ask_device(nvml: Any, index: int) -> None:  # noqa: ANN401
    handles: list[Any] = []
    place = {"device": index}

    def find() -> bool:
        handles.append(nvml.nvmlDeviceGetHandleByIndex(index))
        return True

    _ask(place, "handle", find)
    if not handles:
        return
    for query, call in _questions(nvml, handles[0]):
        told = _ask(place, query, call)
        if query == "mig_mode" and told and told[0] == 1:
            _ask_mig(nvml, index, handles[0])


def _ask_mig(nvml: Any, index: int, parent: Any) -> None:  # noqa: ANN401
    count = _ask({"device": index}, "mig_count", lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(parent))
    for number in range(min(count or 0, _MAX_DEVICES)):
        place = {"device": index, "mig": number}
        handles: list[Any] = []

        def find(number: int = number, handles: list[Any] = handles) -> bool:
            handles.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, number))
            return True

        _ask(place, "handle", find)
        if not handles:
            continue  # an empty place
        for query, call in itertools.islice(_questions(nvml, handles[0]), _MIG_QUESTIONS):
            _ask(place, query, call)


def main() -> None:
    """Ask everything, in an order in which what matters most comes first."""
    if _ask({}, "library", _load) is None:
        return
    sys.path.insert(0, sys.argv[1])
    import pynvml

    def begin() -> bool:
        pynvml.nvmlInit()
        return True

    if _ask({}, "init", begin) is None:
        return
    _ask({}, "driver_version", pynvml.nvmlSystemGetDriverVersion)
    _ask({}, "cuda_version", pynvml.nvmlSystemGetCudaDriverVersion)
    _ask({}, "nvml_version", pynvml.nvmlSystemGetNVMLVersion)
    count = _ask({}, "count", pynvml.nvmlDeviceGetCount)
    for index in range(min(count or 0, _MAX_DEVICES)):
        _ask_device(pynvml, index)


if __name__ == "__main__":
    main()
