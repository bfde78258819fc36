"""Devices that a back end could use, out of everything that was observed: a pure summary of the facts."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.device_nodes import DeviceNode
from llamaops.schema.fact import Fact, Known

T = TypeVar("T")

Family = Literal["nvidia", "amd", "intel", "vulkan", "apple"]
FAMILIES: tuple[Family, ...] = ("nvidia", "amd", "intel", "vulkan", "apple")

# Device files that a family's programming interface opens.
_NODES: dict[Family, tuple[str, ...]] = {
    "nvidia": ("/dev/nvidia", "/dev/dxg"),
    "amd": ("/dev/kfd", "/dev/dri/renderD"),
    "intel": ("/dev/dri/renderD",),
    "vulkan": ("/dev/dri/renderD", "/dev/nvidia", "/dev/dxg"),
    "apple": (),
}


class SeenDevice(NamedTuple):
    """A device, its memory None where it was not told or is the host's."""

    family: Family
    name: str
    total_bytes: int | None
    free_bytes: int | None


def seen_devices(accelerators: AcceleratorFacts) -> list[SeenDevice]:
    """Return the devices that were observed, software renderers left out."""
    return [
        *_nvidia(accelerators),
        *_amd(accelerators),
        *_intel(accelerators),
        *(
            SeenDevice("vulkan", one.name, None, None)
            for one in _known(accelerators.vulkan.devices)
            if one.kind != "cpu"
        ),
        *(
            SeenDevice("apple", one.name, None, None)
            for one in _known(accelerators.apple.devices)
            if one.metal is not None
        ),
    ]


def _known(fact: Fact[tuple[T, ...]]) -> tuple[T, ...]:
    return fact.value if isinstance(fact, Known) else ()


def _value(fact: Fact[T]) -> T | None:
    return fact.value if isinstance(fact, Known) else None


def _nvidia(accelerators: AcceleratorFacts) -> list[SeenDevice]:
    found = []
    for card in _known(accelerators.nvidia.devices):
        if _value(card.compute_mode) == "prohibited":
            continue
        # With MIG on only the parts compute; a card without parts then has nothing to offer.
        parts = card.mig_devices if _value(card.mig_enabled) else (card,)
        found += [
            SeenDevice(
                "nvidia",
                _value(part.name) or f"NVIDIA device {card.index}",
                _value(part.memory_total_bytes),
                _value(part.memory_free_bytes),
            )
            for part in parts
        ]
    return found


def _amd(accelerators: AcceleratorFacts) -> list[SeenDevice]:
    found = []
    for one in _known(accelerators.amd.devices):
        total, used = _value(one.memory_total_bytes), _value(one.memory_used_bytes)
        free = total - used if total is not None and used is not None else None
        found.append(SeenDevice("amd", _value(one.name) or f"AMD {one.card}", total, free))
    if not found:
        found = [
            SeenDevice("amd", one.name or f"AMD {one.index}", one.memory_total_bytes, None)
            for one in _known(accelerators.amd.tool_devices)
        ]
    return found


def _intel(accelerators: AcceleratorFacts) -> list[SeenDevice]:
    cards = _known(accelerators.intel.devices)
    return [
        SeenDevice("intel", f"Intel {one.card}", _value(one.memory_total_bytes), None) for one in cards
    ] or [
        SeenDevice("intel", one.name or f"Intel {one.index}", one.memory_total_bytes, None)
        for one in _known(accelerators.intel.tool_devices)
    ]


def nodes_of(accelerators: AcceleratorFacts, family: Family) -> list[DeviceNode]:
    """Return the device files that a family's interface opens; capability files are not among them."""
    return [
        node
        for node in _known(accelerators.device_nodes)
        if node.path.startswith(_NODES[family]) and not node.path.startswith("/dev/nvidia-caps")
    ]
