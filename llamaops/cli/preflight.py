"""`llamaops preflight`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session

SETTINGS = ("model", "bin_dir", "ctx_size", "parallel", "n_gpu_layers", "expect_device", "threads")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "preflight",
        help="record what is on this host, and what would stop a server",
        description="Record host, accelerators and every llama.cpp program, with what each really supports. "
        "Read-only: nothing is loaded and no model runs.",
        allow_abbrev=False,
    )
    options.add_settings(parser, SETTINGS)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Look at this host."""
    from llamaops.cli.offer import offer_embedded
    from llamaops.cli.session import perform, resolve
    from llamaops.operations.preflight import preflight
    from llamaops.system.machine import Machine

    settings, facts = resolve(args, SETTINGS)
    with Machine() as looking:
        offer_embedded(settings, looking, args, model=False)

    def operation(session: Session, machine: Machine) -> None:
        preflight(session, machine, settings)

    return perform(args, settings, facts, operation)
