"""Who listens where: the kernel's socket tables joined with the open files of processes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

LISTEN = "0A"
TABLE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening TCP socket and the process that holds it."""

    address: str
    """As the kernel has it: `0.0.0.0` and `::` are every address."""
    port: int
    pid: int
    family: Literal["ipv4", "ipv6"]


def listeners(*pids: int) -> tuple[Listener, ...]:
    """Return the listening sockets of processes and of all their descendants.

    Raises: OSError when the tables cannot be read; PermissionError when a process is not ours to look at.
    """
    if not sys.platform.startswith("linux"):
        return _listeners_psutil(pids)
    found = []
    for pid in family(*pids):
        inodes = set(_socket_inodes(pid))
        if inodes:
            found += [
                Listener(address, port, pid, kind)
                for address, port, inode, kind in _table(f"/proc/{pid}/net")
                if inode in inodes
            ]
    return tuple(sorted(set(found), key=lambda item: (item.port, item.address, item.pid)))


def holder_of(port: int, address: str | None = None) -> int | None:
    """Return the pid that listens on a port, or None where nobody does; the lowest of several.

    Raises: as `holders_of`.
    """
    return min(holders_of(port, address), default=None)


def holders_of(port: int, address: str | None = None) -> tuple[int, ...]:
    """Return the pids that answer on a port: more than one where they share it.

    A listener on every address answers for an address that nobody listens on by itself.
    Raises: PermissionError when somebody listens whose open files we may not see.
    """
    if not sys.platform.startswith("linux"):
        holder = _holder_psutil(port)
        return () if holder is None else (holder,)
    entries = [(where, inode) for where, number, inode, _kind in _table("/proc/net") if number == port]
    exact = {inode for where, inode in entries if where == address}
    every = {inode for where, inode in entries if address is None or where in {"0.0.0.0", "::"}}  # noqa: S104
    wanted = exact or every
    if not wanted:
        return ()
    found = tuple(pid for pid in _all_pids() if wanted & _inodes_seen(pid))
    if not found:
        raise PermissionError(13, "the process that listens is not ours to look at", f"port {port}")
    return found


def _all_pids() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _inodes_seen(pid: int) -> set[str]:
    """Return the inodes of a process's sockets; none where we may not look."""
    try:
        return set(_socket_inodes(pid))
    except OSError:
        return set()


def program_of(pid: int) -> str:
    """Return the file name of a process's program.

    Raises: OSError when the process has gone or is not ours to look at.
    """
    if not sys.platform.startswith("linux"):
        return _program_psutil(pid)
    return os.path.basename(os.readlink(f"/proc/{pid}/exe"))


def family(*pids: int) -> tuple[int, ...]:
    """Return processes and all their descendants that are alive, parents first."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                parents.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = list(pids)
    while queue:
        pid = queue.pop(0)
        if pid not in found:
            found.append(pid)
            queue += parents.get(pid, [])
    return tuple(found)


def addresses_of(host: str) -> tuple[str, ...]:
    """Return the addresses of a host name; a literal address is its own.

    Raises: OSError when the name has none.
    """
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))


def is_own_address(host: str) -> bool:
    """Whether a host stands for addresses of this machine only; nothing is sent to find out."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
        for family_of, kind, protocol, _name, address in found:
            with socket.socket(family_of, kind, protocol) as probe:
                probe.bind((address[0], 0, *address[2:]))  # the kernel binds to no other machine's address
    except OSError:
        return False
    return bool(found)


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold spaces and parentheses of its own.
            return int(file.read(4096).rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _socket_inodes(pid: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets. Raises: PermissionError; a process that went has none."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except (FileNotFoundError, ProcessLookupError):
        return
    for name in names:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _table(folder: str) -> Iterator[tuple[str, int, str, Literal["ipv4", "ipv6"]]]:
    """Yield address, port and inode of every listening socket in a network namespace."""
    kinds: tuple[tuple[str, Literal["ipv4", "ipv6"]], ...] = (("tcp", "ipv4"), ("tcp6", "ipv6"))
    for name, kind in kinds:
        try:
            with open(f"{folder}/{name}", encoding="ascii", errors="replace") as file:
                text = file.read(TABLE_BYTES)
        except FileNotFoundError:
            continue  # a kernel without IPv6
        for line in text.splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTEN:  # noqa: PLR2004 - the column of the inode
                address, _, port = fields[1].rpartition(":")
                yield _address(address, kind), int(port, 16), fields[9], kind


def _address(text: str, kind: Literal["ipv4", "ipv6"]) -> str:
    """Decode an address of the kernel's table: 32-bit words in the machine's byte order, in hex."""
    words = [int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8)]
    packed = b"".join(words)
    return socket.inet_ntop(socket.AF_INET if kind == "ipv4" else socket.AF_INET6, packed)


def _listeners_psutil(pids: Iterable[int]) -> tuple[Listener, ...]:
    import psutil

    found = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            for member in [process, *process.children(recursive=True)]:
                found += [
                    Listener(
                        entry.laddr.ip,
                        entry.laddr.port,
                        member.pid,
                        "ipv6" if entry.family == socket.AF_INET6 else "ipv4",
                    )
                    for entry in member.net_connections("tcp")
                    if entry.status == psutil.CONN_LISTEN
                ]
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied as error:
            raise PermissionError(13, "not allowed to look at the process", str(pid)) from error
    return tuple(found)


def _holder_psutil(port: int) -> int | None:
    import psutil

    try:
        for entry in psutil.net_connections("tcp"):
            if entry.status == psutil.CONN_LISTEN and entry.laddr and entry.laddr.port == port:
                return entry.pid
    except psutil.AccessDenied as error:
        raise PermissionError(13, "not allowed to see who listens", f"port {port}") from error
    return None


def _program_psutil(pid: int) -> str:
    import psutil

    try:
        return str(psutil.Process(pid).name())
    except psutil.Error as error:
        raise PermissionError(13, "not allowed to look at the process", str(pid)) from error
