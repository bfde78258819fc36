"""Accelerators: devices, drivers, device files, compilers, and variables that choose among them."""

from __future__ import annotations

from msgspec.structs import replace

from llamaops.facts.amd import AmdFacts, collect_amd
from llamaops.facts.apple import AppleFacts, collect_apple
from llamaops.facts.device_nodes import DeviceNode, collect_device_nodes
from llamaops.facts.intel import IntelFacts, collect_intel
from llamaops.facts.nvidia import NvidiaFacts, collect_nvidia
from llamaops.facts.pci_devices import PciDevice, collect_pci
from llamaops.facts.toolkits import Toolkit, Variable, collect_toolkits, collect_variables
from llamaops.facts.vulkan import VulkanFacts, collect_vulkan
from llamaops.schema.fact import Fact, Known, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.parallel import start
from llamaops.system.ports import System


class AcceleratorFacts(Shape, frozen=True, kw_only=True):
    """What could compute beside the processor, from the bus up to the programming interface."""

    pci_devices: Fact[tuple[PciDevice, ...]]
    """Display and compute devices on the bus, whether or not a driver is bound to them."""
    device_nodes: Fact[tuple[DeviceNode, ...]]
    """Device files, with whether we may open them."""
    variables: Fact[tuple[Variable, ...]]
    """Environment variables that choose or hide devices."""
    toolkits: Fact[tuple[Toolkit, ...]]
    """Compilers of accelerator back ends."""
    nvidia: NvidiaFacts
    """NVIDIA, through NVML."""
    amd: AmdFacts
    """AMD, through /sys and its tool."""
    intel: IntelFacts
    """Intel, through /sys and its tools."""
    vulkan: VulkanFacts
    """Vulkan, through vulkaninfo."""
    apple: AppleFacts
    """Apple, through system_profiler."""


def collect_accelerators(system: System) -> AcceleratorFacts:
    """Ask every source side by side, each within its bounds; nothing is opened or changed.

    Raises: nothing for a state of the machine.
    """
    nvidia = start(lambda: collect_nvidia(system))
    amd = start(lambda: collect_amd(system))
    intel = start(lambda: collect_intel(system))
    vulkan = start(lambda: collect_vulkan(system))
    apple = start(lambda: collect_apple(system))
    toolkits = start(lambda: collect_toolkits(system))
    pci, nodes = collect_pci(system), collect_device_nodes(system)
    return AcceleratorFacts(
        pci_devices=pci,
        device_nodes=nodes,
        variables=collect_variables(system),
        toolkits=toolkits.result(),
        nvidia=_reconcile(nvidia.result(), pci, nodes),
        amd=amd.result(),
        intel=intel.result(),
        vulkan=vulkan.result(),
        apple=apple.result(),
    )


def _reconcile(
    nvidia: NvidiaFacts, pci: Fact[tuple[PciDevice, ...]], nodes: Fact[tuple[DeviceNode, ...]]
) -> NvidiaFacts:
    """Hold a missing library against the bus: `absent` is said only where no card shows either.

    A library that is missing beside a card is a failure, and beside a bus that we cannot read it proves
    nothing about the card.
    """
    devices = nvidia.devices
    if isinstance(devices, Known) or devices.why != "absent":
        return nvidia
    cards = [one.address for one in pci.value if one.vendor == "nvidia"] if isinstance(pci, Known) else []
    files = [one.path for one in nodes.value if "nvidia" in one.path] if isinstance(nodes, Known) else []
    seen = [*cards, *files]
    if seen:
        detail = f"{devices.detail}, though {', '.join(seen[:4])} is there"
        return replace(nvidia, devices=Unknown(why="failed", detail=detail, source=devices.source))
    bus = (
        "no NVIDIA card on the PCI bus" if isinstance(pci, Known) else f"the PCI bus was not seen ({pci.why})"
    )
    detail = f"{devices.detail}; no /dev/nvidia*; {bus}"
    return replace(nvidia, devices=Unknown(why="absent", detail=detail, source=devices.source))
