"""Apple's devices, through system_profiler and sysctl; only on macOS."""

from __future__ import annotations

import msgspec

from llamaops.facts.amd import json_from
from llamaops.facts.command import tell
from llamaops.facts.derive import all_unknown, derive, parse_int
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

PROFILER = ("/usr/sbin/system_profiler", "-json", "SPDisplaysDataType")
WIRED_LIMIT = ("/usr/sbin/sysctl", "-n", "iogpu.wired_limit_mb")
_BOUNDS = Bounds(wall_s=20.0, total_bytes=4 << 20)


class AppleDevice(Shape, frozen=True, kw_only=True):
    """A display device of a Mac."""

    name: str
    """Product name."""
    vendor: str | None
    """Vendor as macOS tells it."""
    cores: int | None
    """Cores of Apple's own devices."""
    metal: str | None
    """Metal family that it supports; None when it supports none."""


class AppleFacts(Shape, frozen=True, kw_only=True):
    """What Metal has here."""

    devices: Fact[tuple[AppleDevice, ...]]
    """Display devices."""
    wired_limit_mib: Fact[int]
    """Limit that an operator set on memory the device may hold, in MiB; 0 is the system's own choice."""


class _Row(msgspec.Struct, frozen=True):
    name: str | None = msgspec.field(default=None, name="_name")
    sppci_model: str | None = None
    sppci_cores: int | str | None = None
    spdisplays_vendor: str | None = None
    spdisplays_mtlgpufamilysupport: str | None = None
    spdisplays_metal: str | None = None


class _Told(msgspec.Struct, frozen=True):
    SPDisplaysDataType: list[_Row]


def collect_apple(system: System) -> AppleFacts:
    """Ask macOS; elsewhere every fact is unsupported."""
    name = system.uname().sysname
    if name != "Darwin":
        source = Source(kind="library", name="uname")
        return all_unknown(
            AppleFacts, Unknown(why="unsupported", detail=f"{name} has no Metal", source=source)
        )
    return AppleFacts(
        devices=derive(tell(system, PROFILER, bounds=_BOUNDS), parse_displays),
        wired_limit_mib=derive(tell(system, WIRED_LIMIT), parse_int),
    )


def parse_displays(text: str) -> tuple[AppleDevice, ...]:
    """Parse system_profiler's JSON.

    Raises: ParseError.
    """
    told: _Told = json_from(text, _Told)
    return tuple(
        AppleDevice(
            name=row.sppci_model or row.name or "unnamed",
            vendor=row.spdisplays_vendor,
            cores=_number(row.sppci_cores),
            metal=row.spdisplays_mtlgpufamilysupport or row.spdisplays_metal,
        )
        for row in told.SPDisplaysDataType
    )


def _number(told: object) -> int | None:
    return int(str(told)) if str(told).isdecimal() else None
