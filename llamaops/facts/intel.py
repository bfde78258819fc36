"""Intel devices: the kernel driver's files, xpu-smi, and what SYCL lists."""

from __future__ import annotations

import msgspec

from llamaops.facts.amd import DRM, card_address, drm_cards, json_from
from llamaops.facts.command import tell
from llamaops.facts.derive import absent, derive, read_int
from llamaops.facts.observe import observe
from llamaops.schema.fact import Fact, Source
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

INTEL = 0x8086


class IntelDevice(Shape, frozen=True, kw_only=True):
    """A device that i915 or xe shows in /sys."""

    card: str
    """Name under /sys/class/drm."""
    pci_address: Fact[str]
    """Address on the bus."""
    memory_total_bytes: Fact[int]
    """Memory of its own; integrated devices have none, and most kernels do not tell."""


class IntelToolDevice(Shape, frozen=True, kw_only=True):
    """A device as xpu-smi tells it."""

    index: int
    """Number in the tool."""
    name: str | None
    """Product name."""
    memory_total_bytes: int | None
    """Memory of its own."""


class IntelFacts(Shape, frozen=True, kw_only=True):
    """Intel's driver and devices."""

    devices: Fact[tuple[IntelDevice, ...]]
    """Devices under /sys/class/drm; empty when the folder was read and has none."""
    tool_devices: Fact[tuple[IntelToolDevice, ...]]
    """Devices that xpu-smi lists."""
    sycl_devices: Fact[tuple[str, ...]]
    """Devices that sycl-ls lists, with their back ends."""


class _Row(msgspec.Struct, frozen=True):
    device_id: int
    device_name: str | None = None
    memory_physical_size_byte: int | str | None = None


class _Told(msgspec.Struct, frozen=True):
    device_list: list[_Row]


def collect_intel(system: System) -> IntelFacts:
    """Read what the kernel driver shows, and ask the tools that are installed."""
    return IntelFacts(
        devices=observe(
            Source(kind="file", name=DRM),
            read=lambda: drm_cards(system, INTEL),
            parse=lambda cards: tuple(_device(system, card) for card in cards),
        ),
        tool_devices=derive(_ask(system, "xpu-smi", "discovery", "-j"), parse_xpu_smi),
        sycl_devices=derive(_ask(system, "sycl-ls"), parse_sycl_ls),
    )


def _ask(system: System, name: str, *arguments: str) -> Fact[str]:
    path = system.which(name)
    if path is None:
        return absent(f"{name} is not on PATH", Source(kind="command", name=name))
    return tell(system, (path, *arguments))


def _device(system: System, card: str) -> IntelDevice:
    return IntelDevice(
        card=card,
        pci_address=card_address(system, card),
        memory_total_bytes=read_int(system, f"{DRM}/{card}/lmem_total_bytes"),
    )


def parse_xpu_smi(text: str) -> tuple[IntelToolDevice, ...]:
    """Parse the JSON of `xpu-smi discovery -j`.

    Raises: ParseError.
    """
    told: _Told = json_from(text, _Told)
    return tuple(
        IntelToolDevice(
            index=row.device_id,
            name=row.device_name,
            memory_total_bytes=_number(row.memory_physical_size_byte),
        )
        for row in told.device_list
    )


def _number(told: object) -> int | None:
    return int(str(told)) if str(told).isdecimal() else None


def parse_sycl_ls(text: str) -> tuple[str, ...]:
    """Return the lines of sycl-ls that name a device."""
    return tuple(line.strip() for line in text.splitlines() if line.startswith("[") and "]" in line)
