"""`llamaops serve`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Finished, Session
    from llamaops.system.machine import Machine

SETTINGS = (
    "model", "bin_dir", "host", "port", "ctx_size", "parallel", "kv_unified", "batch_size", "ubatch_size",
    "n_gpu_layers", "expect_device", "flash_attn", "cache_type_k", "cache_type_v", "threads",
    "api_key_file", "max_tokens", "ready_timeout",
)  # fmt: skip


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "serve",
        help="start a managed llama-server, verify it, and keep serving",
        description="Start llama-server on loopback in its own process group, wait until it is ready, and, "
        "with --verify, believe it only after representative requests. Ctrl-C stops it and all it started.",
        usage="llamaops serve [options] [-- any llama-server flag ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--verify", action="store_true", help="verify it before it is believed")
    parser.add_argument("--once", action="store_true", help="stop after the verification")
    parser.add_argument(
        "--decisions", metavar="FILE", help="allow --host beyond loopback as this file decides; see `expose`"
    )
    options.add_selection(parser)
    options.add_settings(parser, SETTINGS)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Serve."""
    import os

    import msgspec

    from llamaops.cli import output
    from llamaops.cli.keys import read_key
    from llamaops.cli.offer import offer_embedded
    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.launch.exposure_files import server_flags
    from llamaops.operations.choose import choose_program, with_choices
    from llamaops.operations.exposure import read_decisions, require_decided
    from llamaops.operations.serve import ServeRequest, serve
    from llamaops.operations.smoke import model_or_refuse
    from llamaops.system.machine import Machine
    from llamaops.system.paths import expanded

    selection = options.selection(args)
    if not args.verify and (args.level or args.only or args.skip):
        raise UsageError("--level, --only and --skip choose what --verify asks", hint="add --verify")
    settings, facts = resolve(args, SETTINGS)
    decisions = None if args.decisions is None else read_decisions(expanded(args.decisions))
    if decisions is not None and decisions.api_key is not None and settings.api_key_file is None:
        settings = msgspec.structs.replace(settings, api_key_file=decisions.api_key.file)
    with Machine() as looking:
        beyond = require_decided(settings, decisions, looking)
    if decisions is not None and beyond:
        args.extra = [*args.extra, *server_flags(decisions, args.extra)]
    api_key = read_key(settings.api_key_file, os.environ)
    with Machine() as looking:
        offer_embedded(settings, looking, args)
        program = choose_program("llama-server", settings, looking)
        model = model_or_refuse(settings, looking)
    request = ServeRequest(
        settings=settings,
        program=program,
        model=model,
        verify=selection if args.verify else None,
        once=args.once,
        api_key=api_key,
        extra=tuple(args.extra),
        exposed=beyond,
    )

    def serving(finished: Finished, url: str) -> None:
        if args.format == "text":
            output.show_finished(finished, args)
            output.write(f"serving on {url}\n")

    def operation(session: Session, machine: Machine) -> str:
        return serve(session, machine, request, on_verified=serving)

    facts = with_choices(facts, model=model, bin_dir=program)
    return perform(
        args, settings, facts, operation, key_files=[settings.api_key_file] if settings.api_key_file else []
    )
