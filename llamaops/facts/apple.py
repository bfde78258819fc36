"""Apple's devices, through system_profiler and sysctl; only on macOS."""

from __future__ import annotations

from typing import Any

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
    rows = json_from(text, dict[str, list[dict[str, Any]]]).get("SPDisplaysDataType", [])
    return tuple(
        AppleDevice(
            name=str(row.get("sppci_model") or row.get("_name") or "unnamed"),
            vendor=row.get("spdisplays_vendor"),
            cores=_number(row.get("sppci_cores")),
            metal=row.get("spdisplays_mtlgpufamilysupport") or row.get("spdisplays_metal"),
        )
        for row in rows
    )


def _number(told: object) -> int | None:
    return int(str(told)) if str(told).isdecimal() else None
