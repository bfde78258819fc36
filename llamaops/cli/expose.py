"""`llamaops expose check | render | show`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its verbs."""
    parser = subparsers.add_parser(
        "expose",
        help="decide who may reach a server, and render what enforces it",
        description="A decisions file says who may reach a server: address, key, TLS, firewall, CORS, rate "
        "limit, logs, tools, /metrics and /slots. What is missing there is a finding.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    check = verbs.add_parser("check", help="judge a decisions file", allow_abbrev=False)
    check.add_argument("decisions", metavar="DECISIONS.yaml")
    options.add_common(check)
    render = verbs.add_parser("render", help="write an nginx site or a systemd unit", allow_abbrev=False)
    render.add_argument("form", choices=("nginx", "systemd"))
    render.add_argument("decisions", metavar="DECISIONS.yaml")
    render.add_argument("--output", metavar="FILE", help="write there instead of to standard output")
    render.add_argument("--program", metavar="FILE", help="systemd: the llama-server, an absolute path")
    render.add_argument("--model", metavar="FILE", help="systemd: the model, an absolute path")
    render.add_argument("--device", metavar="NODE", action="append", default=[],
                        help="systemd: a device node that it may open")  # fmt: skip
    render.add_argument("--memory-max", metavar="SIZE", help="systemd: memory limit, such as 24G")
    show = verbs.add_parser("show", help="show a unit or environment file, masked", allow_abbrev=False)
    show.add_argument("file")


def run(args: argparse.Namespace) -> int:
    """Run the verb."""
    return {"check": _check, "render": _render, "show": _show}[args.verb](args)


def _check(args: argparse.Namespace) -> int:
    from llamaops.cli.session import perform, resolve
    from llamaops.operations.exposure import check_decisions, read_decisions
    from llamaops.system.paths import expanded

    decisions = read_decisions(expanded(args.decisions))
    settings, facts = resolve(args, ())

    def operation(session: Session, machine: Machine) -> str:
        return check_decisions(session, machine, args.decisions, decisions)

    return perform(args, settings, facts, operation)


def _render(args: argparse.Namespace) -> int:
    from llamaops.cli import output
    from llamaops.errors import InputFileError, UsageError
    from llamaops.launch.exposure_files import UnitRequest, nginx_site, systemd_unit
    from llamaops.operations.exposure import read_decisions
    from llamaops.system.files import write_atomic
    from llamaops.system.paths import expanded

    decisions = read_decisions(expanded(args.decisions))
    if args.form == "nginx":
        text = nginx_site(decisions)
    elif args.program is None or args.model is None:
        raise UsageError("a unit needs --program and --model")
    else:
        text = systemd_unit(
            decisions,
            UnitRequest(
                program=args.program,
                model=args.model,
                flags=tuple(args.extra),
                devices=tuple(args.device),
                memory_max=args.memory_max,
            ),
        )
    if args.output is None:
        output.write(text)
        return 0
    try:
        write_atomic(expanded(args.output), text.encode(), mode=0o644)
    except OSError as error:
        raise InputFileError(f"cannot write {args.output}: {error.strerror}") from error
    output.write(f"wrote {args.output}\n")
    return 0


def _show(args: argparse.Namespace) -> int:
    from llamaops.cli import output
    from llamaops.errors import InputFileError
    from llamaops.launch.exposure_files import masked_file
    from llamaops.render.inert import inert
    from llamaops.system.files import read_limited
    from llamaops.system.paths import expanded

    try:
        content = read_limited(expanded(args.file), limit_bytes=1 << 20)
    except OSError as error:
        raise InputFileError(f"cannot read {args.file}: {error.strerror}") from error
    text = "\n".join(masked_file(content.decode("utf-8", "replace")))
    output.write(inert(output.redactor_for(args).text(text)) + "\n")
    return 0
