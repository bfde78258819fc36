"""Device files of accelerators: who owns them and whether we may open them. Nothing is opened."""

from __future__ import annotations

import os
import stat

from llamaops.errors import ParseError
from llamaops.facts.derive import computed, derive, read_fact
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact, Known
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

# Folder and start of the name.
_PLACES = (
    ("/dev", "nvidia"),
    ("/dev/nvidia-caps", "nvidia-cap"),
    ("/dev", "kfd"),
    ("/dev", "dxg"),
    ("/dev/dri", "renderD"),
    ("/dev/accel", "accel"),
)
_MAX_NODES = 128


class DeviceNode(Shape, frozen=True, kw_only=True):
    """A device file."""

    path: str
    """Where it is."""
    mode: str
    """Kind and permissions, as `ls -l` shows them."""
    uid: int
    """Owner by number."""
    gid: int
    """Group by number: what a container's process must be a member of."""
    group: str | None
    """The group's name here; None when this system has no name for the number."""
    accessible: bool
    """Whether we may open it for reading and writing; access(2) was asked, nothing opened."""


def collect_device_nodes(system: System) -> Fact[tuple[DeviceNode, ...]]:
    """List the device files of accelerators; an empty list means that /dev was read and has none."""
    groups = derive(read_fact(system, "/etc/group", str, limit_bytes=MIB), parse_groups)
    names = groups.value if isinstance(groups, Known) else {}
    paths = [
        f"{folder}/{name}"
        for folder, start in _PLACES
        for name in _names(system, folder)
        if name.startswith(start) and name != "nvidia-caps"
    ]
    found = [node for path in paths[:_MAX_NODES] if (node := _node(system, path, names)) is not None]
    return computed(tuple(found), "/dev/nvidia*, /dev/kfd, /dev/dri/renderD*, /dev/dxg, /dev/accel")


def _names(system: System, folder: str) -> list[str]:
    try:
        return system.list_dir(folder)
    except OSError:
        return []


def _node(system: System, path: str, names: dict[int, str]) -> DeviceNode | None:
    try:
        told = system.stat(path)
    except OSError:
        return None
    if stat.S_ISDIR(told.st_mode):
        return None
    return DeviceNode(
        path=path,
        mode=stat.filemode(told.st_mode),
        uid=told.st_uid,
        gid=told.st_gid,
        group=names.get(told.st_gid),
        accessible=system.access(path, os.R_OK | os.W_OK),
    )


def parse_groups(text: str) -> dict[int, str]:
    """Parse /etc/group into names by number.

    Raises: ParseError when no line has the form.
    """
    rows = (line.split(":") for line in text.splitlines())
    found = {int(row[2]): row[0] for row in rows if len(row) > 2 and row[2].isdecimal()}  # noqa: PLR2004
    if not found:
        raise ParseError("no line name:password:number")
    return found
