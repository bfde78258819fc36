"""Why a program did not run: the kernel's, the loader's or the program's own words, sorted."""

from __future__ import annotations

import errno
import re
from typing import Literal

from llamaops.schema.shape import Shape
from llamaops.system.process import Completed, Exited, NotStarted, Signalled, StoppedAtBound, describe

FailureKind = Literal[
    "missing_library",
    "library_too_old",
    "undefined_symbol",
    "illegal_instruction",
    "crashed",
    "timed_out",
    "flooded",
    "not_executable",
    "wrong_architecture",
    "bad_interpreter",
    "not_found",
    "config_file",
    "engine_variable",
    "failed",
]

_SIGILL = 4
_SIGNAL_BASE = 128
_NOT_FOUND = 127

_WORDS: tuple[tuple[FailureKind, str], ...] = (
    ("missing_library", r"loading shared libraries: (?P<what>[^:\s]+): cannot open shared object"),
    ("missing_library", r"Error loading shared library (?P<what>[^:\s]+): No such file"),
    ("missing_library", r"Library not loaded: (?P<what>\S+)"),
    ("library_too_old", r"version [`'](?P<what>[A-Za-z_]+_[\d.]+)' not found"),
    ("undefined_symbol", r"(?:undefined symbol|[Ss]ymbol not found|relocating \S+): (?P<what>[\w@.]+)"),
    ("wrong_architecture", r"(?P<what>Exec format error|cannot execute binary|(?:wrong|invalid) ELF \w+)"),
    ("bad_interpreter", r"(?P<what>bad interpreter[^\n]*|qemu-\S+: Could not open[^\n]*)"),
    ("illegal_instruction", r"(?P<what>Illegal instruction)"),
    ("engine_variable", r"error while handling environment variable \"(?P<what>[^\"]+)\""),
    ("config_file", r"\A\s*(?:error: )?(?:invalid )?(?P<what>sto(?:i|f|l|ul|ll|d))\b[^\n]*\s*\Z"),
    ("config_file", r"(?P<what>[^\n]*config\.ini[^\n]*)"),
)  # fmt: skip


class RunFailure(Shape, frozen=True, kw_only=True):
    """A probe that did not end as a working program ends."""

    kind: FailureKind
    """What happened, for a script."""
    probe: str
    """The arguments it was run with."""
    detail: str
    """What happened, in one sentence."""
    what: str | None = None
    """The library, symbol version, variable or message that it is about."""
    evidence: tuple[str, ...] = ()
    """Ids of its output."""


def classify(completed: Completed, *, evidence: tuple[str, ...] = ()) -> RunFailure | None:
    """Return why a probe failed; None when it ended by itself without a known sign of failure.

    An exit status of 1 alone is no failure here: several programs answer --help or --version so.
    """
    probe = " ".join(completed.argv[1:])
    kind, what = _kind_of(completed)
    if kind is None:
        return None
    detail = f"{completed.argv[0]} {probe}: {describe(completed.end)}"
    words = what or _last_line(completed)
    return RunFailure(
        kind=kind,
        probe=probe,
        detail=f"{detail}: {words}" if words and words not in detail else detail,
        what=what,
        evidence=evidence,
    )


def _kind_of(completed: Completed) -> tuple[FailureKind | None, str | None]:
    match completed.end:
        case NotStarted(why, number):
            return _not_started(number), why
        case StoppedAtBound(bound):
            return ("timed_out" if bound == "wall_s" else "flooded"), None
        case Signalled(number):
            return ("illegal_instruction" if number == _SIGILL else "crashed"), None
        case Exited(0):
            return None, None
        case Exited(code):
            return _exited(code, completed)


def _exited(code: int, completed: Completed) -> tuple[FailureKind | None, str | None]:
    text = completed.stderr.text or completed.stdout.text[:4096]
    for kind, pattern in _WORDS:
        found = re.search(pattern, text)
        if found:
            return kind, found["what"]
    if code == _SIGNAL_BASE + _SIGILL:  # a shell says so of its child
        return "illegal_instruction", None
    if _SIGNAL_BASE < code <= _SIGNAL_BASE + 64:
        return "crashed", None
    if code in {_NOT_FOUND, _NOT_FOUND - 1}:
        return ("not_found" if code == _NOT_FOUND else "not_executable"), None
    return None, None


def _not_started(number: int | None) -> FailureKind:
    kinds: dict[int | None, FailureKind] = {
        errno.ENOEXEC: "wrong_architecture",
        errno.EACCES: "not_executable",
        errno.EPERM: "not_executable",
        errno.ENOENT: "not_found",
        errno.ENOTDIR: "not_found",
        getattr(errno, "ELIBBAD", 80): "wrong_architecture",
        getattr(errno, "EBADARCH", 86): "wrong_architecture",
    }
    return kinds.get(number, "failed")


def _last_line(completed: Completed) -> str | None:
    lines = [line.strip() for line in completed.stderr.text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else None
