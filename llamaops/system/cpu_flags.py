"""The instruction sets of this processor, as the kernel names them; cheap, for a choice between programs."""

from __future__ import annotations

from llamaops.system.ports import System

CPUINFO = "/proc/cpuinfo"
_ONE_PROCESSOR_BYTES = 16 * 1024


def cpu_flags(system: System) -> frozenset[str] | None:
    """Return the flags of the first x86 processor in /proc/cpuinfo; None where they cannot be read.

    One block is enough, and costs the same on a machine of 300 processors: no x86 machine that Linux runs
    on mixes processors that differ here. The kernel names a flag only when it has switched on the state
    that goes with it. Other architectures name the line otherwise and have no flags here.
    """
    try:
        text = system.read_text(CPUINFO, limit_bytes=_ONE_PROCESSOR_BYTES)
    except OSError:
        return None
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.rstrip() == "flags":
            return frozenset(value.split())
    return None
