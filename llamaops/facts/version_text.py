"""What a program says about its own build; a package's name says nothing about it."""

from __future__ import annotations

import re

from llamaops.errors import ParseError
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why
from llamaops.schema.shape import Shape

_LINE = re.compile(
    r"^version:\s+(?:"
    r"(?P<semver>\d+\.\d+\.\d+)(?P<dev>-[\w.-]+)?\s+\(build\s+(?P<build>[^,)]+),\s+commit\s+(?P<commit>[^)]+)\)"
    r"|(?P<old_build>\d+|unknown)(?:\s+\((?P<old_commit>[^)]+)\))?)",
    re.MULTILINE,
)
_COMPILER = re.compile(r"^built with (?P<compiler>.+) for (?P<target>.+?)\s*$", re.MULTILINE)


class VersionFacts(Shape, frozen=True, kw_only=True):
    """The build as the program names it, each part by itself: any of them can be missing."""

    text: Fact[str]
    """The `version:` line as printed."""
    semver: Fact[str]
    """Semantic version, such as 0.7.0; printed since July 2026."""
    development: Fact[bool]
    """Whether the build is marked as not tagged (`-dev`)."""
    build: Fact[int]
    """Number of commits when it was configured; 1 means a shallow clone and tells builds apart no more."""
    commit: Fact[str]
    """Commit hash, or a distributor's word in its place."""
    compiler: Fact[str]
    """Compiler and its version."""
    target: Fact[str]
    """Operating system and architecture it was built for."""


def unknown_version(why: Why, detail: str, source: Source) -> VersionFacts:
    """Return the facts when there is nothing to read, all for the same reason."""
    gap = Unknown(why=why, detail=detail, source=source)
    return VersionFacts(
        text=gap, semver=gap, development=gap, build=gap, commit=gap, compiler=gap, target=gap
    )


def parse_version(text: str, source: Source) -> VersionFacts:
    """Read both streams of `--version`, joined; library messages before the line do not disturb.

    Raises: ParseError when there is no `version:` line.
    """
    line = _LINE.search(text)
    if line is None:
        raise ParseError("no `version:` line in a known form")
    built = _COMPILER.search(text)

    def part(value: str | None, what: str) -> Fact[str]:
        if value is None:
            return Unknown(why="absent", detail=f"this build does not print {what}", source=source)
        if value.strip().lower() == "unknown":
            return Unknown(why="absent", detail=f"this build says that {what} is unknown", source=source)
        return Known(value=value.strip(), source=source)

    dev = line["dev"] is not None
    return VersionFacts(
        text=Known(value=_whole_line(text, line.start()), source=source),
        semver=part(line["semver"], "a semantic version"),
        development=Known(value=dev, source=source)
        if line["semver"]
        else Unknown(why="absent", detail="this build does not say whether it is tagged", source=source),
        build=_build_number(line["build"] or line["old_build"], line["commit"] or line["old_commit"], source),
        commit=part(line["commit"] or line["old_commit"], "its commit"),
        compiler=part(built["compiler"] if built else None, "its compiler"),
        target=part(built["target"] if built else None, "its target"),
    )


def _whole_line(text: str, start: int) -> str:
    return text[start:].split("\n", 1)[0].rstrip()


def _build_number(value: str | None, commit: str | None, source: Source) -> Fact[int]:
    number = int(value) if value and value.strip().isdigit() else None
    if number is None or (number == 0 and commit in {None, "unknown"}):
        detail = "it was built without the project's history, so that it has no build number"
        return Unknown(why="absent", detail=detail, source=source)
    return Known(value=number, source=source)
