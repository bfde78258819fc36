"""`llamaops diagnose [FILE…|-|RECORD|--unit NAME|--pid N]`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.diagnosis.parts import Part
    from llamaops.operations.session import Session
    from llamaops.schema.diagnosis import Diagnosis
    from llamaops.system.machine import Machine

MAX_WATCH_S = 31_536_000
KINDS = (
    "log", "command", "http-request", "http-response", "host-facts", "unit-file", "env", "config", "bench",
    "inspect",
)  # fmt: skip


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "diagnose",
        help="say what a log (and whatever belongs to it) means: cause, proof and next step",
        description="Read logs, answers, command lines, unit files, environment, benchmark output, or a "
        "record, as one situation, and say the cause, the lines that prove it, and the safest next "
        "step. Compressed files, docker and journald formats are read as they are. Read-only.",
        epilog="exit status: 0 no fault found, 3 a fault was found, 4 unknown",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="file, folder, record or case file; several are one situation; - is standard input",
    )
    parser.add_argument("--kind", choices=KINDS, help="what the files are, where it is not recognised")
    parser.add_argument("--unit", metavar="NAME", help="read the journal and the settings of a systemd unit")
    parser.add_argument("--pid", metavar="N", type=int, help="read what /proc says of a process")
    parser.add_argument(
        "--watch",
        action="store_true",
        help="follow one growing log, report each new verdict, and write a record in the end",
    )
    parser.add_argument(
        "--seconds", metavar="N", help="end --watch after N seconds; otherwise it ends when it is interrupted"
    )
    options.add_common(parser)
    parser.set_defaults(quiet=True)


def run(args: argparse.Namespace) -> int:
    """Diagnose a situation."""
    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.operations.diagnose import diagnose

    if not args.files and args.unit is None and args.pid is None:
        raise UsageError("nothing was named to diagnose", hint="name a file, -, --unit NAME or --pid N")
    if args.watch:
        return _watch(args)
    settings, facts = resolve(args, ())
    given = _given(args)  # a mistake in a name ends here, before a record is begun

    def operation(session: Session, machine: Machine) -> None:
        diagnose(session, machine, [*given, *_parts(args, machine)])

    return perform(args, settings, facts, operation)


def _given(args: argparse.Namespace) -> list[Part]:
    from llamaops.operations.diagnose_input import parts_from

    return parts_from(args.files, sys.stdin.buffer, args.kind)


def _parts(args: argparse.Namespace, machine: Machine) -> list[Part]:
    from llamaops.operations import diagnose_host

    parts: list[Part] = []
    if args.unit is not None:
        parts += diagnose_host.parts_of_unit(machine, args.unit)
    if args.pid is not None:
        parts += diagnose_host.parts_of_process(machine, args.pid)
    return parts


def _watch(args: argparse.Namespace) -> int:
    from llamaops.cli.output import print_lines
    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.launch.settings import plain_number
    from llamaops.operations.diagnose_watch import watch_in_session
    from llamaops.render.diagnosis import verdict_line

    if len(args.files) != 1 or args.files[0] == "-" or args.unit is not None or args.pid is not None:
        raise UsageError("--watch follows one file", hint="name one log")
    seconds = (
        None if args.seconds is None else plain_number("--seconds", args.seconds, low=1, high=31_536_000)
    )
    settings, facts = resolve(args, ())

    def operation(session: Session, _machine: Machine) -> str:
        def tell(found: Diagnosis) -> None:
            if args.format == "text":
                print_lines([verdict_line(found, session.redactor.text)])
                sys.stdout.flush()

        return watch_in_session(session, args.files[0], tell, seconds)

    return perform(args, settings, facts, operation)
