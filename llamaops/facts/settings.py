"""Where each setting of a run came from."""

from __future__ import annotations

from llamaops.schema.shape import Shape


class Setting(Shape, frozen=True, kw_only=True):
    """One setting that took effect."""

    name: str
    """Its name in `llamaops.yaml`."""
    value: str
    """Its value as text."""
    origin: str
    """`command line`, the variable's name, the file and line, `default`, or what chose it."""


class SettingsFacts(Shape, frozen=True, kw_only=True):
    """The settings of a run, in a fixed order."""

    settings: tuple[Setting, ...]
    """Every setting that has a value."""
    files: tuple[str, ...] = ()
    """Configuration files that were read."""
