"""The command line that was made for one build, and what had to be left out of it."""

from __future__ import annotations

from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape


class MissingFlag(Shape, frozen=True, kw_only=True):
    """A flag that was wanted and that this build's own help does not have."""

    flag: str
    """The spelling that was wanted."""
    wanted_for: str
    """The setting that needs it."""
    nearest: str | None = None
    """The nearest flag that the build has."""


class PlannedSlots(Shape, frozen=True, kw_only=True):
    """What the engine should make of the settings, in figures that it reports later."""

    slots: int
    """Slots."""
    slot_context_tokens: int | None
    """Context of a slot, capped by what the model was trained for; none where the engine decides."""
    kv_unified: bool
    """Whether all slots share one KV cache."""
    batch_tokens: int
    """Logical batch."""
    ubatch_tokens: int
    """Physical batch."""


class LaunchFacts(Shape, frozen=True, kw_only=True):
    """What was started, and how it was decided."""

    argv: tuple[str, ...]
    """The command line as run."""
    flags: tuple[str, ...]
    """Every flag in it, in order."""
    help_read: Fact[bool]
    """Whether the build's own help was read, so that the flags could be compared with it."""
    missing: tuple[MissingFlag, ...] = ()
    """Flags in the command line that the help does not have."""
    left_out: tuple[MissingFlag, ...] = ()
    """Flags that llamaops would have added and left out, because the build has none of their spellings."""
    plan: str = ""
    """What the engine will make of the settings, in one line."""
    planned: PlannedSlots | None = None
    """The same in figures, to be compared with what it reports."""
    removed_variables: tuple[str, ...] = ()
    """Names of inherited variables that would have changed the engine and were removed."""
