"""`llamaops canary`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.launch.unit_file import UsedCommand
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine

SETTINGS = ("model", "ready_timeout", "max_tokens")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "canary",
        help="compare two builds before the switch",
        description="Start the build in use and a candidate, one after the other, on loopback ports of "
        "their own, with the same model and flags; compare flags, verification, templates, tokens, output, "
        "endpoints, errors and memory; say switch or hold. Speed is not tested.",
        usage="llamaops canary --current BIN --candidate BIN [options] [-- flags in use ...]",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--current", metavar="BIN", required=True, help="the llama-server in use, or its folder"
    )
    parser.add_argument(
        "--candidate", metavar="BIN", required=True, help="the llama-server to try, or its folder"
    )
    parser.add_argument("--unit", metavar="FILE", help="take the flags in use from this systemd unit")
    parser.add_argument("--rename", metavar="OLD=NEW", action="append", default=[],
                        help="a flag that has another name in the candidate")  # fmt: skip
    options.add_settings(parser, SETTINGS)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Compare two builds."""
    import msgspec

    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.operations.canary import CanaryRequest, canary
    from llamaops.operations.smoke import model_or_refuse
    from llamaops.system.machine import Machine

    settings, facts = resolve(args, SETTINGS)
    flags = tuple(args.extra)
    if args.unit is not None:
        if flags:
            raise UsageError("--unit and flags after `--` are two answers to one question")
        used = _used(args.unit)
        flags = used.flags
        if settings.model is None and used.model is not None:
            settings = msgspec.structs.replace(settings, model=used.model)
    with Machine() as looking:
        model = model_or_refuse(settings, looking)
    request = CanaryRequest(
        current=_program(args.current),
        candidate=_program(args.candidate),
        model=model.path,
        flags=flags,
        renames=_renames(args.rename),
        ready_timeout_s=settings.ready_timeout,
        max_tokens=settings.max_tokens,
    )

    def operation(session: Session, machine: Machine) -> str:
        return canary(session, machine, request)

    return perform(args, settings, facts, operation)


def _program(given: str) -> str:
    from llamaops.errors import UsageError
    from llamaops.system import paths

    path = paths.expanded(given)
    if paths.is_folder(path):
        path = paths.joined(path, "llama-server")
    if not paths.is_file(path):
        raise UsageError(f"there is no program {path}", hint="give the path of a llama-server")
    return path


def _used(path: str) -> UsedCommand:
    from llamaops.errors import InputFileError
    from llamaops.launch.unit_file import used_command
    from llamaops.system.files import read_limited
    from llamaops.system.paths import expanded

    try:
        content = read_limited(expanded(path), limit_bytes=1 << 20)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}") from error
    return used_command(content.decode("utf-8", "replace"))


def _renames(given: list[str]) -> dict[str, str]:
    from llamaops.errors import UsageError

    pairs = {}
    for item in given:
        old, sign, new = item.partition("=")
        if not sign or not old.startswith("-") or not new.startswith("-"):
            raise UsageError(f"--rename {item}: write --rename OLD=NEW, as in --rename --old=--new")
        pairs[old] = new
    return pairs
