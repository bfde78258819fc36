"""What a process holds of the host's memory, as the kernel counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamaops.errors import ParseError
from llamaops.facts.derive import derive, read_fact
from llamaops.facts.host_limits import parse_status
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape

if TYPE_CHECKING:
    from llamaops.system.ports import System


class ProcessMemory(Shape, frozen=True, kw_only=True):
    """Memory of one process at one moment; pages that it never touched are in none of these."""

    resident_bytes: int
    """All of it that is in memory."""
    own_bytes: int
    """Of that, what is no file: caches, buffers, copied weights, heap."""
    file_bytes: int
    """Of that, pages of files, such as a mapped model and libraries; the kernel can drop them."""


def collect_process_memory(system: System, pid: int) -> Fact[ProcessMemory]:
    """Observe the memory of a process that runs; unknown where the kernel does not tell."""
    return derive(read_fact(system, f"/proc/{pid}/status", parse_status), parse_memory)


def parse_memory(status: dict[str, str]) -> ProcessMemory:
    """Take the three counts out of /proc/PID/status, whose `kB` are kibibytes (proc_pid_status(5)).

    Raises: ParseError when one is missing, as for a process that has just ended.
    """
    try:
        resident, own, file = (_bytes(status[name]) for name in ("VmRSS", "RssAnon", "RssFile"))
    except (KeyError, ValueError):
        raise ParseError("no VmRSS, RssAnon and RssFile in kB") from None
    return ProcessMemory(resident_bytes=resident, own_bytes=own, file_bytes=file)


def _bytes(text: str) -> int:
    number, unit = text.split()
    if unit != "kB":
        raise ValueError(unit)
    return int(number) * 1024
