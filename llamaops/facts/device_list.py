"""The devices that a program lists: everything but the CPU."""

from __future__ import annotations

import re

from llamaops.errors import ParseError
from llamaops.schema.bounds import MIB
from llamaops.schema.shape import Shape


class Device(Shape, frozen=True, kw_only=True):
    """One line of `--list-devices`."""

    name: str
    """What --device takes, such as CUDA0, Vulkan1, MTL0, or RPC0."""
    description: str
    """The product's name; host and port for a remote one."""
    total_bytes: int
    """Memory in bytes, to the MiB; 0 when the driver reports none."""
    free_bytes: int
    """Free memory in bytes, to the MiB; 0 when the driver reports none."""


def parse_devices(text: str) -> tuple[Device, ...]:
    """Read the standard output of `--list-devices`; an empty tuple when it says `(none)`.

    A build that lists nothing below the heading (older ones print no `(none)`) has no device either.

    Units: bytes. Raises: ParseError when the heading or the form of a line is not known.
    """
    lines = text.splitlines()
    heading = next((place for place, line in enumerate(lines) if line.startswith("Available devices")), None)
    if heading is None:
        raise ParseError("no `Available devices:` line")
    devices = []
    for line in lines[heading + 1 :]:
        if not line.startswith((" ", "\t")):
            if line.strip():
                break
            continue
        if line.strip() == "(none)":
            continue
        devices.append(_parse_line(line))
    return tuple(devices)


def _parse_line(line: str) -> Device:
    # A name may hold brackets with a colon: older builds write RPC[10.0.0.2:50052].
    found = re.match(
        r"\s+(?P<name>[^\s:\[]+(?:\[[^\]]*\])?): (?P<description>.*)"
        r" \((?P<total>\d+) MiB, (?P<free>\d+) MiB free\)\s*$",
        line,
    )
    if found is None:
        raise ParseError(f"a device line in an unknown form: {line.strip()[:80]}")
    return Device(
        name=found["name"],
        description=found["description"],
        total_bytes=int(found["total"]) * MIB,
        free_bytes=int(found["free"]) * MIB,
    )
