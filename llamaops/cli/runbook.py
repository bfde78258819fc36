"""`llamaops runbook list | show | plan | run | lint`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.runbook.plan import PlannedStep
    from llamaops.runbook.run import Ask
    from llamaops.system.machine import Machine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its verbs."""
    parser = subparsers.add_parser(
        "runbook",
        help="list, show, plan, run and lint runbooks",
        description="Runbooks are files that people read and llamaops runs, step by step, with consent for "
        "whatever changes something. Your own live in ./runbooks or LLAMAOPS_RUNBOOKS.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="one line for each runbook", allow_abbrev=False)
    show = verbs.add_parser("show", help="show a runbook as Markdown", allow_abbrev=False)
    plan = verbs.add_parser("plan", help="show what a run would do; nothing is run", allow_abbrev=False)
    run_ = verbs.add_parser("run", help="run a runbook, asking before whatever changes something",
                            allow_abbrev=False)  # fmt: skip
    lint = verbs.add_parser("lint", help="say everything that is wrong with runbooks", allow_abbrev=False)
    for verb in (show, plan, run_):
        verb.add_argument("runbook", help="id or path")
    for verb in (plan, run_):
        verb.add_argument("--input", metavar="NAME=VALUE", action="append", default=[],
                          help="an input of the runbook")  # fmt: skip
    run_.add_argument("--yes", action="store_true", help="agree to every change beforehand")
    run_.add_argument("--resume", metavar="RECORD", help="go on from the run that wrote this record")
    run_.add_argument("--by-hand-done", metavar="STEP", action="append", default=[],
                      help="a step that was done by hand")  # fmt: skip
    options.add_common(run_)
    lint.add_argument("runbook", nargs="*", help="ids or paths; without any, every runbook there is")
    for verb in (listing, plan, lint):
        verb.add_argument("--format", choices=("text", "json"), default="text", help="form of the result")


def run(args: argparse.Namespace) -> int:
    """Run the verb."""
    return {"list": _list, "show": _show, "plan": _plan, "run": _run, "lint": _lint}[args.verb](args)


def _list(args: argparse.Namespace) -> int:
    import os

    from llamaops.cli import output
    from llamaops.errors import InputFileError
    from llamaops.render.line import Line
    from llamaops.runbook.load import find_all, load

    rows = []
    for found in find_all(os.environ):
        try:
            runbook = load(found.path).runbook
            row = {"id": found.id, "area": runbook.area, "title": runbook.title}
        except InputFileError:
            row = {"id": found.id, "area": "", "title": "is broken: see `llamaops runbook lint`"}
        rows.append({**row, "own": found.own})
    if args.format == "json":
        output.write_json({"schema": "llamaops.runbooks", "schema_version": 1, "runbooks": rows})
    else:
        output.print_lines(
            [Line(f"{row['id']:<28} {row['title']}{' (own)' if row['own'] else ''}") for row in rows]
        )
    return 0


def _show(args: argparse.Namespace) -> int:
    import os

    from llamaops.cli import output
    from llamaops.render.inert import inert
    from llamaops.runbook.load import find, load
    from llamaops.runbook.page import runbook_page

    output.write(inert(runbook_page(load(find(args.runbook, os.environ)).runbook)))
    return 0


def _plan(args: argparse.Namespace) -> int:
    import os

    from llamaops.cli import output
    from llamaops.render.inert import inert
    from llamaops.runbook.fill import resolve_inputs
    from llamaops.runbook.load import find, load
    from llamaops.runbook.page import plan_page
    from llamaops.runbook.plan import plan

    runbook = load(find(args.runbook, os.environ)).runbook
    found = plan(runbook, resolve_inputs(runbook, _given(args)))
    if args.format == "json":
        output.write_json({"schema": "llamaops.runbook-plan", "schema_version": 1, "plan": found})
    else:
        output.write(inert(plan_page(found)))
    return 0


def _run(args: argparse.Namespace) -> int:
    import os

    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.operations.run_runbook import RunbookRequest, inputs_of, resumed, run_runbook
    from llamaops.record.store import records_folder
    from llamaops.runbook.fill import resolve_inputs
    from llamaops.runbook.lint import lint
    from llamaops.runbook.load import find, load, shown
    from llamaops.system.paths import expanded

    settings, facts = resolve(args, ())
    loaded = load(find(args.runbook, os.environ))
    problems = sorted(lint(loaded.document, accepts))
    if problems:
        raise UsageError(shown(loaded.path, problems), hint="nothing was run")
    given = _given(args)
    records = expanded(settings.records) if settings.records else records_folder(os.environ)
    before = None if args.resume is None else resumed(records, args.resume, loaded, given)
    if before is not None:
        given = {**inputs_of(before), **given}
    resolve_inputs(loaded.runbook, given)  # before there is a record
    request = RunbookRequest(
        loaded=loaded,
        given=given,
        yes=args.yes,
        ask=_ask(args),
        before=before,
        by_hand_done=frozenset(args.by_hand_done),
    )

    def operation(session: Session, machine: Machine) -> str:
        return run_runbook(session, machine, records, request)

    return perform(args, settings, facts, operation)


def _lint(args: argparse.Namespace) -> int:
    import os

    from llamaops.cli import output
    from llamaops.errors import ExitStatus
    from llamaops.render.line import Line
    from llamaops.runbook.lint import lint_file
    from llamaops.runbook.load import find, find_all
    from llamaops.runbook.yaml_shape import read_file

    files = [find(name, os.environ) for name in args.runbook] or [item.path for item in find_all(os.environ)]
    found = [(path, lint_file(path, read_file(path), accepts)) for path in files]
    if args.format == "json":
        results = [{"path": path, "problems": problems} for path, problems in found]
        output.write_json({"schema": "llamaops.lint", "schema_version": 1, "results": results})
    else:
        lines = [Line(problem.shown(path)) for path, problems in found for problem in problems]
        output.print_lines(lines or [Line(f"{len(files)} runbooks, nothing wrong")])
    return int(ExitStatus.FAILED if any(problems for _path, problems in found) else ExitStatus.PASSED)


def _given(args: argparse.Namespace) -> dict[str, str]:
    from llamaops.errors import UsageError

    pairs: dict[str, str] = {}
    for item in args.input:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError(f"--input {item} has no value", hint="write --input NAME=VALUE")
        if name in pairs:
            raise UsageError(f"--input {name} is given twice")
        pairs[name] = value
    return pairs


def accepts(words: tuple[str, ...]) -> str | None:
    """Say what llamaops' own command line gets wrong about some words, or None."""
    from llamaops.cli.app import COMMANDS, parser_for

    if words[0] not in COMMANDS:
        return f"this llamaops has no command {words[0]}"
    cut = words.index("--") if "--" in words else len(words)
    try:
        _quieten(parser_for([words[0]])).parse_args(list(words[:cut]))
    except _Quiet as wrong:
        return f"llamaops {words[0]}: {wrong}"
    return None


class _Quiet(Exception):  # noqa: N818 - never seen outside
    """What the parser has to say."""


def _quieten(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Make a parser and those of its verbs raise instead of printing."""

    def error(message: str) -> None:
        raise _Quiet(message)

    parser.error = error  # type: ignore[method-assign,assignment]
    for action in parser._actions:  # noqa: SLF001 - argparse offers no other way to its sub-parsers
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for inner in action.choices.values():
                _quieten(inner)
    return parser


def _ask(args: argparse.Namespace) -> Ask | None:
    import sys

    if args.yes or args.format == "json" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(step: PlannedStep) -> bool:
        from llamaops.render.inert import inert

        lines = [f"{step.title} [{step.id}]"]
        if step.command:
            lines.append("  $ " + " ".join(step.command))
        if step.says:
            lines.append(f"  by hand: {step.says}")
        if step.changes:
            lines += [
                f"  changes:  {step.changes.target}",
                f"  scope:    {step.changes.scope}",
                f"  rollback: {step.changes.rollback}",
            ]
        question = "Has it been done? [y/N] " if step.says else "Do it? [y/N] "
        sys.stderr.write(inert("\n".join(lines)) + "\n" + question)
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    return ask
