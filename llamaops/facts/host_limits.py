"""Limits that a server inherits from us: locked memory, open files, processes."""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.facts.container import own_namespace
from llamaops.facts.derive import derive, pick, read_fact
from llamaops.schema.fact import Fact, Known
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

LIMITS = "/proc/self/limits"
STATUS = "/proc/self/status"
_CAP_IPC_LOCK = 14


class Limit(Shape, frozen=True, kw_only=True):
    """A limit of the process, as the kernel holds it."""

    soft: int | None
    """What holds now; None is unlimited."""
    hard: int | None
    """How far we may raise it ourselves; None is unlimited."""


class LimitFacts(Shape, frozen=True, kw_only=True):
    """What a process of ours may take, whatever the machine has."""

    memlock_bytes: Fact[Limit]
    """Memory that may be locked (`ulimit -l`), in bytes."""
    may_lock_any_memory: Fact[bool]
    """Whether CAP_IPC_LOCK lifts that limit; a capability inside a user namespace does not."""
    open_files: Fact[Limit]
    """File descriptors (`ulimit -n`)."""
    processes: Fact[Limit]
    """Processes and threads of the user (`ulimit -u`)."""
    address_space_bytes: Fact[Limit]
    """Virtual memory (`ulimit -v`), which a memory-mapped model counts against, in bytes."""


def collect_limits(system: System) -> LimitFacts:
    """Read our own limits, which children inherit."""
    limits = read_fact(system, LIMITS, parse_limits)
    return LimitFacts(
        memlock_bytes=pick(limits, "Max locked memory"),
        may_lock_any_memory=_may_lock(system),
        open_files=pick(limits, "Max open files"),
        processes=pick(limits, "Max processes"),
        address_space_bytes=pick(limits, "Max address space"),
    )


def parse_limits(text: str) -> dict[str, Limit]:
    """Parse /proc/self/limits, whose first column is 26 characters wide.

    Raises: ParseError when no line has the form.
    """
    found: dict[str, Limit] = {}
    for line in text.splitlines()[1:]:
        name, values = line[:26].strip(), line[26:].split()
        if len(values) >= 2 and all(value == "unlimited" or value.isdecimal() for value in values[:2]):  # noqa: PLR2004
            found[name] = Limit(soft=_number(values[0]), hard=_number(values[1]))
    if not found:
        raise ParseError("no line of a name, a soft and a hard limit")
    return found


def _number(text: str) -> int | None:
    return None if text == "unlimited" else int(text)


def _may_lock(system: System) -> Fact[bool]:
    effective = derive(read_fact(system, STATUS, parse_status), _effective_capabilities)
    user_namespace = own_namespace(system, "user")
    return derive(effective, lambda mask: bool(mask >> _CAP_IPC_LOCK & 1) and not _inside(user_namespace))


def _inside(namespace: Fact[bool]) -> bool:
    return isinstance(namespace, Known) and namespace.value


def parse_status(text: str) -> dict[str, str]:
    """Parse /proc/self/status: lines of a name, a colon and a value."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in pairs if colon}


def _effective_capabilities(status: dict[str, str]) -> int:
    try:
        return int(status["CapEff"], 16)
    except (KeyError, ValueError):
        raise ParseError("no mask CapEff") from None
