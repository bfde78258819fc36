"""`llamaops inspect MODEL`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "inspect",
        help="read a model file's header and check that the file is whole",
        description="Read the GGUF header of a model, any shard of it, and check that every byte is there. "
        "Read-only; the tensor data is not read.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="MODEL", help="GGUF file; any shard of a split model, or `embedded`")
    options.add_common(parser)
    parser.set_defaults(quiet=True)


def run(args: argparse.Namespace) -> int:
    """Inspect a model."""
    from llamaops.cli.session import perform, resolve
    from llamaops.operations.choose import choose_model
    from llamaops.operations.inspect_model import inspect_model

    settings, facts = resolve(args, ("model",))

    def operation(session: Session, machine: Machine) -> None:
        choice = choose_model(settings, machine)
        inspect_model(session, machine, choice.path if choice else args.model)

    return perform(args, settings, facts, operation)
