"""Display and compute devices on the PCI bus, with or without a driver."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.facts.derive import read_fact
from llamaops.facts.observe import observe
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Known, Source
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

BUS = "/sys/bus/pci/devices"

_VENDORS = {
    0x10DE: "nvidia",
    0x1002: "amd",
    0x8086: "intel",
    0x106B: "apple",
    0x1DA3: "habana",
    0x19E5: "huawei",
    0x1ED5: "moore threads",
    0x1A03: "aspeed",
    0x102B: "matrox",
    0x1234: "qemu",
    0x1B36: "red hat",
    0x1AF4: "virtio",
    0x15AD: "vmware",
    0x1013: "cirrus",
    0x1414: "microsoft",
    0x80EE: "virtualbox",
}
_KINDS = {0x0300: "vga", 0x0301: "xga", 0x0302: "3d", 0x0380: "display", 0x1200: "accelerator"}
# Vendors whose display devices llama.cpp has a back end for.
COMPUTE_VENDORS = frozenset({"nvidia", "amd", "intel", "huawei", "moore threads"})
# What a bound driver must be for a back end to reach the device.
COMPUTE_DRIVERS = {
    "nvidia": frozenset({"nvidia"}),
    "amd": frozenset({"amdgpu"}),
    "intel": frozenset({"i915", "xe"}),
}


class PciDevice(Shape, frozen=True, kw_only=True):
    """A device of the classes display and processing accelerator."""

    address: str
    """Address on the bus, such as `0000:01:00.0`."""
    vendor: str
    """Vendor's name where we know it, else its number in hex."""
    device_id: str
    """Device number in hex, which names the model in the PCI database."""
    kind: str
    """`vga`, `3d`, `display`, `accelerator`, or the class in hex."""
    driver: Fact[str]
    """Kernel driver that is bound to it; absent when none is."""
    boot_display: bool
    """Whether the firmware shows its console on it."""


def collect_pci(system: System) -> Fact[tuple[PciDevice, ...]]:
    """List display devices; an empty list means that the bus was read and has none."""
    return observe(
        Source(kind="file", name=BUS),
        read=lambda: system.list_dir(BUS),
        parse=lambda names: tuple(device for name in names if (device := _device(system, name)) is not None),
    )


def _device(system: System, name: str) -> PciDevice | None:
    folder = f"{BUS}/{name}"
    class_ = _hex(system, f"{folder}/class")
    if class_ is None or class_ >> 16 not in {0x03, 0x12}:
        return None
    vendor, device = _hex(system, f"{folder}/vendor"), _hex(system, f"{folder}/device")
    kind = class_ >> 8
    boot = read_fact(system, f"{folder}/boot_vga", str.strip, limit_bytes=KIB)
    return PciDevice(
        address=name,
        vendor="unknown" if vendor is None else _VENDORS.get(vendor, f"{vendor:#06x}"),
        device_id="unknown" if device is None else f"{device:#06x}",
        kind=_KINDS.get(kind, f"{kind:#06x}"),
        driver=_driver(system, folder),
        boot_display=isinstance(boot, Known) and boot.value == "1",
    )


def _hex(system: System, path: str) -> int | None:
    fact = read_fact(system, path, _parse_hex, limit_bytes=KIB)
    return fact.value if isinstance(fact, Known) else None


def _parse_hex(text: str) -> int:
    try:
        return int(text.strip(), 16)
    except ValueError:
        raise ParseError("not a number in hex") from None


def _driver(system: System, folder: str) -> Fact[str]:
    link = f"{folder}/driver"

    def bound(real: str) -> str:
        if real.rpartition("/")[2] == "driver":  # no such link
            raise FileNotFoundError(2, "no kernel driver is bound to the device")
        return real.rpartition("/")[2]

    return observe(Source(kind="file", name=link), read=lambda: system.realpath(link), parse=bound)
