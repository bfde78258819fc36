"""The list of probes: what each sends, proves, does not prove, and costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamaops.probes.registry import Probe
    from llamaops.probes.selection import Selection


SHOWN = ("sends", "proves", "does_not_prove", "tokens", "seconds")


def list_probes(args: argparse.Namespace, selection: Selection) -> int:
    """Print every probe and whether this selection asks it; nothing is sent."""
    from llamaops.cli import output
    from llamaops.probes.registry import LEVELS, all_probes
    from llamaops.render.line import Line

    probes = sorted(all_probes(), key=lambda item: (LEVELS.index(item.level), item.id))
    if args.format == "json":
        rows = [row(item, selection) for item in probes]
        output.write_json({"schema": "llamaops.probes", "schema_version": 1, "probes": rows})
        return 0
    lines = []
    for item in probes:
        asked = "" if item.id in selection else "   (not asked with these options)"
        lines.append(Line(f"{item.id:<18} level {item.level}{asked}", "bold"))
        lines += [Line(f"  {name.replace('_', ' ') + ':':<16} {getattr(item, name)}") for name in SHOWN]
    output.print_lines(lines)
    return 0


def row(item: Probe, selection: Selection) -> dict[str, object]:
    """Return one probe as plain data."""
    return {
        "id": item.id,
        "level": item.level,
        "asked": item.id in selection,
        "sends": item.sends,
        "proves": item.proves,
        "does_not_prove": item.does_not_prove,
        "tokens": item.tokens,
        "seconds": item.seconds,
    }
