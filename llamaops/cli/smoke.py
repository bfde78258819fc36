"""`llamaops smoke`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine

SETTINGS = (
    "model", "bin_dir", "via", "max_tokens", "seed", "temperature", "timeout", "ready_timeout", "ctx_size",
    "n_gpu_layers", "expect_device", "flash_attn", "cache_type_k", "cache_type_v", "batch_size",
    "ubatch_size", "threads",
)  # fmt: skip


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "smoke",
        help="one bounded local generation, raw and through the chat template",
        description="Load the model once and generate a few tokens from a fixed prompt: bounded in time, "
        "tokens and bytes, standard input closed, on loopback. Nothing is left running.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="your own prompt; neither it nor the text generated from it is recorded",
    )
    options.add_settings(parser, SETTINGS)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Run the smoke."""
    from llamaops.cli.offer import offer_embedded
    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.operations.smoke import choose_via, model_or_refuse, smoke
    from llamaops.system.machine import Machine

    settings, facts = resolve(args, SETTINGS)
    if args.prompt is not None and not args.prompt.strip():
        raise UsageError("--prompt is empty", hint="leave it out for the fixed prompt")
    with Machine() as looking:
        offer_embedded(settings, looking, args)
        programs = choose_via(settings, looking)
        model = model_or_refuse(settings, looking)

    from llamaops.operations.choose import with_choices

    facts = with_choices(facts, model=model)

    def operation(session: Session, machine: Machine) -> str:
        return smoke(session, machine, settings, programs, model, args.prompt)

    return perform(args, settings, facts, operation, private=_private(args))


SHORTEST_PRIVATE = 12
"""A shorter prompt is only left out where it is an argument: replaced everywhere it would wreck text."""


def _private(args: argparse.Namespace) -> list[str]:
    """Leave the operator's own prompt out of the command line, and return it where it has to vanish."""
    if args.prompt is None:
        return []
    args.words = [word.replace(args.prompt, "<prompt>") for word in args.words]
    return [args.prompt] if len(args.prompt) >= SHORTEST_PRIVATE else []
