"""`llamaops sources`."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "sources",
        help="list what llamaops claims about llama.cpp, and where it was seen",
        description="List each claim with its source, the day and builds it was checked on; with --stale, "
        "only those not looked at for longer; the exit status is 3 where there are any.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--stale", metavar="DAYS", help="only claims last checked more than this many days ago"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the list")


def run(args: argparse.Namespace) -> int:
    """List the claims."""
    import datetime as dt

    from llamaops.cli import output
    from llamaops.errors import ExitStatus, UsageError
    from llamaops.operations.sources import age_days, load_claims
    from llamaops.render.line import Line

    today = dt.datetime.now(dt.UTC).date()
    claims = load_claims()
    if args.stale is not None:
        if not args.stale.isascii() or not args.stale.isdigit():
            raise UsageError(f"--stale {args.stale}: has to be a whole number of days")
        claims = tuple(claim for claim in claims if age_days(claim, today) > int(args.stale))
    if args.format == "json":
        output.write_json({"schema": "llamaops.sources", "schema_version": 1, "claims": claims})
    else:
        lines = [
            Line(f"{claim.checked} ({age_days(claim, today)} days)  {claim.claim}\n    {claim.source}; "
                 f"{', '.join(claim.builds)}; used by {', '.join(claim.used_by)}")
            for claim in claims
        ]  # fmt: skip
        output.print_lines(lines or [Line("no claim is older than that")])
    return int(ExitStatus.FAILED if args.stale is not None and claims else ExitStatus.PASSED)
