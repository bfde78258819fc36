"""What became of flags from one build to another, by their own help texts."""

from __future__ import annotations

from collections.abc import Iterable

from llamaops.facts.canary import DefaultChange, FlagChange, FlagComparison
from llamaops.facts.capabilities import Capabilities, Option
from llamaops.launch.extra import replacement


def compare_flags(used: Iterable[str], now: Capabilities, then: Capabilities) -> FlagComparison:
    """Compare the flags in use, and the defaults of all others, in two builds.

    Args:
        used: The flags in use, as they are written.
        now: What the current build's help offers.
        then: What the candidate's help offers.
    """
    flags = tuple(dict.fromkeys(flag for flag in used if flag.startswith("-")))
    changes = tuple(_change(flag, now, then) for flag in flags)
    known = {option.spellings for flag in flags if (option := now.find(flag)) is not None}
    return FlagComparison(in_use=changes, defaults=tuple(_defaults(now, then, known)))


def _change(flag: str, now: Capabilities, then: Capabilities) -> FlagChange:
    before, after = now.find(flag), then.find(flag)
    if after is None or after.removed:
        renamed = _renamed(before, then)
        if renamed is not None:
            return FlagChange(flag=flag, state="renamed", then=renamed)
        return FlagChange(flag=flag, state="vanished", then=replacement(flag, then))
    if before is None:
        return FlagChange(flag=flag, state="same")
    if bool(before.value_hints) != bool(after.value_hints) or not set(before.allowed_values) <= set(
        after.allowed_values
    ):
        return FlagChange(flag=flag, state="takes_other_value", now=_values(before), then=_values(after))
    if after.deprecated and not before.deprecated:
        return FlagChange(flag=flag, state="deprecated", then=replacement(flag, then))
    if _default(before) != _default(after):
        return FlagChange(flag=flag, state="default_changed", now=_default(before), then=_default(after))
    return FlagChange(flag=flag, state="same")


def _renamed(before: Option | None, then: Capabilities) -> str | None:
    """Return the candidate's spelling of an option that kept one of its other names."""
    if before is None:
        return None
    for spelling in before.aliases:
        option = then.find(spelling)
        if option is not None and not option.removed:
            return max(option.aliases, key=len)
    return None


def _defaults(now: Capabilities, then: Capabilities, used: set[tuple[str, ...]]) -> Iterable[DefaultChange]:
    for option in now.options:
        after = next((found for name in option.aliases if (found := then.find(name)) is not None), None)
        if option.spellings in used or after is None or after.removed:
            continue
        before, later = _default(option), _default(after)
        if before is not None and later is not None and before != later:
            yield DefaultChange(flag=max(option.aliases, key=len), now=before, then=later)


def _default(option: Option) -> str | None:
    return option.default_note or option.default


def _values(option: Option) -> str:
    return "|".join(option.allowed_values) or " ".join(option.value_hints) or "no value"
