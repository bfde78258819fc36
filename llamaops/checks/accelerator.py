"""Is the accelerator that was asked for there, reachable and free? The load log decides about its use."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.asked import AskedFacts
from llamaops.facts.device_nodes import DeviceNode
from llamaops.facts.host import HostFacts
from llamaops.facts.nvidia import NvidiaDevice
from llamaops.facts.pci_devices import COMPUTE_DRIVERS, PciDevice
from llamaops.facts.seen_devices import FAMILIES, Family, nodes_of, seen_devices
from llamaops.schema.amount import amount
from llamaops.schema.bounds import GIB
from llamaops.schema.fact import Known, Unknown

_FAMILY_OF_DEVICE: tuple[tuple[str, Family], ...] = (
    ("cuda", "nvidia"),
    ("rocm", "amd"),
    ("hip", "amd"),
    ("sycl", "intel"),
    ("vulkan", "vulkan"),
    ("mtl", "apple"),
    ("metal", "apple"),
)
# Memory that a desktop and a driver take on a card that is otherwise free.
_USUAL_USE_BYTES = 2 * GIB

_HIDES: dict[str, tuple[Family, tuple[str, ...]]] = {
    "CUDA_VISIBLE_DEVICES": ("nvidia", ("", "-1", "none", "nodevfiles")),
    "NVIDIA_VISIBLE_DEVICES": ("nvidia", ("", "none", "void")),
    "HIP_VISIBLE_DEVICES": ("amd", ("", "-1", "none")),
    "ROCR_VISIBLE_DEVICES": ("amd", ("", "-1", "none")),
    "GGML_VK_VISIBLE_DEVICES": ("vulkan", ("",)),
}


def asked_family(asked: AskedFacts) -> Family | NotApplicable | None:
    """Return the family that was asked for, None for any, NotApplicable for none."""
    device = (asked.expect_device or "").lower()
    if device and not device.startswith(("cpu", "none")):
        return next((family for start, family in _FAMILY_OF_DEVICE if device.startswith(start)), None)
    # `auto` takes what there is and asks for nothing.
    if device or asked.n_gpu_layers in {None, "", "auto", "0", "-1"}:
        return NotApplicable("no accelerator was asked for")
    return None


def _asked_text(asked: AskedFacts) -> str:
    return asked.expect_device or f"--n-gpu-layers {asked.n_gpu_layers}"


def _software_device_chosen(accelerators: AcceleratorFacts) -> bool:
    """Say whether the operator lets the engine take devices that it would leave out by itself."""
    return any(one.name == "GGML_VK_VISIBLE_DEVICES" and one.value for one in accelerators.variables.need())


@check(
    "accelerator.is-seen-when-asked",
    title="An accelerator of the kind that was asked for is here",
    boundary="host",
    remedy="install the device's driver, pass the device into the container or machine, or ask for the CPU"
    " (--n-gpu-layers 0)",
)
def is_seen_when_asked(accelerators: AcceleratorFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look for a device of that family; that the engine uses it is for the load log to show."""
    family = asked_family(asked)
    if isinstance(family, NotApplicable):
        return family
    wanted = FAMILIES if family is None else (family,)
    closed = {one for one in wanted if _all_closed(nodes_of(accelerators, one))}
    found = [one for one in seen_devices(accelerators) if one.family in wanted and one.family not in closed]
    if not found:
        undecided = _undecided(accelerators, tuple(one for one in wanted if one not in closed))
        if undecided is not None:
            return undecided
    names = ", ".join(one.name for one in found) or _why_none(accelerators, wanted, closed)
    return Verdict(
        holds=bool(found),
        summary=f"asked for {_asked_text(asked)}, seen: {names}",
        expected=_asked_text(asked),
        observed=names,
        remedy=_grant([node for one in sorted(closed) for node in nodes_of(accelerators, one)]),
    )


def _undecided(accelerators: AcceleratorFacts, wanted: tuple[Family, ...]) -> NotApplicable | None:
    """Raise NotKnownError where a family could not be asked; a missing tool alone proves nothing.

    Vulkan without vulkaninfo: registered drivers are no device, so neither pass nor fail is said here.
    """
    if "vulkan" in wanted and _vulkan_is_possible(accelerators, only=wanted == ("vulkan",)):
        return NotApplicable("vulkaninfo is not installed; the binary's own device list tells")
    for fact in _device_facts(accelerators, wanted):
        if isinstance(fact, Unknown) and fact.why not in {"absent", "unsupported"}:
            fact.need()
    return None


def _vulkan_is_possible(accelerators: AcceleratorFacts, *, only: bool) -> bool:
    vulkan = accelerators.vulkan
    if isinstance(vulkan.devices, Known):
        return bool(vulkan.devices.value) and _software_device_chosen(accelerators)
    registered = isinstance(vulkan.drivers, Known) and bool(vulkan.drivers.value)
    ready = registered and isinstance(vulkan.loader, Known)
    return ready and (only or _software_device_chosen(accelerators))


def _device_facts(accelerators: AcceleratorFacts, wanted: tuple[Family, ...]) -> list[object]:
    facts: dict[Family, object] = {
        "nvidia": accelerators.nvidia.devices,
        "amd": accelerators.amd.devices,
        "intel": accelerators.intel.devices,
        "vulkan": accelerators.vulkan.devices,
        "apple": accelerators.apple.devices,
    }
    return [facts[one] for one in wanted]


def _why_none(accelerators: AcceleratorFacts, wanted: tuple[Family, ...], closed: set[Family]) -> str:
    if closed:
        return "only devices whose files this user may not open"
    if wanted == FAMILIES:
        return "none"
    fact = _device_facts(accelerators, wanted)[0]
    return f"none ({fact.detail})" if isinstance(fact, Unknown) else "none"


def _all_closed(nodes: list[DeviceNode]) -> bool:
    return bool(nodes) and not any(node.accessible for node in nodes)


def _grant(nodes: list[DeviceNode]) -> str | None:
    closed = [node for node in nodes if not node.accessible]
    groups = {node.gid: node.group for node in closed if node.gid != 0}
    if not closed:
        return None
    if not groups:
        return (
            "the files belong to root alone: run where udev gives them a group, or ask whoever runs the host"
        )
    gid, name = next(iter(groups.items()))
    known_as = f"the group {name} ({gid})" if name else f"the group number {gid}, which has no name here"
    return (
        f"add this user to {known_as} and log in again; for a container --group-add {gid};"
        " do not open the files to everybody"
    )


@check(
    "accelerator.nodes-are-accessible",
    title="We may open the device files of the accelerators",
    boundary="host",
    severity="advisory",
    remedy="add this user to the group that owns the files; do not open them to everybody",
)
def nodes_are_accessible(accelerators: AcceleratorFacts) -> Verdict | NotApplicable:
    """Compare the permissions of device files with what this user is."""
    nodes = [
        node for node in accelerators.device_nodes.need() if not node.path.startswith("/dev/nvidia-caps")
    ]
    if not nodes:
        return NotApplicable("no device files of accelerators")
    closed = [node for node in nodes if not node.accessible]
    told = ", ".join(f"{node.path} {node.mode} {node.uid}:{node.gid}" for node in closed[:4])
    return Verdict(
        holds=not closed,
        summary=f"{len(nodes) - len(closed)} of {len(nodes)} device files may be opened"
        + (f"; closed to us: {told}" if closed else ""),
        expected="read and write permission on each",
        observed=told or "all of them",
        remedy=_grant(closed),
    )


@check(
    "accelerator.driver-is-bound",
    title="Each accelerator on the bus has the driver that its back end needs",
    boundary="host",
    severity="advisory",
    remedy="install the vendor's driver, load its module, and look at the kernel log for why it did not bind",
)
def driver_is_bound(accelerators: AcceleratorFacts) -> Verdict | NotApplicable:
    """Compare the bound kernel driver with those that the back ends go through."""
    cards = [one for one in accelerators.pci_devices.need() if one.vendor in COMPUTE_DRIVERS]
    # A card that the host gave away to a virtual machine is none of ours.
    cards = [one for one in cards if _driver(one) != "vfio-pci"]
    if not cards:
        return NotApplicable("no accelerator on the PCI bus")
    wrong = [one for one in cards if _driver(one) not in COMPUTE_DRIVERS[one.vendor]]
    told = ", ".join(f"{one.vendor} {one.address}: {_driver(one) or 'no driver'}" for one in cards[:8])
    nouveau = any(_driver(one) == "nouveau" for one in wrong)
    return Verdict(
        holds=not wrong,
        summary=told,
        expected="nvidia, amdgpu, i915 or xe",
        observed=told,
        remedy="nouveau has no CUDA: install NVIDIA's driver, or use a Vulkan build if Mesa has NVK"
        if nouveau
        else None,
    )


def _driver(card: PciDevice) -> str | None:
    return card.driver.value if isinstance(card.driver, Known) else None


@check(
    "accelerator.driver-answers",
    title="The NVIDIA driver answers",
    boundary="host",
    severity="advisory",
    remedy="look at the kernel log (NVRM, Xid), reload the driver or restart the machine",
)
def driver_answers(accelerators: AcceleratorFacts, host: HostFacts) -> Verdict | NotApplicable:
    """Tell a driver that is there and does not answer from one that is not there."""
    fact = accelerators.nvidia.devices
    if isinstance(fact, Unknown) and fact.why in {"absent", "unsupported"}:
        return NotApplicable("no NVIDIA device and no library")
    if isinstance(fact, Unknown) and fact.why == "not_attempted":
        fact.need()
    answered = isinstance(fact, Known)
    told = f"{len(fact.value)} devices" if isinstance(fact, Known) else fact.detail
    return Verdict(
        holds=answered,
        summary=told,
        expected="an answer from NVML",
        observed=told,
        remedy=None if answered else _driver_remedy(told, host),
        evidence=(fact.source.evidence,) if fact.source.evidence else (),
    )


def _driver_remedy(told: str, host: HostFacts) -> str | None:
    container = isinstance(host.isolation.container, Known) and host.isolation.container.value != "none"
    if "version mismatch" in told:
        return (
            "the driver was updated under a running kernel module: restart the machine or reload the module"
        )
    if "Unknown Error" in told and container:
        return (
            "restart the container; if it comes back after a systemd reload, pass the device files explicitly"
            " or use the cgroupfs driver"
        )
    if "Driver Not Loaded" in told:
        return "load the module (modprobe nvidia) and look at the kernel log for why it was not"
    return None


@check(
    "accelerator.memory-is-free",
    title="The accelerators' memory is free",
    boundary="host",
    severity="advisory",
    remedy="stop what holds the memory, or choose another device; the engine takes what is free at its start",
)
def memory_is_free(accelerators: AcceleratorFacts) -> Verdict | NotApplicable:
    """Name devices of which others hold more than a desktop takes, and the processes that do."""
    known = [
        (one, one.total_bytes, one.free_bytes)
        for one in seen_devices(accelerators)
        if one.total_bytes is not None and one.free_bytes is not None
    ]
    if not known:
        return NotApplicable("no device tells its memory")
    taken = [one for one, total, free in known if total - free > max(_USUAL_USE_BYTES, total // 10)]
    told = ", ".join(f"{one.name}: {amount(free)} of {amount(total)} free" for one, total, free in known[:8])
    return Verdict(
        holds=not taken,
        summary=told + _holders(accelerators) if taken else told,
        expected="at most a tenth (or 2 GiB) in use",
        observed=told,
    )


def _holders(accelerators: AcceleratorFacts) -> str:
    devices: tuple[NvidiaDevice, ...] = (
        accelerators.nvidia.devices.value if isinstance(accelerators.nvidia.devices, Known) else ()
    )
    holders = [one for card in devices if isinstance(card.processes, Known) for one in card.processes.value]
    told = [
        f"{one.name or 'process'} {one.pid}" + (f" {amount(one.used_bytes)}" if one.used_bytes else "")
        for one in holders[:6]
    ]
    return f"; held by {', '.join(told)}" if told else ""


@check(
    "accelerator.no-visibility-variable-hides-it",
    title="No environment variable hides the accelerators",
    boundary="host",
    severity="advisory",
    remedy="unset the variable, or set it to the device that is wanted",
)
def no_visibility_variable_hides_it(accelerators: AcceleratorFacts) -> Verdict | NotApplicable:
    """Tell a variable that hides every device of a family from one that only chooses."""
    variables = [one for one in accelerators.variables.need() if one.name in _HIDES]
    if not variables:
        return NotApplicable("no variable chooses devices")
    hiding = [one for one in variables if one.value.strip().lower() in _HIDES[one.name][1]]
    told = ", ".join(f"{one.name}={one.value!r}" for one in variables)
    return Verdict(
        holds=not hiding,
        summary=f"{told} hides every {_HIDES[hiding[0].name][0]} device" if hiding else f"chosen by {told}",
        expected="devices left visible",
        observed=told,
        remedy=f"unset {hiding[0].name}, or set it to the device that is wanted" if hiding else None,
    )


@check(
    "accelerator.container-has-passthrough",
    title="The accelerators of the machine reach into this container",
    boundary="host",
    severity="advisory",
    remedy="start the container with its devices: --gpus all for NVIDIA, --device /dev/kfd --device /dev/dri"
    " and the owning group for AMD, --device /dev/dri for Intel and Vulkan",
)
def container_has_passthrough(accelerators: AcceleratorFacts, host: HostFacts) -> Verdict | NotApplicable:
    """Compare cards on the bus, which a container sees, with device files, which it must be given."""
    if host.isolation.container.need() == "none":
        return NotApplicable("not in a container")
    cards = [one for one in accelerators.pci_devices.need() if one.vendor in COMPUTE_DRIVERS and _driver(one)]
    if not cards:
        return NotApplicable("no accelerator with a driver on the PCI bus")
    without = sorted({one.vendor for one in cards if not nodes_of(accelerators, _family(one.vendor))})
    told = ", ".join(f"{one.vendor} {one.address}" for one in cards[:8])
    return Verdict(
        holds=not without,
        summary=f"on the bus: {told}; "
        + (f"no device files here for {', '.join(without)}" if without else "device files are here"),
        expected="device files for each",
        observed=f"none for {', '.join(without)}" if without else "device files for each",
    )


def _family(vendor: str) -> Family:
    return next(one for one in FAMILIES if one == vendor)
