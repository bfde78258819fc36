"""Run one program with --help, --version and --list-devices, and read what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from llamaops.errors import ParseError
from llamaops.facts.binary_types import Probe
from llamaops.facts.capabilities import Capabilities, parse_help
from llamaops.facts.device_list import Device, parse_devices
from llamaops.facts.elf import MAGIC, parse_elf
from llamaops.facts.run_failure import RunFailure, classify
from llamaops.facts.version_text import VersionFacts, parse_version, unknown_version
from llamaops.schema.bounds import MIB, Bounds
from llamaops.schema.evidence import EvidenceKind
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why
from llamaops.system.ports import System
from llamaops.system.process import Completed, Exited, NotStarted, describe
from llamaops.system.watch import Program

T = TypeVar("T")

PROBE_BOUNDS = Bounds(wall_s=10.0, grace_s=0.5, keep_bytes=512 * 1024, total_bytes=4 * MIB)

_WHY: dict[str, Why] = {
    "timed_out": "timed_out",
    "not_found": "absent",
    "bad_interpreter": "absent",
    "not_executable": "refused",
    "wrong_architecture": "unsupported",
}


class Answer(msgspec.Struct, frozen=True):
    """What a probe gave, with its output kept."""

    completed: Completed
    probe: Probe
    failure: RunFailure | None
    stdout: Source
    stderr: Source
    seen: tuple[Program, ...] = ()


def ask(system: System, path: str, *arguments: str, watched: bool = False) -> Answer:
    """Run a program within bounds and keep both streams as evidence."""
    argv = (path, *arguments)
    seen: tuple[Program, ...] = ()
    if watched:
        looked_at = system.watch(argv, bounds=PROBE_BOUNDS)
        completed, seen = looked_at.completed, looked_at.programs
    else:
        completed = system.run(argv, bounds=PROBE_BOUNDS)
    label = " ".join(argv)
    kept: dict[EvidenceKind, str] = {}
    if completed.stdout.total_bytes:
        kept["stdout"] = system.keep(completed.stdout.evidence("stdout", label))
    if completed.stderr.total_bytes:
        kept["stderr"] = system.keep(completed.stderr.evidence("stderr", label))
    ids = tuple(kept.values())
    failure = classify(completed, evidence=ids)
    if failure is not None and failure.kind == "not_found" and isinstance(completed.end, NotStarted):
        failure = _without_interpreter(system, path, failure)
    return Answer(
        completed=completed,
        probe=Probe(
            arguments=arguments,
            end=describe(completed.end),
            elapsed_s=round(completed.elapsed_s, 4),
            evidence=ids,
        ),
        failure=failure,
        stdout=Source(kind="command", name=label, evidence=kept.get("stdout")),
        stderr=Source(kind="command", name=label, evidence=kept.get("stderr")),
        seen=seen,
    )


def _without_interpreter(system: System, path: str, failure: RunFailure) -> RunFailure:
    """Tell a file that is not there from one whose interpreter or loader is not: the kernel does not."""
    try:
        with system.open_regular(path) as file:
            first = file.read_at(0, 256)
            loader = parse_elf(file.read_at).interpreter if first[:4] == MAGIC else None
    except (OSError, ParseError):
        return failure
    name = first[2:].split(b"\n", 1)[0].decode("utf-8", "replace").strip() if first[:2] == b"#!" else loader
    detail = f"{path} is there, but {name or 'its interpreter'}, which it starts with, is not"
    return msgspec.structs.replace(failure, kind="bad_interpreter", what=name, detail=detail)


def _gap(answer: Answer, source: Source) -> Unknown | None:
    """Return the Unknown of a probe that failed to run, or that does not know the argument."""
    if answer.failure is not None:
        why = _WHY.get(answer.failure.kind, "failed")
        return Unknown(why=why, detail=answer.failure.detail, source=source)
    text = answer.completed.stderr.text + answer.completed.stdout.text[:2048]
    argument = re.escape(answer.probe.arguments[-1])
    if re.search(rf"(?:unknown|invalid|unrecognized) (?:argument|option):? [`'\"]?{argument}", text):
        name = answer.probe.arguments[-1]
        return Unknown(why="unsupported", detail=f"this program does not know {name}", source=source)
    return None


def read_help(answer: Answer) -> Fact[Capabilities]:
    """Read the help text from the stream that has one; old programs print it on standard error."""
    gap = _gap(answer, answer.stdout)
    if gap is not None and gap.why != "unsupported":
        return gap
    for stream, source in (
        (answer.completed.stdout, answer.stdout),
        (answer.completed.stderr, answer.stderr),
    ):
        try:
            return Known(value=parse_help(stream.text), source=source)
        except ParseError:
            continue
    detail = f"{answer.stdout.name}: {describe(answer.completed.end)}, and no option in a form that we know"
    return Unknown(why="unparsed", detail=detail, source=answer.stdout)


def read_version(answer: Answer) -> VersionFacts:
    """Read the version from both streams; a usage text in its place is no failure of the program."""
    for text, source in (
        (answer.completed.stderr.text, answer.stderr),
        (answer.completed.stdout.text, answer.stdout),
    ):
        try:
            return parse_version(text, source)
        except ParseError:
            continue
    gap = _gap(answer, answer.stderr)
    if gap is None and _is_usage(answer.completed):
        detail = "this program answers --version with its usage text"
        gap = Unknown(why="unsupported", detail=detail, source=answer.stdout)
    if gap is None:
        detail = f"{answer.stderr.name}: {describe(answer.completed.end)}, and no version line that we know"
        gap = Unknown(why="unparsed", detail=detail, source=answer.stderr)
    return unknown_version(gap.why, gap.detail, gap.source)


def read_devices(answer: Answer) -> Fact[tuple[Device, ...]]:
    """Read the device list from standard output."""

    def parse() -> tuple[Device, ...]:
        return parse_devices(answer.completed.stdout.text)

    if answer.completed.end == Exited(0):
        return _parsed(parse, answer.stdout)
    gap = _gap(answer, answer.stdout)
    if gap is None and _is_usage(answer.completed):
        detail = "this program answers --list-devices with its usage text"
        gap = Unknown(why="unsupported", detail=detail, source=answer.stdout)
    detail = f"{answer.stdout.name}: {describe(answer.completed.end)}"
    return gap or Unknown(why="failed", detail=detail, source=answer.stdout)


def _parsed(parse: Callable[[], T], source: Source) -> Fact[T]:
    try:
        return Known(value=parse(), source=source)
    except ParseError as error:
        return Unknown(why="unparsed", detail=f"{source.name}: {error}", source=source)


def _is_usage(completed: Completed) -> bool:
    text = completed.stdout.text[:4096] + completed.stderr.text[:4096]
    return (
        completed.end in {Exited(0), Exited(1)}
        and re.search(r"^usage:", text, re.MULTILINE | re.IGNORECASE) is not None
    )


def confirm_flags(system: System, binary: str, argv_tail: Sequence[str]) -> Fact[bool]:
    """Ask the program itself whether it takes these arguments: they are parsed before --version acts.

    False when it refuses one of them. Unknown when it has no --version, or fails in another way.
    """
    answer = ask(system, binary, *argv_tail, "--version")
    completed = answer.completed
    version = read_version(answer)
    if completed.end == Exited(0) and isinstance(version.text, Known):
        return Known(value=True, source=answer.stderr)
    refused = re.search(
        r"error: (?:(?:invalid|unknown) argument: |.*while handling argument \")(?P<flag>[^\s\"]+)",
        completed.stderr.text.replace("error while", "error: while"),
    )
    if refused and refused["flag"] != "--version":
        return Known(value=False, source=answer.stderr)
    gap = _gap(answer, answer.stderr) or version.text
    if isinstance(gap, Unknown):
        return gap
    detail = f"{answer.stderr.name}: {describe(completed.end)}"
    return Unknown(why="failed", detail=detail, source=answer.stderr)
