"""A rule in its compact form, as it is loaded at run time."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from llamaops.schema.diagnosis import Place

Severity = Literal["fatal", "error", "warn", "info"]
Tier = Literal["cause", "message", "wrapper", "note"]
KINDS = (
    "log", "command", "http-request", "http-response", "host-facts", "unit-file", "env", "config", "bench",
    "inspect", "text",
)  # fmt: skip


class Condition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition on a situation: a signal in a line, a fact, or a combination."""

    op: Literal["line", "fact", "any", "all", "not"]
    signal: int = -1
    """Index of the signal, for `line`."""
    kinds: tuple[str, ...] = ()
    """Kinds of parts that the line may be in; none for any."""
    fact: str = ""
    """An expression over facts, for `fact`."""
    of: tuple[Condition, ...] = ()
    """What is combined."""


class Signal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pattern for one line, and substrings one of which every matching line has."""

    regex: str
    needles: tuple[str, ...]
    fold: bool = False
    """Whether case does not matter."""
    kinds: tuple[str, ...] = ()
    """Kinds of parts that any rule looks for it in; none for every kind."""
    explains: bool = False
    """Whether a rule rests on it, so that an error line which has it is understood."""

    def concerns(self, kind: str) -> bool:
        """Say whether any rule looks for it in parts of a kind."""
        return not self.kinds or kind in self.kinds


class Next(msgspec.Struct, frozen=True, omit_defaults=True):
    """The next action, before values are filled in."""

    do: str
    run: str | None = None
    changes_state: bool = False


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that can be concluded."""

    slug: str
    area: str
    boundary: Place
    severity: Severity
    match: Condition
    says: str
    next: Next
    tier: Tier = "message"
    sure: Literal["certain", "likely", "possible"] = "certain"
    why: str = ""
    """Why it is that sure; a default by tier where it is not said."""
    needs: tuple[Condition, ...] = ()
    unless: tuple[Condition, ...] = ()
    facts: tuple[str, ...] = ()
    shows: tuple[Condition, ...] = ()
    """Lines that belong to the proof where they are there; the rule holds without them."""
    over: tuple[str, ...] = ()
    """Slugs that this one explains: they become its symptoms."""
    since: int | None = None
    until: int | None = None
    recovers: bool | None = None
    """Whether reaching readiness later takes it back; by default, for failures up to the load."""
    rules_out: tuple[str, ...] = ()
    do_not_conclude: tuple[str, ...] = ()
    explanation: str = ""


class RuleSet(msgspec.Struct, frozen=True):
    """Every rule, and every signal they use."""

    digest: str
    """SHA-256 of the rule files that it was made from."""
    signals: tuple[Signal, ...]
    rules: tuple[Rule, ...]


@cache
def rule_set() -> RuleSet:
    """Load the compact form of the rules, once."""
    from importlib.resources import files

    data = files("llamaops.diagnosis").joinpath("rules.json").read_bytes()
    return msgspec.json.decode(data, type=RuleSet)


@cache
def by_slug() -> dict[str, tuple[Rule, ...]]:
    """Return the rules by slug; one cause may have several rules."""
    found: dict[str, list[Rule]] = {}
    for rule in rule_set().rules:
        found.setdefault(rule.slug, []).append(rule)
    return {slug: tuple(rules) for slug, rules in found.items()}
