"""A router's children: do they answer without the key that the router asks for?"""

from __future__ import annotations

from collections.abc import Iterable

from llamaops.probes.props import probe_props
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Known
from llamaops.system.http import HttpClient
from llamaops.system.origin import Origin

MOST = 16
BOUNDS = Bounds(wall_s=3.0)


def probe_children(addresses: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Ask GET /props at other addresses of this machine, without any key; return those that answered.

    The key is for the address that the operator gave: it is sent nowhere else.
    """
    found = []
    for host, port in list(addresses)[:MOST]:
        origin = Origin("http", host, port)
        props = probe_props(HttpClient(origin), bounds=BOUNDS)[1]
        if isinstance(props, Known):
            found.append(origin.netloc)
    return tuple(found)
