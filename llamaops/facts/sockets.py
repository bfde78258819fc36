"""Which addresses a server of ours really listens on, and who holds the port asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.fact import Fact, Known, Source
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
