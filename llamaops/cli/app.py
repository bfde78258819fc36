"""The application: its commands, its global options, and what becomes of an error."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from functools import cache
from typing import Any, NoReturn

from llamaops import __version__

# Each is a module of this package. Order is the order of --help.
COMMANDS = (
    "preflight",
    "inspect",
    "fit",
    "diagnose",
    "explain",
    "smoke",
    "serve",
    "verify",
    "record",
    "fetch",
    "redact",
    "settings",
    "runbook",
    "expose",
    "canary",
    "sources",
)
TAKES_FLAGS = ("serve", "expose", "canary")
"""Commands that hand on what follows `--`."""
ALIASES = {"settings": "settings_list"}

EPILOG = """exit status:
  0 every required check passed   3 a required check failed     5 a bound stopped the run
  1 llamaops broke                4 something required is       130 interrupted
  2 wrong command line or input     unknown or was not tested
"""


class Help(argparse.HelpFormatter):
    """Formats help as wide as the terminal, asked without shutil, which loads compressors.

    argparse makes one for every option that it is told about.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class RawHelp(Help, argparse.RawDescriptionHelpFormatter):
    """The same, for a parser whose texts have their own ends of lines."""


@cache
def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with the next step."""

    def __init__(self, *, formatter_class: type[argparse.HelpFormatter] = Help, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(formatter_class=formatter_class, **settings)

    def error(self, message: str) -> NoReturn:
        """Print one line and leave with status 2."""
        from llamaops.cli.output import print_error

        print_error(f"{message}; see `{self.prog} --help`")
        raise SystemExit(2)


def parser_for(argv: list[str]) -> argparse.ArgumentParser:
    """Build the parser; only the command that was asked for is loaded in full."""
    parser = Parser(
        prog="llamaops",
        description="Bring up llama.cpp and prove, boundary by boundary, that it works.",
        epilog=EPILOG,
        formatter_class=RawHelp,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"llamaops {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    wanted = [name for name in COMMANDS if name in argv] or COMMANDS
    for name in wanted:
        module(name).add_parser(commands)
    return parser


def module(command: str) -> ModuleLike:
    """Return the module of a command."""
    return importlib.import_module(f"llamaops.cli.{ALIASES.get(command, command)}")  # type: ignore[return-value]


class ModuleLike:
    """What a command module offers."""

    @staticmethod
    def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
        """Declare the command and its options."""

    @staticmethod
    def run(args: argparse.Namespace) -> int:
        """Run the command and return its exit status."""
        raise NotImplementedError


def _spare_the_collector() -> None:
    """Keep Python from searching for garbage what start-up makes and keeps, and once more what an exit drops.

    Otherwise that is a seventh of a whole inspection.
    """
    import atexit
    import gc

    gc.set_threshold(20_000)
    atexit.register(gc.freeze)


def main(argv: list[str] | None = None) -> int:
    """Run llamaops and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words == ["--version"]:
        sys.stdout.write(f"llamaops {__version__}\n")
        return 0
    if argv is None:  # a process of our own
        _spare_the_collector()
    os.umask(0o077)  # whatever we write may hold what an operator does not want to share
    # What follows `--` belongs to llama-server and is no business of our parser.
    cut = words.index("--") if "--" in words else len(words)
    args = parser_for(words[:cut]).parse_args(words[:cut])
    args.words, args.extra = words, words[cut + 1 :]
    if args.command is None:
        parser_for([]).print_help(sys.stderr)
        return 2
    if args.extra and args.command not in TAKES_FLAGS:
        parser_for([args.command]).error(f"nothing may follow `--` for {args.command}")
    from llamaops.cli.output import guarded

    return guarded(lambda: module(args.command).run(args), args)


if __name__ == "__main__":
    raise SystemExit(main())
