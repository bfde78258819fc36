"""Limits that control groups put on us, versions 1 and 2, the tightest ancestor included.

A server in a container is stopped at the group's limit, whatever the host has free; /proc/meminfo and
the processor count do not show it. Inside a private cgroup namespace the ancestors above its root
cannot be seen: a limit found here is then the tightest *visible* one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from llamaops.errors import ParseError
from llamaops.facts.derive import absent, derive, parse_int, read_fact
from llamaops.facts.mounts import Mount, is_under
from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system.ports import System

OWN_CGROUP = "/proc/self/cgroup"
# Version 1 writes "no limit" as the largest multiple of the page size; every page size gives more than this.
UNLIMITED = 1 << 62
_LIMIT_BYTES = 64 * 1024


class Groups(NamedTuple):
    """The folders of one controller, our own group first, then each visible ancestor."""

    version: int
    folders: tuple[str, ...]


class MemoryCeiling(NamedTuple):
    """The memory limit that leaves us the least room."""

    limit_bytes: int
    usage_bytes: int
    reclaimable_bytes: int
    """File pages that the kernel drops before it stops anybody."""
    limit_file: str
    usage_file: str

    @property
    def headroom_bytes(self) -> int:
        """Return what we can still take below the limit."""
        return max(0, self.limit_bytes - self.usage_bytes + min(self.reclaimable_bytes, self.usage_bytes))


class CpuQuota(NamedTuple):
    """Processor time that a group gets, in processors."""

    cpus: float
    file: str
    folder: str


def collect_membership(system: System) -> Fact[dict[str, str]]:
    """Read which group we are in: controller to path, with the empty name for version 2."""
    return read_fact(system, OWN_CGROUP, parse_membership)


def parse_membership(text: str) -> dict[str, str]:
    """Parse /proc/self/cgroup.

    Raises: ParseError when no line has the form.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        number, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        if colon and second and number.isdigit():
            found.update(dict.fromkeys(controllers.split(","), path))
    if not found:
        raise ParseError("no line looks like a control group")
    return found


def find_groups(
    system: System, controller: str, membership: Fact[dict[str, str]], mounts: Fact[tuple[Mount, ...]]
) -> Fact[Groups]:
    """Find the folders that hold one controller's limits.

    `absent` means that no such controller can limit us; that the folders cannot be seen is `refused`.
    """
    if isinstance(membership, Unknown):
        return membership
    if isinstance(mounts, Unknown):
        return mounts
    version = 1 if controller in membership.value else 2
    path = membership.value.get(controller if version == 1 else "")
    if path is None:
        return absent(f"no control group with {controller} in {OWN_CGROUP}", membership.source)
    candidates = [mount for mount in mounts.value if _carries(mount, version, controller)]
    if not candidates:
        return Unknown(
            why="refused",
            detail=f"the control group {path} exists, but its files are not mounted here",
            source=mounts.source,
        )
    # A mount of the whole tree shows more ancestors than one of a part.
    mount = min(candidates, key=lambda one: len(one.root))
    return Known(value=Groups(version, _folders(system, mount, path)), source=membership.source)


def _carries(mount: Mount, version: int, controller: str) -> bool:
    if version == 2:  # noqa: PLR2004 - the version
        return mount.kind == "cgroup2"
    return mount.kind == "cgroup" and controller in mount.super_options


def _folders(system: System, mount: Mount, path: str) -> tuple[str, ...]:
    """Return the group's folder and its ancestors up to the mount point."""
    below = path if mount.root == "/" else path[len(mount.root) :] if is_under(path, mount.root) else ""
    parts = [part for part in below.split("/") if part]
    # `..` is a group outside our namespace; a missing folder is a path of another namespace.
    if ".." in parts or not _exists(system, "/".join([mount.point, *parts])):
        parts = []
    return tuple("/".join([mount.point, *parts[:depth]]) for depth in range(len(parts), -1, -1))


def _exists(system: System, folder: str) -> bool:
    try:
        system.stat(folder)
    except OSError:
        return False
    return True


def collect_memory_ceiling(system: System, groups: Fact[Groups]) -> Fact[MemoryCeiling]:
    """Read the memory limits of our group and its ancestors; `absent` when none sets one."""
    if isinstance(groups, Unknown):
        return groups
    try:
        found = list(_ceilings(system, groups.value))
    except OSError as error:
        return unknown_from_os_error(Source(kind="file", name=str(error.filename)), error)
    except ParseError as error:
        return Unknown(why="unparsed", detail=str(error), source=groups.source)
    if not found:
        return absent(f"no control group from {groups.value.folders[0]} upwards limits memory", groups.source)
    tightest = min(found, key=lambda one: (one.headroom_bytes, one.limit_bytes))
    return Known(value=tightest, source=Source(kind="file", name=tightest.limit_file))


def _ceilings(system: System, groups: Groups) -> Iterator[MemoryCeiling]:
    """Yield each limit that is set.

    Raises: OSError for a file that is there and cannot be read: a limit that may exist is not known.
    """
    names = ("memory.limit_in_bytes",) if groups.version == 1 else ("memory.max", "memory.high")
    usage_name = "memory.usage_in_bytes" if groups.version == 1 else "memory.current"
    for folder in groups.folders:
        if groups.version == 1 and folder != groups.folders[0] and not _counts_children(system, folder):
            break
        for name in names:
            limit = _limit(system, f"{folder}/{name}")
            if limit is not None:
                yield _ceiling(system, folder, limit, f"{folder}/{name}", usage_name)
    hidden = _hierarchical_limit(system, groups) if groups.version == 1 else None
    if hidden is not None:
        # An ancestor that we cannot see: its usage is at least ours, so the room is at most this.
        folder = groups.folders[0]
        yield _ceiling(system, folder, hidden, f"{folder}/memory.stat", usage_name)


def _counts_children(system: System, folder: str) -> bool:
    return (_optional(system, f"{folder}/memory.use_hierarchy") or "1").strip() != "0"


def _hierarchical_limit(system: System, groups: Groups) -> int | None:
    stat = parse_counters(_optional(system, f"{groups.folders[0]}/memory.stat") or "")
    limit = stat.get("hierarchical_memory_limit", UNLIMITED)
    return limit if limit < UNLIMITED else None


def _ceiling(
    system: System, folder: str, limit_bytes: int, limit_file: str, usage_name: str
) -> MemoryCeiling:
    usage_file = f"{folder}/{usage_name}"
    usage_bytes = parse_int(system.read_text(usage_file, limit_bytes=_LIMIT_BYTES))
    stat = parse_counters(_optional(system, f"{folder}/memory.stat") or "")
    # `total_` counts the children too, as the usage does; version 2 has only such numbers.
    reclaimable = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return MemoryCeiling(limit_bytes, usage_bytes, reclaimable, limit_file, usage_file)


def _limit(system: System, path: str) -> int | None:
    """Return a limit in bytes; None when the file is not there or says that there is none."""
    text = (_optional(system, path) or "max").strip()
    if text in {"max", "-1"}:
        return None
    value = parse_int(text)
    return value if value < UNLIMITED else None


def _optional(system: System, path: str) -> str | None:
    try:
        return system.read_text(path, limit_bytes=_LIMIT_BYTES)
    except FileNotFoundError:
        return None


def parse_counters(text: str) -> dict[str, int]:
    """Parse lines of a name and a number, such as memory.stat; other lines are left out."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}  # noqa: PLR2004


def collect_swap_limit(system: System, groups: Fact[Groups]) -> Fact[int]:
    """Read how much swap our group and its ancestors may use; `absent` when nothing limits it.

    Version 1 limits memory and swap together; that figure says nothing about swap alone and is left out.
    """
    if isinstance(groups, Unknown):
        return groups
    if groups.value.version == 1:
        return Unknown(
            why="unsupported",
            detail="version 1 of control groups limits memory and swap together",
            source=groups.source,
        )
    try:
        limits = {
            path: limit
            for path in (f"{folder}/memory.swap.max" for folder in groups.value.folders)
            if (limit := _limit(system, path)) is not None
        }
    except OSError as error:
        return unknown_from_os_error(groups.source, error)
    except ParseError as error:
        return Unknown(why="unparsed", detail=str(error), source=groups.source)
    if not limits:
        return absent("no control group limits swap", groups.source)
    path = min(limits, key=lambda name: limits[name])
    return Known(value=limits[path], source=Source(kind="file", name=path))


def collect_cpu_quota(system: System, groups: Fact[Groups]) -> Fact[CpuQuota]:
    """Read the processor quota of our group and its ancestors; `absent` when none sets one."""
    if isinstance(groups, Unknown):
        return groups
    read = _quota_v1 if groups.value.version == 1 else _quota_v2
    try:
        found = [quota for folder in groups.value.folders if (quota := read(system, folder)) is not None]
    except OSError as error:
        return unknown_from_os_error(groups.source, error)
    except ParseError as error:
        return Unknown(why="unparsed", detail=str(error), source=groups.source)
    if not found:
        return absent(
            f"no control group from {groups.value.folders[0]} upwards limits processor time", groups.source
        )
    tightest = min(found, key=lambda one: one.cpus)
    return Known(value=tightest, source=Source(kind="file", name=tightest.file))


def _quota_v2(system: System, folder: str) -> CpuQuota | None:
    path = f"{folder}/cpu.max"
    words = (_optional(system, path) or "max").split()
    if words[:1] == ["max"] or not words:
        return None
    period = parse_int(words[1]) if len(words) > 1 else 100_000
    return CpuQuota(_share(parse_int(words[0]), period, path), path, folder)


def _quota_v1(system: System, folder: str) -> CpuQuota | None:
    path = f"{folder}/cpu.cfs_quota_us"
    quota = parse_int(_optional(system, path) or "-1")
    if quota <= 0:
        return None
    period = parse_int(_optional(system, f"{folder}/cpu.cfs_period_us") or "100000")
    return CpuQuota(_share(quota, period, path), path, folder)


def _share(quota: int, period: int, path: str) -> float:
    if quota <= 0 or period <= 0:
        raise ParseError(f"{path}: a quota of {quota} in {period}")
    return quota / period


def collect_throttling(system: System, groups: Fact[Groups], quota: Fact[CpuQuota]) -> Fact[dict[str, int]]:
    """Read how often the group with the quota (or our own) was held back: cpu.stat's counters."""
    if isinstance(groups, Unknown):
        return groups
    folder = groups.value.folders[0] if isinstance(quota, Unknown) else quota.value.folder
    return derive(read_fact(system, f"{folder}/cpu.stat", str), parse_counters)
