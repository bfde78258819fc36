"""`llamaops verify URL`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine

SETTINGS = ("api_key_file", "max_tokens")


MOST_S = 4 * 3600.0


def _wait_s(text: str) -> float:
    """Read the bound on waiting, in seconds. Raises: argparse.ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_S:
        raise argparse.ArgumentTypeError(f"has to be seconds from 0 to {MOST_S:.0f}, not {text!r}")
    return seconds


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "verify",
        help="verify a server that already runs",
        description="Ask a running llama-server representative requests and judge its answers. Nothing is "
        "started, stopped or changed, unless --model makes a router load one; the API key comes from "
        "LLAMAOPS_API_KEY or --api-key-file.",
        allow_abbrev=False,
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="such as http://127.0.0.1:8080")
    parser.add_argument("--list", action="store_true", help="list the probes and send nothing")
    parser.add_argument(
        "--model",
        metavar="NAME",
        action="append",
        default=[],
        help="ask for this model, by a name that the server lists (can be repeated); a router loads it if "
        "need be",
    )
    parser.add_argument(
        "--wait",
        metavar="S",
        type=_wait_s,
        default=0.0,
        help="first wait until the server is ready, at most S seconds",
    )
    options.add_selection(parser)
    options.add_settings(parser, SETTINGS)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Verify a server."""
    import os

    from llamaops.cli.keys import read_key
    from llamaops.cli.probe_list import list_probes
    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.operations.verify_server import verify_server
    from llamaops.system.origin import Origin

    selection = options.selection(args)
    if args.list:
        return list_probes(args, selection)
    if args.url is None:
        raise UsageError("verify needs the URL of a server", hint="such as http://127.0.0.1:8080")
    settings, facts = resolve(args, SETTINGS)
    api_key = read_key(settings.api_key_file, os.environ)
    Origin.parse(args.url)
    models = tuple(name for text in args.model for name in text.split(",") if name)

    def operation(session: Session, machine: Machine) -> str:
        return verify_server(
            session, machine, args.url, settings, api_key, selection, models, wait_s=args.wait
        )

    return perform(
        args, settings, facts, operation, key_files=[settings.api_key_file] if settings.api_key_file else []
    )
