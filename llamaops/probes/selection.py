"""Which probes a verification asks: a level, and what the operator adds or leaves out. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from llamaops.errors import UsageError
from llamaops.probes.registry import CHOICES, LEVELS, Level, all_probes
from llamaops.schema.boundary import BoundaryName

ALWAYS = frozenset({"health", "models", "props"})
"""Without these no other question can be put: they say what to ask for, and how much."""
DEFAULT_LEVEL: Level = "standard"
NEEDS = {
    "chat-stream": ("chat",),
    "concurrency": ("chat",),
    "late-request": ("chat",),
    "disconnect": ("chat",),
    "reasoning": ("chat",),
    "structured": ("chat",),
    "tools": ("chat",),
    "context": ("chat",),
    "pool-exhaustion": ("chat",),
    "drain": ("chat",),
}
"""What a probe is measured against: its pace and whether it can be asked come from there."""


class Selection(msgspec.Struct, frozen=True):
    """The probes to ask."""

    level: Level
    """The level they come from."""
    ids: frozenset[str]
    """Ids of the probes to ask."""
    only: bool = False
    """Whether they were named one by one."""

    def __contains__(self, probe: object) -> bool:
        """Say whether a probe is asked."""
        return probe in self.ids

    def why_not(self, probe: str) -> str:
        """Say why a probe is not asked."""
        by = "--only leaves" if self.only else f"--level {self.level} or --skip leaves"
        return f"{by} {probe} out"

    def promises(self) -> tuple[BoundaryName, ...]:
        """Return the boundaries that these probes can reach."""
        found: list[BoundaryName] = []
        if self.ids & {"chat", "chat-stream"}:
            found.append("generated_output")
        found.append("api_response")
        if self.ids & {"concurrency", "late-request"}:
            found.append("concurrency")
        return tuple(found)


def everything_at(level: Level) -> frozenset[str]:
    """Return the probes of a level."""
    most = LEVELS.index(level)
    return frozenset(item.id for item in all_probes() if LEVELS.index(item.level) <= most)


def select(level: str | None = None, only: Iterable[str] = (), skip: Iterable[str] = ()) -> Selection:
    """Return the probes to ask.

    Raises: UsageError for a level or a probe that does not exist, with the nearest that does.
    """
    chosen = _level(level)
    named, left_out = _known(only, "--only"), _known(skip, "--skip")
    if left_out & ALWAYS:
        name = min(left_out & ALWAYS)
        raise UsageError(f"--skip {name}: it is always asked", hint="every other probe rests on it")
    ids = (_with_needs(named) if named else everything_at(chosen)) - left_out
    return Selection(chosen, ids | ALWAYS, only=bool(named))


def _level(level: str | None) -> Level:
    for choice in CHOICES:
        if level == choice:
            return choice
    if level is None:
        return DEFAULT_LEVEL
    raise UsageError(f"--level {level}: has to be one of {', '.join(CHOICES)}")


def _known(names: Iterable[str], flag: str) -> frozenset[str]:
    from difflib import get_close_matches

    known = [item.id for item in all_probes()]
    wanted = frozenset(name.strip() for text in names for name in text.split(",") if name.strip())
    for name in sorted(wanted - set(known)):
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "`llamaops verify --list` shows them all"
        raise UsageError(f"{flag} {name}: there is no such probe", hint=hint)
    return wanted


def _with_needs(names: frozenset[str]) -> frozenset[str]:
    return names.union(*(NEEDS.get(name, ()) for name in names))
