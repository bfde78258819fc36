"""`llamaops explain SLUG`."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "explain",
        help="tell all that is known of a diagnosis",
        description="Print the page of a diagnosis, made from the rules; without a name, the list of all.",
        allow_abbrev=False,
    )
    parser.add_argument("slug", metavar="SLUG", nargs="?", help="name of a diagnosis, such as port-in-use")


def run(args: argparse.Namespace) -> int:
    """Print a page."""
    from llamaops.cli.output import write
    from llamaops.diagnosis.page import page, table
    from llamaops.diagnosis.rule import by_slug
    from llamaops.errors import UsageError

    if args.slug is None:
        write(table(by_slug()))
        return 0
    rules = by_slug().get(args.slug)
    if rules is None:
        import difflib

        near = difflib.get_close_matches(args.slug, by_slug(), n=3, cutoff=0.4)
        raise UsageError(
            f"no diagnosis is called {args.slug}",
            hint=f"near: {', '.join(near)}" if near else "see `llamaops explain`",
        )
    write(page(rules))
    return 0
