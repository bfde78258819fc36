"""What a bounded command prints, as a fact with its output kept."""

from __future__ import annotations

from collections.abc import Sequence

from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why
from llamaops.system.ports import System
from llamaops.system.process import Completed, End, Exited, NotStarted, StoppedAtBound, describe

TOOL_BOUNDS = Bounds(wall_s=10.0, keep_bytes=512 * KIB, total_bytes=4 * MIB)


def tell(system: System, argv: Sequence[str], *, bounds: Bounds = TOOL_BOUNDS) -> Fact[str]:
    """Run a command and return what it printed on standard output.

    A command that exits with another status than 0 and still printed has told something (sysctl does so
    for one unknown name, vendor tools for one unsupported query); its parser decides what it is worth.
    """
    source = Source(kind="command", name=" ".join(argv))
    done = system.run(argv, bounds=bounds)
    if isinstance(done.end, Exited) and done.stdout.total_bytes:
        kept = system.keep(done.stdout.evidence("stdout", source.name))
        return Known(value=done.stdout.text, source=Source(kind="command", name=source.name, evidence=kept))
    return Unknown(why=why_of(done.end), detail=f"{source.name}: {_said(done)}", source=source)


def why_of(end: End) -> Why:
    """Return the reason a command told nothing."""
    match end:
        case StoppedAtBound(bound="wall_s"):
            return "timed_out"
        case NotStarted(errno=2):
            return "absent"
        case NotStarted(errno=13 | 1):
            return "refused"
        case _:
            return "failed"


def _said(done: Completed) -> str:
    lines = done.stderr.text.strip().splitlines()
    return f"{describe(done.end)}: {lines[-1][:200]}" if lines else describe(done.end)
