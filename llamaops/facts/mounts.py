"""Mounted file systems, from /proc/self/mountinfo."""

from __future__ import annotations

from typing import NamedTuple

from llamaops.errors import ParseError
from llamaops.facts.derive import read_fact
from llamaops.schema.bounds import MIB
from llamaops.schema.fact import Fact
from llamaops.system.ports import System

MOUNTINFO = "/proc/self/mountinfo"


class Mount(NamedTuple):
    """One mounted file system, in the order of mounting."""

    root: str
    point: str
    options: tuple[str, ...]
    kind: str
    device: str
    super_options: tuple[str, ...]


def collect_mounts(system: System) -> Fact[tuple[Mount, ...]]:
    """Read the mount table of our own mount namespace."""
    return read_fact(system, MOUNTINFO, parse_mountinfo, limit_bytes=4 * MIB)


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Parse mountinfo; a cut last line is left out.

    Raises: ParseError when no line has the form.
    """
    found = [mount for mount in map(_mount, text.splitlines()) if mount is not None]
    if not found:
        raise ParseError("no line looks like a mount")
    return tuple(found)


def _mount(line: str) -> Mount | None:
    # 36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue
    before, dash, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if not dash or len(left) < 6 or len(right) < 2:  # noqa: PLR2004 - the fields that every line has
        return None
    return Mount(
        root=_unescape(left[3]),
        point=_unescape(left[4]),
        options=tuple(left[5].split(",")),
        kind=right[0],
        device=_unescape(right[1]),
        super_options=tuple(right[2].split(",")) if len(right) > 2 else (),  # noqa: PLR2004
    )


def _unescape(text: str) -> str:
    """Undo the kernel's octal escapes of blank, tab, newline and backslash."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def mount_of(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """Return the mount that a resolved path lies on: the longest prefix, the last of equal ones."""
    best: Mount | None = None
    for mount in mounts:
        if is_under(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def is_under(path: str, folder: str) -> bool:
    """Say whether an absolute path is a folder or lies below it."""
    return folder in {"/", path} or path.startswith(folder.rstrip("/") + "/")
