"""How old is the server that answers? Some answers have a form that only builds of one age gave. Pure.

Source: examples/server/server.cpp of llama.cpp. From January to September 2024 /health counted the slots
(`slots_idle`, `slots_processing`), and /props named no build; the same builds sent streams without a
terminal marker, with an id of its own in every piece and without usage, and knew neither tools nor JSON
schemas. A server of that age lacks these things, which is no fault of it; one that lacks them without the
other marks of that age is at fault.
"""

from __future__ import annotations

from llamaops.probes.server import ServerFacts
from llamaops.schema.fact import Known

EARLY = "absent in this build: it is older than September 2024, by its /health and /props"


def is_of_2024(server: ServerFacts) -> bool:
    """Say whether the answers have the form of builds before November 2024, whose slots have a `state`."""
    nameless = isinstance(server.props, Known) and not server.props.value.build_info
    return nameless and (
        is_early(server) or (isinstance(server.slots, Known) and server.slots.value.by_state)
    )


def is_early(server: ServerFacts) -> bool:
    """Say whether the server's own answers have the form of builds before September 2024."""
    counts = isinstance(server.health, Known) and server.health.value.counts_slots
    return counts and isinstance(server.props, Known) and not server.props.value.build_info
