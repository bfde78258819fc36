"""Pick a port that is free now."""

from __future__ import annotations

import socket


def free_port(host: str) -> int:
    """Return a port that nobody listens on at an address; the system chooses it.

    Raises: OSError when the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port
