"""Declare probes, so that what is sent, shown and spent can be listed without running anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

F = TypeVar("F", bound=Callable[..., Any])

Level = Literal["basic", "standard", "full", "named"]
"""How much is asked; each level holds those before it, and `named` only what --only names."""
LEVELS: tuple[Level, ...] = get_args(Level)
CHOICES: tuple[Level, ...] = LEVELS[:3]


@dataclass(frozen=True, slots=True)
class Probe:
    """A declared probe."""

    id: str
    sends: str
    """The request line."""
    proves: str
    does_not_prove: str
    tokens: str
    """What it costs the server: none, or the bound on generated tokens."""
    seconds: str
    """How long it takes beside the generation, and its bound."""
    level: Level
    """The lowest level that asks it."""
    function: Callable[..., Any]


_PROBES: dict[str, Probe] = {}


def probe(
    id: str,  # noqa: A002 - the word of the record
    *,
    sends: str,
    proves: str,
    does_not_prove: str,
    tokens: str = "none",
    seconds: str = "one exchange, at most 10 s",
    level: Level = "basic",
) -> Callable[[F], F]:
    """Declare a probe; the function is returned unchanged.

    Raises: ValueError for a second probe with the same id.
    """

    def register(function: F) -> F:
        if id in _PROBES:
            raise ValueError(f"two probes are called {id}")
        _PROBES[id] = Probe(id, sends, proves, does_not_prove, tokens, seconds, level, function)
        return function

    return register


def all_probes() -> list[Probe]:
    """Return every probe, ordered by id."""
    import llamaops.probes.everything  # noqa: F401 - imports every probe module

    return [_PROBES[name] for name in sorted(_PROBES)]
