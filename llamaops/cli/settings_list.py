"""`llamaops settings`: what can be set, and how."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "settings",
        help="list the settings, and the values in force here",
        description="List every setting with its variable and meaning, and where its value comes from here.",
        allow_abbrev=False,
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the list")


def run(args: argparse.Namespace) -> int:
    """List the settings."""
    import os

    import msgspec

    from llamaops.cli import output
    from llamaops.operations.setting_kinds import KINDS
    from llamaops.operations.settings import resolve
    from llamaops.render.line import Line

    _settings, facts = resolve({}, os.environ, names=tuple(KINDS))
    if args.format == "json":
        clean = output.redactor_for(args).clean(msgspec.to_builtins(facts))
        output.write_json({"schema": "llamaops.settings", "schema_version": 1, **clean})
        return 0
    in_force = {setting.name: setting for setting in facts.settings}
    lines = []
    for name, kind in KINDS.items():
        setting = in_force.get(name)
        value = f"{setting.value} ({setting.origin})" if setting else "left to the engine"
        lines.append(Line(f"{name:<14} {kind.about}"))
        lines.append(
            Line(f"{'':<14} --{name.replace('_', '-')} {kind.metavar}, LLAMAOPS_{name.upper()}; now: {value}")
        )
    redactor = output.redactor_for(args)
    output.print_lines([Line(redactor.text(line.text)) for line in lines])
    return 0
