"""How a server that llamaops started came up and how it ended."""

from __future__ import annotations

from typing import Literal

from llamaops.facts.process_memory import ProcessMemory
from llamaops.schema.fact import Fact, not_attempted
from llamaops.schema.shape import Shape


class HealthPoll(Shape, frozen=True, kw_only=True):
    """One answer (or failure) of /health while waiting; equal neighbours are counted together."""

    answer: str
    """HTTP status, or the kind of failure such as `refused`."""
    count: int
    """How many times in a row."""
    first_s: float
    """Seconds after the start of the process."""
    last_s: float
    """Seconds after the start of the process."""


class LifecycleFacts(Shape, frozen=True, kw_only=True):
    """From the start of our server to its end."""

    address: str
    """Address and port that the server was told to use."""
    port_holder: Fact[str]
    """Who held the port before the start; the empty text when nobody did."""
    pid: Fact[int]
    """The process we started."""
    health: tuple[HealthPoll, ...]
    """What /health answered on the way."""
    ready_s: Fact[float]
    """Seconds from the start of the process until it was ready."""
    ready_lag_s: Fact[float]
    """Seconds from the log's own listening line until llamaops knew that it was ready."""
    memory_when_ready: Fact[ProcessMemory] = not_attempted("it did not become ready")
    """What the process held of the host's memory when it was ready, before any request."""
    first_error: Fact[str]
    """The first error line of the log when the start failed."""
    log_end: tuple[str, ...] = ()
    """The last lines of the log when the start failed."""
    end: Fact[str]
    """How the process ended; not attempted while it is still serving."""
    stop: Literal[
        "ended_by_itself", "first_sigterm", "second_sigterm", "sigkill", "not_started", "still_serving"
    ] = "still_serving"
    """What it took to stop it."""
    stop_s: Fact[float]
    """Seconds that stopping took."""
    client_at_stop: bool = False
    """Whether a request of ours ran on purpose when it was stopped: no engine leaves at once then."""
    elsewhere: tuple[str, ...] = ()
    """Where it listened instead, when its log said ready and the address asked for refused."""
    left: tuple[int, ...] = ()
    """Pids of descendants that were still there after the server had gone, and were killed."""
    died_while_serving: bool = False
    """Whether it ended by itself after it had been ready."""
