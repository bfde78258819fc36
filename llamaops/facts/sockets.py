"""Which addresses a server of ours really listens on, and who holds the port asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted
from llamaops.schema.shape import Shape
from llamaops.system import sockets
from llamaops.system.sockets import Listener

T = TypeVar("T")


class ListeningSocket(Shape, frozen=True, kw_only=True):
    """One listening TCP socket."""

    address: str
    """Address; `0.0.0.0` and `::` are every address of the machine."""
    port: int
    """Port."""
    pid: int
    """Process that holds it."""
    of_child: bool
    """Whether a descendant holds it, not the process we started."""


class SocketFacts(Shape, frozen=True, kw_only=True):
    """The sockets of the server that llamaops started, looked at while it serves."""

    host: str
    """Address or name asked for."""
    port: int
    """Port that the server is reached at."""
    pid: int
    """The process we started."""
    addresses: Fact[tuple[str, ...]]
    """The addresses that the host asked for stands for."""
    listeners: Fact[tuple[ListeningSocket, ...]]
    """Listening sockets of the process and all its descendants."""
    holders: Fact[tuple[int, ...]]
    """Pids of the processes that answer on that port at the address asked for."""


class OwnerFacts(Shape, frozen=True, kw_only=True):
    """Who answers at the address of a server that already ran, as this machine sees it."""

    host: str
    """Address or name asked for."""
    port: int
    """Port asked for."""
    addresses: Fact[tuple[str, ...]]
    """The addresses that the host asked for stands for."""
    pids: Fact[tuple[int, ...]]
    """Processes that answer there; unknown on another machine, and where we may not look."""
    programs: Fact[tuple[str, ...]]
    """File names of their programs; a container's port is often held by a proxy of the container engine."""
    listeners: Fact[tuple[ListeningSocket, ...]]
    """Listening sockets of these processes and all their descendants."""
    open_children: Fact[tuple[str, ...]]
    """Addresses of descendants that answered without the key, as a router's children do; only with a key."""


def collect_owner(
    host: str,
    port: int,
    *,
    here: bool,
    listeners: Callable[..., tuple[Listener, ...]] = sockets.listeners,
    holders_of: Callable[[int, str | None], tuple[int, ...]] = sockets.holders_of,
    addresses_of: Callable[[str], tuple[str, ...]] = sockets.addresses_of,
    program_of: Callable[[int], str] = sockets.program_of,
) -> OwnerFacts:
    """Look for the process that answers at an address, where that is one of this machine.

    Raises: nothing for a state of the machine.
    """
    away = not_attempted("the address is not one of this machine")
    unasked = not_attempted("no child of a server was asked without the key")
    if not here:
        return OwnerFacts(
            host=host, port=port, addresses=away, pids=away, programs=away, listeners=away,
            open_children=unasked,
        )  # fmt: skip
    addresses = _observe(f"addresses of {host}", lambda: addresses_of(host))
    first = addresses.value[0] if isinstance(addresses, Known) and addresses.value else None
    pids = _observe(f"processes that listen on port {port}", lambda: holders_of(port, first))
    if isinstance(pids, Known) and not pids.value:
        # It answers, and the kernel's table names nobody: a port that another namespace forwards.
        pids = Unknown(why="absent", detail=f"no process here listens on port {port}", source=pids.source)
    if not isinstance(pids, Known):
        return OwnerFacts(
            host=host, port=port, addresses=addresses, pids=pids, programs=pids, listeners=pids,
            open_children=unasked,
        )  # fmt: skip
    own = pids.value
    return OwnerFacts(
        host=host,
        port=port,
        addresses=addresses,
        pids=pids,
        programs=_observe("programs of these processes", lambda: tuple(program_of(pid) for pid in own)),
        listeners=_observe(
            f"listening sockets of {', '.join(map(str, own))} and their descendants",
            lambda: tuple(
                ListeningSocket(
                    address=item.address, port=item.port, pid=item.pid, of_child=item.pid not in own
                )
                for item in listeners(*own)
            ),
        ),
        open_children=unasked,
    )


def collect_sockets(
    pid: int,
    *,
    host: str,
    port: int,
    listeners: Callable[[int], tuple[Listener, ...]] = sockets.listeners,
    holders_of: Callable[[int, str | None], tuple[int, ...]] = sockets.holders_of,
    addresses_of: Callable[[str], tuple[str, ...]] = sockets.addresses_of,
) -> SocketFacts:
    """Look at the sockets of a process and its descendants.

    Raises: nothing for a state of the machine.
    """
    addresses = _observe(f"addresses of {host}", lambda: addresses_of(host))
    first = addresses.value[0] if isinstance(addresses, Known) and addresses.value else None
    return SocketFacts(
        host=host,
        port=port,
        pid=pid,
        addresses=addresses,
        listeners=_observe(
            f"listening sockets of process {pid}",
            lambda: tuple(
                ListeningSocket(address=item.address, port=item.port, pid=item.pid, of_child=item.pid != pid)
                for item in listeners(pid)
            ),
        ),
        holders=_observe(f"processes that listen on port {port}", lambda: holders_of(port, first)),
    )


def _observe(name: str, look: Callable[[], T]) -> Fact[T]:
    source = Source(kind="library", name=name)
    try:
        return Known(value=look(), source=source)
    except OSError as error:
        return unknown_from_os_error(source, error)
