"""AMD devices: the kernel driver's files first, the vendor's tool for what only it knows."""

from __future__ import annotations

from typing import Any

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.command import tell
from llamaops.facts.derive import absent, derive, read_fact, read_int
from llamaops.facts.observe import observe
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Known, Source
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

DRM = "/sys/class/drm"
NODES = "/sys/class/kfd/kfd/topology/nodes"
AMD = 0x1002


class AmdDevice(Shape, frozen=True, kw_only=True):
    """A device that the driver amdgpu shows in /sys."""

    card: str
    """Name under /sys/class/drm."""
    pci_address: Fact[str]
    """Address on the bus."""
    name: Fact[str]
    """Product name, where the firmware tells one."""
    memory_total_bytes: Fact[int]
    """Device memory (VRAM); an integrated device has little and takes the host's (GTT)."""
    memory_used_bytes: Fact[int]
    """Of that, in use."""
    shared_total_bytes: Fact[int]
    """Host memory that the device may map (GTT)."""
    busy_percent: Fact[int]
    """Share of the last sample in which it worked."""


class AmdToolDevice(Shape, frozen=True, kw_only=True):
    """A device as rocm-smi or amd-smi tells it."""

    index: str
    """Name that the tool gives it."""
    name: str | None
    """Product name."""
    memory_total_bytes: int | None
    """Device memory."""
    memory_used_bytes: int | None
    """Of that, in use."""


class AmdFacts(Shape, frozen=True, kw_only=True):
    """AMD's driver and devices."""

    devices: Fact[tuple[AmdDevice, ...]]
    """Devices under /sys/class/drm; empty when the folder was read and has none."""
    compute_targets: Fact[tuple[str, ...]]
    """Architectures of the compute nodes (gfx1100 and so on): what a ROCm build must hold code for."""
    driver_version: Fact[str]
    """Version of the module, where it is not the kernel's own."""
    tool_devices: Fact[tuple[AmdToolDevice, ...]]
    """Devices that the vendor's tool lists."""


class _Size(msgspec.Struct, frozen=True):
    value: int | float | str
    unit: str = "MB"


class _Asic(msgspec.Struct, frozen=True):
    market_name: str | None = None


class _Vram(msgspec.Struct, frozen=True):
    size: _Size | str | None = None


class _Row(msgspec.Struct, frozen=True):
    """A device of amd-smi, which writes `N/A` where it knows nothing."""

    gpu: int | str = "?"
    asic: _Asic | str | None = None
    vram: _Vram | str | None = None


class _Rows(msgspec.Struct, frozen=True):
    gpu_data: list[_Row]


def collect_amd(system: System) -> AmdFacts:
    """Read what amdgpu and the compute driver show, and ask the tool that is installed."""
    return AmdFacts(
        devices=observe(
            Source(kind="file", name=DRM),
            read=lambda: drm_cards(system, AMD),
            parse=lambda cards: tuple(_device(system, card) for card in cards),
        ),
        compute_targets=observe(
            Source(kind="file", name=NODES),
            read=lambda: system.list_dir(NODES),
            parse=lambda names: tuple(target for name in names if (target := _target(system, name))),
        ),
        driver_version=read_fact(system, "/sys/module/amdgpu/version", str.strip, limit_bytes=KIB),
        tool_devices=_tool(system),
    )


def drm_cards(system: System, vendor: int) -> list[str]:
    """Return the cards of one vendor, connectors left out.

    Raises: OSError when the folder cannot be read; a kernel without graphics has none.
    """
    cards = [name for name in system.list_dir(DRM) if name.removeprefix("card").isdecimal()]
    return [card for card in cards if _vendor(system, card) == vendor]


def _vendor(system: System, card: str) -> int | None:
    told = read_fact(system, f"{DRM}/{card}/device/vendor", lambda text: int(text, 0), limit_bytes=KIB)
    return told.value if isinstance(told, Known) else None


def card_address(system: System, card: str) -> Fact[str]:
    """Return the bus address of a card."""
    link = f"{DRM}/{card}/device"
    return observe(Source(kind="file", name=link), read=lambda: system.realpath(link), parse=_address)


def _address(real: str) -> str:
    leaf = real.rpartition("/")[2]
    if ":" not in leaf:
        raise ParseError("not on the PCI bus")
    return leaf


def _device(system: System, card: str) -> AmdDevice:
    folder = f"{DRM}/{card}/device"
    return AmdDevice(
        card=card,
        pci_address=card_address(system, card),
        name=read_fact(system, f"{folder}/product_name", _name, limit_bytes=KIB),
        memory_total_bytes=read_int(system, f"{folder}/mem_info_vram_total"),
        memory_used_bytes=read_int(system, f"{folder}/mem_info_vram_used"),
        shared_total_bytes=read_int(system, f"{folder}/mem_info_gtt_total"),
        busy_percent=read_int(system, f"{folder}/gpu_busy_percent"),
    )


def _name(text: str) -> str:
    if not text.strip():
        raise FileNotFoundError(2, "the firmware tells no name")
    return text.strip()


def _target(system: System, node: str) -> str | None:
    told = read_fact(system, f"{NODES}/{node}/properties", parse_target)
    return told.value if isinstance(told, Known) else None


def parse_target(text: str) -> str | None:
    """Return the architecture of a compute node from its properties; None for a processor.

    `gfx_target_version 90402` is written 9.4.2 and called gfx942: the last digit in hex.
    """
    for line in text.splitlines():
        name, _blank, value = line.partition(" ")
        if name == "gfx_target_version" and value.strip().isdecimal() and int(value):
            number = int(value)
            return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"
    return None


def _tool(system: System) -> Fact[tuple[AmdToolDevice, ...]]:
    rocm = system.which("rocm-smi")
    if rocm is not None:
        argv = (rocm, "--showproductname", "--showmeminfo", "vram", "--json")
        return derive(tell(system, argv), parse_rocm_smi)
    amd = system.which("amd-smi")
    if amd is not None:
        return derive(tell(system, (amd, "static", "--asic", "--vram", "--json")), parse_amd_smi)
    return absent("neither rocm-smi nor amd-smi is on PATH", Source(kind="command", name="rocm-smi, amd-smi"))


def parse_rocm_smi(text: str) -> tuple[AmdToolDevice, ...]:
    """Parse rocm-smi's JSON: an object of cards, each with texts by long names.

    Raises: ParseError.
    """
    # Beside the cards there is an entry about the system; every value is a text.
    cards: dict[str, dict[str, Any]] = json_from(text, dict[str, dict[str, Any]])
    return tuple(
        AmdToolDevice(
            index=index,
            name=_first(card, "Card Series", "Card series", "Card Model", "Card model"),
            memory_total_bytes=_bytes(_first(card, "VRAM Total Memory (B)")),
            memory_used_bytes=_bytes(_first(card, "VRAM Total Used Memory (B)")),
        )
        for index, card in cards.items()
        if index.startswith("card")
    )


def parse_amd_smi(text: str) -> tuple[AmdToolDevice, ...]:
    """Parse amd-smi's JSON: a list of devices, in newer versions under `gpu_data`.

    Raises: ParseError.
    """
    told: _Rows | list[_Row] = json_from(text, _Rows | list[_Row])
    return tuple(
        AmdToolDevice(
            index=str(row.gpu),
            name=row.asic.market_name if isinstance(row.asic, _Asic) else None,
            memory_total_bytes=_size(row.vram.size) if isinstance(row.vram, _Vram) else None,
            memory_used_bytes=None,
        )
        for row in (told.gpu_data if isinstance(told, _Rows) else told)
    )


def json_from(text: str, type_: Any) -> Any:  # noqa: ANN401 - what type_ says
    """Decode the JSON that starts at the first bracket: tools print warnings before it.

    Raises: ParseError.
    """
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    try:
        return msgspec.json.decode(text[min(starts) :] if starts else text, type=type_)
    except msgspec.MsgspecError as error:
        raise ParseError(f"not the JSON that was expected: {error}") from None


def _first(row: dict[str, Any], *names: str) -> str | None:
    return next((str(row[name]) for name in names if row.get(name)), None)


def _bytes(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _size(told: _Size | str | None) -> int | None:
    units = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    if isinstance(told, _Size) and isinstance(told.value, int) and told.unit in units:
        return told.value * units[told.unit]
    return None
