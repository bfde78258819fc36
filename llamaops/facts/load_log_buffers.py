"""Where a buffer lies, by its name: host, device of this machine, or a device behind RPC."""

from __future__ import annotations

import re
from typing import Literal

from llamaops.schema.shape import Shape

MIB = 1024 * 1024

Place = Literal["host", "device", "remote", "unrecognised"]

# Exact names. Pinned host memory carries the GPU's name and `_Host`: `CUDA_Host` is not on CUDA0.
HOST_NAMES = frozenset(
    {
        "CPU", "CPU_Mapped", "CPU_REPACK", "CPU_KLEIDIAI", "CPU_AARCH64", "CPU_HBM", "CPU_RISCV64_SPACEMIT",
        "AMX", "BLAS", "Host", "RAM",
        "CUDA_Host", "ROCm_Host", "HIP_Host", "MUSA_Host", "Vulkan_Host", "SYCL_Host", "CANN_Host",
        "OpenVINO_Host", "OPENVINO_Host", "Kompute_Host", "WebGPU_Host",
    }
)  # fmt: skip
# `CPU_...` and `..._Host` stay the engine's way to name host memory when a new one comes.
_HOST_LIKE = re.compile(r"CPU_\w{1,40}|[A-Za-z]{1,20}\d{0,3}_Host")
_REMOTE = re.compile(r"(RPC\d{0,4})\[([^\]]{1,255})\]")
_DEVICE = re.compile(
    r"((?:CUDA|ROCm|HIP|MUSA|Vulkan|MTL|Metal|SYCL|CANN|OpenCL|GPUOpenCL|Kompute|WebGPU|HTP|Hexagon|"
    r"OPENVINO|OpenVINO|ZDNN|zDNN|ET|VirtGPU|virtgpu|VRAM|NPU|GPU)\d{0,4})"
    r"(?:_(?:Mapped|Private|Shared|Split)|-REPACK)?(?: \(\w{1,20}\))?"
)
SOFTWARE = re.compile(
    r"llvmpipe|lavapipe|swiftshader|softpipe|software rasterizer|basic render driver|\bpocl\b", re.IGNORECASE
)
"""Drivers that compute on the CPU although the engine calls them a GPU."""


class Buffer(Shape, frozen=True, kw_only=True):
    """Memory of one kind under one buffer name; several lines of the same name are added."""

    name: str
    """The name in the log, such as `CUDA0`, `CPU_Mapped` or `RPC0[host:port]`."""
    size_bytes: int
    """Bytes; with memory mapping a host buffer is a span of the file, not a sum of tensors."""
    place: Place
    """`remote` is a device of another process over RPC; `unrecognised` is never proof of a device."""
    device: str | None = None
    """The device it lies on, as --list-devices names it; none for host memory."""
    endpoint: str | None = None
    """Host and port of the RPC server."""
    lines: int = 1
    """How many lines were added up."""

    @property
    def on_device(self) -> bool:
        """Whether it is memory of a device, here or behind RPC."""
        return self.place in {"device", "remote"}


def place_of(name: str) -> tuple[Place, str | None, str | None]:
    """Return place, device and RPC endpoint for a buffer name.

    Matched exactly: `CUDA_Host` is pinned host memory, `CUDA0_Split` is on the device.
    """
    if name in HOST_NAMES or _HOST_LIKE.fullmatch(name):
        return "host", None, None
    remote = _REMOTE.fullmatch(name)
    if remote:
        return "remote", remote[1], remote[2]
    device = _DEVICE.fullmatch(name)
    if device:
        return "device", device[1], None
    return "unrecognised", None, None


def buffer_of(name: str, size_bytes: int, lines: int, known_devices: frozenset[str]) -> Buffer:
    """Describe a buffer; a name that the log itself lists as a device is one, however new it is."""
    place, device, endpoint = place_of(name)
    if place == "unrecognised":
        base = re.split(r"[_\-\[]", name, maxsplit=1)[0]
        for candidate in (name, base):
            if candidate in known_devices:
                place, device = "device", candidate
                break
    return Buffer(
        name=name, size_bytes=size_bytes, place=place, device=device, endpoint=endpoint, lines=lines
    )


def mib_to_bytes(text: str) -> int:
    """Turn the log's MiB (called MB in 2023, with the same meaning) into bytes; 0 for nonsense."""
    try:
        return int(float(text) * MIB)
    except (ValueError, OverflowError):
        return 0
