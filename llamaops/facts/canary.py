"""What two builds do with the same model, the same flags and the same requests."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape

FlagState = Literal["same", "vanished", "renamed", "deprecated", "takes_other_value", "default_changed"]


class FlagChange(Shape, frozen=True, kw_only=True):
    """One flag in use, in both builds."""

    flag: str
    """As it is used now."""
    state: FlagState
    """What became of it."""
    now: str | None = None
    """What the current build says of it: the default, or the values it takes."""
    then: str | None = None
    """What the candidate says of it; for `renamed` the new spelling, for `vanished` the nearest one."""


class DefaultChange(Shape, frozen=True, kw_only=True):
    """A default of a flag that is not in use."""

    flag: str
    """The flag."""
    now: str
    """The default in the current build."""
    then: str
    """The default in the candidate."""


class FlagComparison(Shape, frozen=True, kw_only=True):
    """The flags of both builds."""

    in_use: tuple[FlagChange, ...]
    """Each flag in use."""
    defaults: tuple[DefaultChange, ...]
    """Defaults that changed of flags not in use: these take effect silently."""


class Memory(Shape, frozen=True, kw_only=True):
    """What the load log says was allocated."""

    weights_bytes: Fact[int]
    """Buffers of the weights."""
    kv_bytes: Fact[int]
    """Buffers of the KV cache."""
    compute_bytes: Fact[int]
    """Compute buffers."""


class CanarySide(Shape, frozen=True, kw_only=True):
    """One build."""

    program: str
    """Its llama-server."""
    build: str
    """What it says of itself."""
    argv: tuple[str, ...]
    """The command line as run; empty where none could be made."""
    ready: bool
    """Whether it became ready."""
    why_not: str = ""
    """Why not, where it did not."""
    failed: tuple[str, ...] = ()
    """Required checks of the verification that failed."""
    not_shown: tuple[str, ...] = ()
    """Required checks of the verification that could not be judged."""
    judged: int = 0
    """Required checks that were judged."""
    templates: tuple[Fact[str], ...] = ()
    """Our conversations as the chat template renders them."""
    tokens: tuple[Fact[tuple[int, ...]], ...] = ()
    """The tokens of our texts."""
    greedy: tuple[Fact[str], ...] = ()
    """What follows our prompts at temperature 0."""
    endpoints: dict[str, str] = {}  # noqa: RUF012 - msgspec copies an empty default
    """What each endpoint's answer means, by request."""
    errors: dict[str, str] = {}  # noqa: RUF012 - msgspec copies an empty default
    """Status and whether it is a documented one, by what is wrong with the request."""
    memory: Memory | None = None
    """What was allocated."""


class CanaryFacts(Shape, frozen=True, kw_only=True):
    """Two builds side by side."""

    current: CanarySide
    """The build in use."""
    candidate: CanarySide
    """The build that is to replace it."""
    flags: Fact[FlagComparison]
    """Their flags."""
    verdict: Literal["switch", "hold", "not_judged"] = "not_judged"
    """What follows from the findings."""
    reasons: tuple[str, ...] = ()
    """Why to hold, or what to know before the switch."""
    go_back: str = ""
    """How to go back."""
