"""`llamaops record list | show | validate`."""

from __future__ import annotations

import argparse

from llamaops.cli.output import FORMATS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its three verbs."""
    parser = subparsers.add_parser(
        "record",
        help="list, show and validate records",
        description="Read the records that other commands wrote. Read-only.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="one line for each record, oldest first", allow_abbrev=False)
    show = verbs.add_parser("show", help="show a record", allow_abbrev=False)
    validate = verbs.add_parser("validate", help="check records against the schema", allow_abbrev=False)
    show.add_argument("record", help="id, a unique part of it, a path, or `latest`")
    validate.add_argument("record", nargs="+", help="as for show")
    for verb in (listing, show, validate):
        verb.add_argument("--records", metavar="DIR", help="folder for records (or LLAMAOPS_RECORDS)")
    for verb in (listing, validate):
        verb.add_argument("--format", choices=("text", "json"), default="text", help="form of the result")
    show.add_argument("--format", choices=FORMATS, default="text", help="form of the result")


def run(args: argparse.Namespace) -> int:
    """Run the verb."""
    return {"list": _list, "show": _show, "validate": _validate}[args.verb](args)


def _folder(args: argparse.Namespace) -> str:
    import os

    from llamaops.record.store import records_folder
    from llamaops.system.paths import expanded

    return expanded(args.records) if args.records else records_folder(os.environ)


def _list(args: argparse.Namespace) -> int:
    from llamaops.cli import output
    from llamaops.record.store import headlines
    from llamaops.render.inert import one_line
    from llamaops.render.line import STYLES, Line

    records = _folder(args)
    found = list(headlines(records))
    if args.format == "json":
        output.write_json({"schema": "llamaops.records", "schema_version": 1, "records": found})
        return 0
    if not found:
        output.print_lines([Line(f"no records in {records}")])
        return 0
    lines = [
        Line(
            one_line(f"{item.id}  {item.outcome:<10} {item.strongest or 'no boundary reached'}"),
            STYLES.get(item.outcome, ""),
        )
        for item in found
    ]
    output.print_lines(lines)
    return 0


def _show(args: argparse.Namespace) -> int:
    import msgspec

    from llamaops.cli import output
    from llamaops.record.redact import redact
    from llamaops.record.store import find, read

    folder = find(_folder(args), args.record)
    record = read(folder)
    # Records are stored redacted; a second pass also takes out what has become a secret since.
    redacted = redact(msgspec.to_builtins(record), output.redactor_for(args))
    if args.format == "json":
        output.write_json(redacted.record)
    elif args.format == "markdown":
        from llamaops.render.markdown_text import render_markdown

        output.write(render_markdown(redacted))
    else:
        from llamaops.render.summary import render_record

        output.print_lines(render_record(redacted))
    return 0


def _validate(args: argparse.Namespace) -> int:
    from llamaops.cli import output
    from llamaops.errors import ExitStatus, InputFileError
    from llamaops.record.store import find, read
    from llamaops.render.line import Line

    results = []
    for name in args.record:
        folder = find(_folder(args), name)
        try:
            record = read(folder)
            results.append({"record": record.id, "valid": True, "problem": None})
        except InputFileError as error:
            results.append({"record": folder, "valid": False, "problem": str(error)})
    if args.format == "json":
        output.write_json({"schema": "llamaops.validation", "schema_version": 1, "results": results})
    else:
        output.print_lines([Line(f"{item['record']}: {item['problem'] or 'valid'}") for item in results])
    return int(ExitStatus.PASSED if all(item["valid"] for item in results) else ExitStatus.FAILED)
