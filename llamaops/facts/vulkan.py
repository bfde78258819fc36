"""Vulkan: drivers that are registered, and devices that the loader really opens."""

from __future__ import annotations

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.command import tell
from llamaops.facts.derive import absent, derive, read_fact
from llamaops.schema.fact import Fact, Source, known
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

_FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "/run/opengl-driver/share/vulkan/icd.d",
    "/usr/local/nvidia/share/vulkan/icd.d",
)
_LOADER = "libvulkan.so.1"
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/riscv64-linux-gnu",
    "/usr/lib/powerpc64le-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib",
)  # fmt: skip
_MAX_DRIVERS = 64


class VulkanDriver(Shape, frozen=True, kw_only=True):
    """A registered driver (ICD)."""

    file: str
    """Its description."""
    library: Fact[str]
    """Library that it names."""


class VulkanDevice(Shape, frozen=True, kw_only=True):
    """A device that the loader opened."""

    index: int
    """Number in vulkaninfo; llama.cpp leaves out software devices and may count otherwise."""
    name: str
    """Product name."""
    kind: str
    """`discrete_gpu`, `integrated_gpu`, `virtual_gpu` or `cpu` (a software renderer such as llvmpipe)."""
    driver: str | None
    """Driver's name and version."""
    api_version: str | None
    """Vulkan version of the device."""
    vendor_id: str | None
    """Vendor's number on the bus, in hex."""


class VulkanFacts(Shape, frozen=True, kw_only=True):
    """What Vulkan has here."""

    loader: Fact[str]
    """Where the loader library is; without it no Vulkan build sees a device."""
    drivers: Fact[tuple[VulkanDriver, ...]]
    """Registered drivers; empty when the folders were read and have none."""
    instance_version: Fact[str]
    """Version of the loader."""
    devices: Fact[tuple[VulkanDevice, ...]]
    """Devices that vulkaninfo lists."""


def collect_vulkan(system: System) -> VulkanFacts:
    """Read the registered drivers and ask vulkaninfo for its summary."""
    # -j would write a file into the working folder; the summary goes to standard output.
    path = system.which("vulkaninfo")
    source = Source(kind="command", name="vulkaninfo")
    told = absent("vulkaninfo is not on PATH", source) if path is None else tell(system, (path, "--summary"))
    return VulkanFacts(
        loader=_loader(system),
        drivers=_drivers(system),
        instance_version=derive(told, parse_instance_version),
        devices=derive(told, parse_summary),
    )


def _loader(system: System) -> Fact[str]:
    searched = [*system.environ.get("LD_LIBRARY_PATH", "").split(":"), *_LIBRARY_FOLDERS]
    source = Source(kind="file", name=_LOADER)
    for folder in filter(None, searched):
        try:
            system.stat(f"{folder}/{_LOADER}")
        except OSError:
            continue
        return known(f"{folder}/{_LOADER}", source)
    return absent(f"{_LOADER} is in none of the usual library folders", source)


def _drivers(system: System) -> Fact[tuple[VulkanDriver, ...]]:
    # These two replace the search; a list of files or folders.
    chosen = system.environ.get("VK_DRIVER_FILES") or system.environ.get("VK_ICD_FILENAMES")
    places = [*filter(None, chosen.split(":"))] if chosen else [*_FOLDERS, *_user_folders(system)]
    files = [file for place in places for file in _descriptions(system, place)]
    return known(
        tuple(
            VulkanDriver(file=file, library=read_fact(system, file, parse_driver))
            for file in files[:_MAX_DRIVERS]
        ),
        Source(kind="file", name=":".join(places)),
    )


def _user_folders(system: System) -> list[str]:
    home = system.environ.get("HOME", "")
    data = system.environ.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else "")
    return [f"{data}/vulkan/icd.d"] if data else []


def _descriptions(system: System, place: str) -> list[str]:
    if place.endswith(".json"):
        return [place]
    try:
        return [f"{place}/{name}" for name in system.list_dir(place) if name.endswith(".json")]
    except OSError:
        return []


class _Icd(msgspec.Struct, frozen=True):
    library_path: str


class _Description(msgspec.Struct, frozen=True):
    ICD: _Icd


def parse_driver(text: str) -> str:
    """Return the library that a driver's description names.

    Raises: ParseError.
    """
    try:
        return msgspec.json.decode(text, type=_Description).ICD.library_path
    except msgspec.MsgspecError as error:
        raise ParseError(str(error)) from None


def parse_instance_version(text: str) -> str:
    """Return the loader's version from vulkaninfo's summary.

    Raises: ParseError.
    """
    version = text.partition("Vulkan Instance Version:")[2].split()
    if not version:
        raise ParseError("no Vulkan Instance Version")
    return version[0]


def parse_summary(text: str) -> tuple[VulkanDevice, ...]:
    """Parse the blocks of `vulkaninfo --summary`: `GPU0:` and lines of a name, `=` and a value.

    Raises: ParseError when there is no list of devices; an empty list is a list.
    """
    if "Devices:" not in text:
        raise ParseError("no list of devices")
    blocks: list[dict[str, str]] = []
    for line in text.partition("Devices:")[2].splitlines():
        if line.startswith("GPU") and line.rstrip().endswith(":"):
            blocks.append({})
        name, equals, value = line.partition("=")
        if equals and blocks:
            blocks[-1][name.strip()] = value.strip()
    return tuple(_device(index, block) for index, block in enumerate(blocks) if block)


def _device(index: int, block: dict[str, str]) -> VulkanDevice:
    driver = " ".join(filter(None, (block.get("driverName"), block.get("driverInfo"))))
    return VulkanDevice(
        index=index,
        name=block.get("deviceName", "unnamed"),
        kind=block.get("deviceType", "").removeprefix("PHYSICAL_DEVICE_TYPE_").lower() or "other",
        driver=driver or None,
        # Older programs print `4206830 (1.3.238)`, newer ones the version alone.
        api_version=block.get("apiVersion", "").rpartition("(")[2].rstrip(")") or None,
        vendor_id=block.get("vendorID"),
    )
