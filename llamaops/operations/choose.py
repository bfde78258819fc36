"""Which model and which programs a run takes, and where that choice came from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from llamaops.errors import UsageError
from llamaops.facts.settings import Setting, SettingsFacts
from llamaops.operations.settings import EMBEDDED, Settings
from llamaops.system import paths as at
from llamaops.system.machine import Machine

if TYPE_CHECKING:
    from llamaops.operations.fetch import EmbeddedPaths

# The name since June 2024 first, then the one before; an old name is only tried in a named folder,
# because anything on PATH may be called `server` or `main`.
OLD_NAMES = {"llama-server": "server", "llama-completion": "main"}
NO_PROGRAM_HINT = (
    "name a folder with --bin-dir, put llama.cpp on PATH, or run `llamaops fetch` and use --bin-dir embedded"
)
NO_MODEL_HINT = "name one with --model FILE, or run `llamaops fetch` and use --model embedded"


class Choice(msgspec.Struct, frozen=True):
    """A path and what chose it."""

    path: str
    origin: str


def choose_model(settings: Settings, machine: Machine) -> Choice | None:
    """Return the model: the one that was named, else the embedded one where it was fetched.

    Raises: UsageError when the embedded model was named and is not there.
    """
    if settings.model is not None and settings.model != EMBEDDED:
        return Choice(at.expanded(settings.model), "named")
    paths = _embedded(machine)
    if paths is not None and paths.model is not None:
        return Choice(str(paths.model), "embedded model of `llamaops fetch`")
    if settings.model == EMBEDDED:
        raise UsageError("the embedded model was not fetched", hint="run `llamaops fetch`")
    return None


def choose_bin_dir(settings: Settings, machine: Machine) -> str | None:
    """Return the folder of programs that was named; None means PATH.

    Raises: UsageError when it is not there.
    """
    if settings.bin_dir is None:
        return None
    if settings.bin_dir == EMBEDDED:
        paths = _embedded(machine)
        if paths is None or paths.server is None:
            raise UsageError("the embedded engine was not fetched", hint="run `llamaops fetch`")
        return at.parent(paths.server)
    folder = at.expanded(settings.bin_dir)
    if at.is_file(folder):
        return at.parent(folder)
    if not at.is_folder(folder):
        raise UsageError(f"--bin-dir {folder} is no folder", hint=NO_PROGRAM_HINT)
    return folder


def choose_program(role: str, settings: Settings, machine: Machine) -> Choice | None:
    """Return the program for a role: the named folder's, else PATH's, else the embedded one."""
    folder = choose_bin_dir(settings, machine)
    if folder is not None:
        for name in (role, OLD_NAMES.get(role, role)):
            path = at.joined(folder, name)
            if machine.access(path, os.X_OK) and at.is_file(path):
                return Choice(path, f"--bin-dir {folder}")
        return None
    if found := machine.which(role):
        return Choice(found, "PATH")
    return embedded_engine(machine) if role == "llama-server" else None


def embedded_engine(machine: Machine) -> Choice | None:
    """Return the embedded llama-server where it was fetched and PATH has no llama.cpp of the operator's."""
    if any(machine.which(name) for name in ("llama-server", "llama-completion", "llama-cli", "llama")):
        return None
    paths = _embedded(machine)
    if paths is None or paths.server is None:
        return None
    return Choice(str(paths.server), "embedded engine of `llamaops fetch`")


def with_choices(facts: SettingsFacts, **choices: Choice | None) -> SettingsFacts:
    """Add what was chosen, not given, to the settings of the record."""
    extra = tuple(
        Setting(name=name, value=choice.path, origin=choice.origin)
        for name, choice in choices.items()
        if choice is not None and choice.origin != "named"
    )
    return msgspec.structs.replace(facts, settings=facts.settings + extra)


def _embedded(machine: Machine) -> EmbeddedPaths | None:
    from llamaops.operations.fetch import cache_folder, embedded

    return embedded(cache_folder(machine.environ))
