"""The flags in use, from a systemd unit or a command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from llamaops.errors import UsageError
from llamaops.schema.shape import Shape

_OURS = {"-m", "--model", "--host", "--port", "-a", "--alias", "--api-key-file", "--log-file"}
_SECRETS = {"--api-key", "-hft", "--hf-token"}


class UsedCommand(Shape, frozen=True, kw_only=True):
    """A command line that is in use, without what a canary sets for itself."""

    program: str
    """The program."""
    model: str | None
    """The model, where it is named."""
    flags: tuple[str, ...]
    """Flags and their values; neither address, port, alias, key nor model."""


def used_command(text: str) -> UsedCommand:
    """Read the ExecStart of a unit.

    Raises: UsageError where there is none, or where it needs a shell.
    Source: systemd.service(5): continued lines, prefixes of the program, %% and $$.
    """
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^ExecStart[ \t]*=[ \t]*(\S.*)$", joined, re.MULTILINE)
    if len(lines) != 1:
        raise UsageError(f"the unit has {len(lines)} ExecStart lines, and not one")
    try:
        words = shlex.split(lines[0])
    except ValueError as error:
        raise UsageError(f"the ExecStart of the unit cannot be read: {error}") from error
    words[0] = words[0].lstrip("@-:+!")
    if words[0].rsplit("/", 1)[-1] in {"sh", "bash", "env"}:
        raise UsageError(
            "the unit starts its server through a shell", hint="give the flags after `--` instead"
        )
    return split_command([word.replace("%%", "%").replace("$$", "$") for word in words])


def split_command(words: Sequence[str]) -> UsedCommand:
    """Take apart a command line; a secret in it is left out and never repeated."""
    program, *rest = words
    model: str | None = None
    flags: list[str] = []
    while rest:
        word = rest.pop(0)
        if word in _OURS or word in _SECRETS:
            value = rest.pop(0) if rest else None
            model = value if word in {"-m", "--model"} else model
        else:
            flags.append(word)
    return UsedCommand(program=program, model=model, flags=tuple(flags))


def renamed(flags: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """Return flags with some of them under another name."""
    return tuple(names.get(flag, flag) for flag in flags)
