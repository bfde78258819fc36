"""Accelerators as text: what /sys, /dev and vendors' tools hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tests.fakes import nvml
from tests.fakes.system import FakeSystem

GIB = 1 << 30
VULKANINFO = "/usr/bin/vulkaninfo"
SUMMARY = """\
==========
VULKANINFO
==========

Vulkan Instance Version: 1.3.275


Instance Extensions: count = 23
-------------------------------
VK_KHR_surface                         : extension revision 25

Devices:
========
GPU0:
\tapiVersion         = 1.3.274
\tdriverVersion      = 24.0.9
\tvendorID           = 0x1002
\tdeviceID           = 0x744c
\tdeviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
\tdeviceName         = AMD Radeon RX 7900 XTX (RADV NAVI31)
\tdriverID           = DRIVER_ID_MESA_RADV
\tdriverName         = radv
\tdriverInfo         = Mesa 24.0.9
GPU1:
\tapiVersion         = 4206847 (1.3.255)
\tvendorID           = 0x10005
\tdeviceType         = PHYSICAL_DEVICE_TYPE_CPU
\tdeviceName         = llvmpipe (LLVM 17.0.6, 256 bits)
"""


def pci(address: str, vendor: int, class_: int = 0x030000) -> dict[str, str]:
    folder = f"/sys/bus/pci/devices/{address}"
    return {
        f"{folder}/class": f"{class_:#08x}\n",
        f"{folder}/vendor": f"{vendor:#06x}\n",
        f"{folder}/device": "0x744c\n",
    }


def bound(address: str, driver: str) -> dict[str, str]:
    return {f"/sys/bus/pci/devices/{address}/driver": f"/sys/bus/pci/drivers/{driver}"}


def node(mode: int = 0o660, gid: int = 148) -> os.stat_result:
    return os.stat_result((0o020000 | mode, 1, 1, 1, 0, gid, 0, 0, 0, 0))


def fake(
    files: Mapping[str, str | bytes | OSError] | None = None,
    *,
    nodes: Mapping[str, os.stat_result] | None = None,
    commands: Mapping[tuple[str, ...], Any] | None = None,
    **more: Any,
) -> FakeSystem:
    """A machine whose PCI bus and groups can be read; without `commands` it has no NVML."""
    everything: dict[str, str | bytes | OSError] = {
        **pci("0000:00:00.0", 0x8086, 0x060000),
        "/etc/group": "root:x:0:\nrender:x:992:\n",
        **(files or {}),
        **dict.fromkeys(nodes or {}, ""),
    }
    told = nvml.said(*nvml.MISSING) if commands is None else commands
    return FakeSystem(files=everything, stats=nodes or {}, commands=told, **more)


def amd_files() -> dict[str, str]:
    device = "/sys/class/drm/card1/device"
    nodes = "/sys/class/kfd/kfd/topology/nodes"
    return {
        **pci("0000:03:00.0", 0x1002),
        f"{device}/vendor": "0x1002\n",
        f"{device}/mem_info_vram_total": f"{24 * GIB}\n",
        f"{device}/mem_info_vram_used": f"{GIB}\n",
        f"{device}/mem_info_gtt_total": f"{32 * GIB}\n",
        f"{device}/gpu_busy_percent": "3\n",
        f"{device}/product_name": "\n",
        "/sys/class/drm/card1-DP-1/status": "connected\n",
        f"{nodes}/0/properties": "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n",
        f"{nodes}/1/properties": "cpu_cores_count 0\nsimd_count 192\ngfx_target_version 110000\n",
    }


def amd_links() -> dict[str, str]:
    return bound("0000:03:00.0", "amdgpu")


AMD_NODES = ("/dev/kfd", "/dev/dri/renderD128")
