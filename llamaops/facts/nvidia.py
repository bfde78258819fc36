"""NVIDIA devices through NVML; through nvidia-smi only where NVML cannot be loaded."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.command import tell
from llamaops.facts.container import own_namespace
from llamaops.facts.derive import all_unknown, derive
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.nvml import NvmlSnapshot, collect_nvml
from llamaops.system.ports import System

_MILLI = 1000
_COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
_THROTTLE = {
    0x1: "idle",
    0x2: "application_clocks",
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
    0x100: "display_clocks",
}
_SMI_FIELDS = "name,uuid,pci.bus_id,memory.total,memory.free,memory.used,compute_cap,driver_version"

ComputeMode = Literal["default", "exclusive_thread", "prohibited", "exclusive_process"]


class GpuProcess(Shape, frozen=True, kw_only=True):
    """A process that holds memory of a device."""

    pid: int
    """Number as the driver tells it; in a container it is the host's number."""
    used_bytes: int | None
    """Memory it holds; None when the driver does not tell."""
    name: str | None
    """Name of a process of our own user; nobody else's is looked up."""


class MigDevice(Shape, frozen=True, kw_only=True):
    """A part of a device that MIG presents as a device."""

    index: int
    """Number among the parts of its device."""
    name: Fact[str]
    """Name with its profile."""
    uuid: Fact[str]
    """Identifier by which CUDA_VISIBLE_DEVICES selects it."""
    memory_total_bytes: Fact[int]
    """Its memory."""
    memory_free_bytes: Fact[int]
    """Of that, free."""


class NvidiaDevice(Shape, frozen=True, kw_only=True):
    """One NVIDIA device, in the order of the bus; CUDA's own order may differ."""

    index: int
    """Number in NVML and nvidia-smi."""
    name: Fact[str]
    """Product name."""
    uuid: Fact[str]
    """Identifier."""
    pci_address: Fact[str]
    """Address on the bus, as in /sys/bus/pci/devices."""
    memory_total_bytes: Fact[int]
    """Memory; unsupported where the device shares the host's."""
    memory_free_bytes: Fact[int]
    """Of that, free."""
    memory_used_bytes: Fact[int]
    """Of that, held by processes."""
    compute_capability: Fact[str]
    """CUDA architecture, such as `8.9`."""
    compute_mode: Fact[ComputeMode]
    """Who may use it: `prohibited` is nobody, `exclusive_process` one process at a time."""
    mig_enabled: Fact[bool]
    """Whether it is split; then only its parts compute."""
    mig_devices: tuple[MigDevice, ...]
    """Its parts; empty without MIG."""
    ecc_enabled: Fact[bool]
    """Whether memory errors are corrected."""
    ecc_uncorrected_errors: Fact[int]
    """Errors since the last driver load that could not be corrected."""
    persistence: Fact[bool]
    """Whether the driver stays loaded without clients."""
    display_active: Fact[bool]
    """Whether a display uses it, which takes memory."""
    power_limit_w: Fact[float]
    """Enforced limit in watts."""
    power_draw_w: Fact[float]
    """Draw now in watts."""
    temperature_celsius: Fact[int]
    """Temperature of the die."""
    throttle_reasons: Fact[tuple[str, ...]]
    """Why the clocks are below their highest now."""
    utilization_percent: Fact[int]
    """Share of the last sample in which a kernel ran."""
    pci_link: Fact[tuple[int, int]]
    """Generation and width of the link now; an idle device lowers its generation."""
    pci_link_max: Fact[tuple[int, int]]
    """The highest that device and slot agree on."""
    processes: Fact[tuple[GpuProcess, ...]]
    """Who holds memory."""


class NvidiaFacts(Shape, frozen=True, kw_only=True):
    """NVIDIA's driver and devices."""

    driver_version: Fact[str]
    """Version of the kernel driver."""
    cuda_version: Fact[str]
    """Newest CUDA that the driver serves, such as `12.4`."""
    nvml_version: Fact[str]
    """Version of the library that answered."""
    devices: Fact[tuple[NvidiaDevice, ...]]
    """Devices that the driver shows to us."""


class _Memory(msgspec.Struct, frozen=True):
    total: int
    free: int
    used: int


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    used: int | None


def collect_nvidia(system: System) -> NvidiaFacts:
    """Ask NVML; nvidia-smi's text is read only where NVML cannot be loaded at all."""
    snapshot = collect_nvml(system)
    if isinstance(snapshot, Unknown):
        return _from_smi(system, snapshot)
    library = snapshot.fact(str, "library")
    if isinstance(library, Unknown):
        return _from_smi(system, library)
    begun = snapshot.fact(bool, "init")
    if isinstance(begun, Unknown):
        return all_unknown(NvidiaFacts, begun)
    return NvidiaFacts(
        driver_version=snapshot.fact(str, "driver_version"),
        cuda_version=derive(snapshot.fact(int, "cuda_version"), cuda_version),
        nvml_version=snapshot.fact(str, "nvml_version"),
        devices=derive(
            snapshot.fact(int, "count"),
            lambda count: tuple(_device(system, snapshot, index) for index in range(count)),
        ),
    )


def cuda_version(number: int) -> str:
    """Turn NVML's number (12040) into a version (12.4)."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _device(system: System, snapshot: NvmlSnapshot, index: int) -> NvidiaDevice:
    def ask(type_: type[Any], query: str) -> Any:  # noqa: ANN401 - a Fact of the type given
        return snapshot.fact(type_, query, index)

    memory: Fact[_Memory] = ask(_Memory, "memory")
    pair: Any = tuple[int, int]
    return NvidiaDevice(
        index=index,
        name=ask(str, "name"),
        uuid=ask(str, "uuid"),
        pci_address=derive(ask(str, "pci"), sysfs_address),
        memory_total_bytes=derive(memory, lambda told: told.total),
        memory_free_bytes=derive(memory, lambda told: told.free),
        memory_used_bytes=derive(memory, lambda told: told.used),
        compute_capability=derive(ask(pair, "compute_capability"), lambda told: f"{told[0]}.{told[1]}"),
        compute_mode=derive(ask(int, "compute_mode"), _compute_mode),
        mig_enabled=derive(ask(pair, "mig_mode"), lambda told: bool(told[0] == 1)),
        mig_devices=tuple(_mig(snapshot, index, number) for number in snapshot.migs(index)),
        ecc_enabled=derive(ask(pair, "ecc_mode"), lambda told: bool(told[0] == 1)),
        ecc_uncorrected_errors=ask(int, "ecc_uncorrected"),
        persistence=derive(ask(int, "persistence"), bool),
        display_active=derive(ask(int, "display"), bool),
        power_limit_w=derive(ask(int, "power_limit"), _watts),
        power_draw_w=derive(ask(int, "power_draw"), _watts),
        temperature_celsius=ask(int, "temperature"),
        throttle_reasons=derive(ask(int, "throttle"), throttle_reasons),
        utilization_percent=ask(int, "utilization"),
        pci_link=ask(pair, "link"),
        pci_link_max=ask(pair, "link_max"),
        processes=derive(ask(list[_Holder], "processes"), lambda found: _processes(system, found)),
    )


def _mig(snapshot: NvmlSnapshot, device: int, number: int) -> MigDevice:
    memory = snapshot.fact(_Memory, "memory", device, number)
    return MigDevice(
        index=number,
        name=snapshot.fact(str, "name", device, number),
        uuid=snapshot.fact(str, "uuid", device, number),
        memory_total_bytes=derive(memory, lambda told: told.total),
        memory_free_bytes=derive(memory, lambda told: told.free),
    )


def sysfs_address(bus_id: str) -> str:
    """Turn NVML's `00000000:01:00.0` into sysfs' `0000:01:00.0`."""
    domain, colon, rest = bus_id.lower().partition(":")
    if not colon:
        raise ParseError(f"not an address: {bus_id[:40]!r}")
    return f"{domain[-4:]}:{rest}"


def _watts(milliwatts: int) -> float:
    return milliwatts / _MILLI


def _compute_mode(number: int) -> Any:  # noqa: ANN401 - one of ComputeMode
    if not 0 <= number < len(_COMPUTE_MODES):
        raise ParseError(f"compute mode {number}")
    return _COMPUTE_MODES[number]


def throttle_reasons(mask: int) -> tuple[str, ...]:
    """Name the bits of NVML's mask; one that we do not know is given in hex."""
    names = [name for bit, name in _THROTTLE.items() if mask & bit]
    rest = mask & ~sum(_THROTTLE)
    return (*names, hex(rest)) if rest else tuple(names)


def _processes(system: System, holders: list[_Holder]) -> tuple[GpuProcess, ...]:
    private = own_namespace(system, "pid")
    # The driver tells the host's numbers; in a container they would name other processes.
    ours = isinstance(private, Known) and not private.value
    return tuple(
        GpuProcess(pid=one.pid, used_bytes=one.used, name=_own_name(system, one.pid) if ours else None)
        for one in holders
    )


def _own_name(system: System, pid: int) -> str | None:
    """Return the name of a process of our own user; None for anybody else's."""
    try:
        if system.stat(f"/proc/{pid}").st_uid != system.stat("/proc/self").st_uid:
            return None
        return system.read_text(f"/proc/{pid}/comm", limit_bytes=64).strip()
    except OSError:
        return None


def _from_smi(system: System, why: Unknown) -> NvidiaFacts:
    """Read nvidia-smi's table; what it does not tell stays unknown for the reason that NVML gave."""
    path = system.which("nvidia-smi")
    if path is None:
        return all_unknown(NvidiaFacts, why)
    told = tell(system, (path, f"--query-gpu={_SMI_FIELDS}", "--format=csv,noheader,nounits"))
    rows = derive(told, parse_smi)
    if isinstance(rows, Unknown):
        return all_unknown(NvidiaFacts, rows)
    source = rows.source
    unknown = Unknown(why=why.why, detail=why.detail, source=source)
    return msgspec.structs.replace(
        all_unknown(NvidiaFacts, unknown),
        driver_version=Known(value=rows.value[0][7], source=source) if rows.value else unknown,
        devices=Known(
            value=tuple(_smi_device(row, index, source, unknown) for index, row in enumerate(rows.value)),
            source=source,
        ),
    )


def parse_smi(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse nvidia-smi's lines of comma-separated values.

    Raises: ParseError for a line with another number of values: a message, not a table.
    """
    wanted = _SMI_FIELDS.count(",") + 1
    rows = [tuple(word.strip() for word in line.split(",")) for line in text.splitlines() if line.strip()]
    if any(len(row) != wanted for row in rows):
        raise ParseError(f"not a table: {text.strip()[:120]!r}")
    return tuple(rows)


def _smi_device(row: tuple[str, ...], index: int, source: Source, unknown: Unknown) -> NvidiaDevice:
    def mebibytes(text: str) -> Fact[int]:
        if text.isdecimal():
            return Known(value=int(text) * MIB, source=source)
        return Unknown(why="unsupported", detail=f"nvidia-smi tells {text[:40]}", source=source)

    empty: dict[str, Any] = dict.fromkeys(NvidiaDevice.__struct_fields__, unknown)
    told: dict[str, Any] = {
        "index": index,
        "name": Known(value=row[0], source=source),
        "uuid": Known(value=row[1], source=source),
        "pci_address": Known(value=sysfs_address(row[2]), source=source),
        "memory_total_bytes": mebibytes(row[3]),
        "memory_free_bytes": mebibytes(row[4]),
        "memory_used_bytes": mebibytes(row[5]),
        "compute_capability": Known(value=row[6], source=source),
        "mig_devices": (),
    }
    return NvidiaDevice(**{**empty, **told})
