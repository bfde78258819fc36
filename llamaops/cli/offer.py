"""Offer to fetch the embedded engine and model where nothing else was found: ask on a terminal only."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamaops.operations.settings import Settings
    from llamaops.system.machine import Machine


def offer_embedded(
    settings: Settings, machine: Machine, args: argparse.Namespace, *, model: bool = True
) -> None:
    """Fetch what is missing when the operator agrees; elsewhere the next error says how.

    Raises: FetchError.
    """
    missing = [name for name in _missing(settings, machine) if model or name != "model"]
    if not missing or args.format == "json" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from llamaops.cli import fetch

    fetch.run(argparse.Namespace(what=missing, yes=False))


def _missing(settings: Settings, machine: Machine) -> list[str]:
    from llamaops.operations.fetch import cache_folder, embedded
    from llamaops.operations.settings import EMBEDDED

    paths = embedded(cache_folder(machine.environ))
    missing = []
    on_path = any(machine.which(name) for name in ("llama-server", "llama-completion"))
    wants_engine = settings.bin_dir == EMBEDDED or (settings.bin_dir is None and not on_path)
    if wants_engine and (paths is None or paths.server is None):
        missing.append("engine")
    if settings.model in {None, EMBEDDED} and (paths is None or paths.model is None):
        missing.append("model")
    return missing
