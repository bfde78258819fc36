"""Options that several commands share, made from the table of settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llamaops.cli.output import FORMATS

if TYPE_CHECKING:
    from llamaops.probes.selection import Selection


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command with a record has."""
    group = parser.add_argument_group("record and output")
    group.add_argument("--records", metavar="DIR", help="folder for records (or LLAMAOPS_RECORDS)")
    group.add_argument("--format", choices=FORMATS, default="text", help="form of the result on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument(
        "--accept",
        metavar="ID=REASON",
        action="append",
        default=[],
        help="go on although this check fails; it stays failed in the record, with the reason",
    )


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Add an option for each setting, without parsing its value: `settings.resolve` does that."""
    from llamaops.operations.setting_kinds import KINDS

    group = parser.add_argument_group("settings (also LLAMAOPS_NAME variables and llamaops.yaml)")
    for name in names:
        kind = KINDS[name]
        flag = f"--{name.replace('_', '-')}"
        if kind.metavar == "BOOL":
            negative = f"--no-{name.replace('_', '-')}"
            group.add_argument(flag, dest=name, action="store_const", const="true", help=kind.about)
            group.add_argument(negative, dest=name, action="store_const", const="false", help="the opposite")
        else:
            group.add_argument(flag, dest=name, metavar=kind.metavar, help=kind.about)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what a server is asked."""
    group = parser.add_argument_group("what is asked (`llamaops verify --list` shows every probe)")
    group.add_argument("--level", metavar="LEVEL", help="basic, standard (default) or full")
    group.add_argument(
        "--only", metavar="PROBE", action="append", default=[], help="ask only this probe, and what it needs"
    )
    group.add_argument("--skip", metavar="PROBE", action="append", default=[], help="leave this probe out")


def selection(args: argparse.Namespace) -> Selection:
    """Return the probes that were chosen.

    Raises: UsageError for a level or a probe that does not exist.
    """
    from llamaops.probes.selection import select

    return select(args.level, args.only, args.skip)


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, str | None]:
    """Return the texts of the settings that were given on the command line."""
    return {name: getattr(args, name, None) for name in names}


def accepted(args: argparse.Namespace) -> dict[str, str]:
    """Return the checks that the operator accepts to fail, with the reasons.

    Raises: UsageError for one without a reason.
    """
    from llamaops.errors import UsageError

    pairs = {}
    for item in args.accept:
        name, sign, reason = item.partition("=")
        if not sign or not name.strip() or not reason.strip():
            raise UsageError(
                f"--accept {item} has no reason", hint="write --accept CHECK-ID='why it is fine'"
            )
        pairs[name.strip()] = reason.strip()
    return pairs
