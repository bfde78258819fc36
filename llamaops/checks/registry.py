"""Declare checks, find them, and run them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from llamaops.errors import NotKnownError
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.finding import Finding, Severity


class Verdict(msgspec.Struct, frozen=True):
    """What a check concluded."""

    holds: bool
    summary: str
    """One sentence with both sides of the comparison and their units."""
    expected: str | None = None
    observed: str | None = None
    remedy: str | None = None
    """Replaces the declared remedy where the facts allow a better one."""
    evidence: tuple[str, ...] = ()


class NotApplicable(msgspec.Struct, frozen=True):
    """The check does not concern this run (no GPU was asked for, the model has no template)."""

    summary: str


CheckFunction = Callable[..., Verdict | NotApplicable]
F = TypeVar("F", bound=CheckFunction)


class Check(msgspec.Struct, frozen=True):
    """A declared check."""

    id: str
    title: str
    boundary: BoundaryName | None
    severity: Severity
    remedy: str
    function: CheckFunction

    def inputs(self) -> dict[str, type]:
        """Return the parameter names and the fact group each one takes."""
        found = _INPUTS.get(self.id)
        if found is None:
            found = _INPUTS[self.id] = _inputs_of(self.function)
        return found


_CHECKS: dict[str, Check] = {}
_INPUTS: dict[str, dict[str, type]] = {}


def _inputs_of(function: CheckFunction) -> dict[str, type]:
    """Resolve the annotations of a check, which are names of its module kept as text."""
    written = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    named = {name: function.__globals__.get(hint) for name, hint in written.items() if isinstance(hint, str)}
    if len(named) == len(written) and all(isinstance(kind, type) for kind in named.values()):
        return {name: kind for name, kind in named.items() if isinstance(kind, type)}
    from typing import get_type_hints  # handles every annotation, and takes longer

    hints = get_type_hints(function)
    hints.pop("return", None)
    return hints


def check(
    id: str,  # noqa: A002 - the word of the record
    *,
    title: str,
    boundary: BoundaryName | None,
    remedy: str,
    severity: Severity = "required",
) -> Callable[[F], F]:
    """Declare a check; the function is returned unchanged, so that tests call it directly.

    Raises: ValueError for a second check with the same id.
    """

    def register(function: F) -> F:
        if id in _CHECKS:
            raise ValueError(f"two checks are called {id}")
        _CHECKS[id] = Check(id, title, boundary, severity, remedy, function)
        return function

    return register


def load(areas: Iterable[str] | None = None) -> None:
    """Import the check modules of some areas, or of all.

    An area is a module of this package and the modules that begin with its name and an underscore.
    """
    import llamaops.checks as package

    wanted = None if areas is None else set(areas)
    for name in _modules(package.__path__):
        if name != "registry" and (wanted is None or _in_areas(name, wanted)):
            importlib.import_module(f"llamaops.checks.{name}")


def _modules(folders: Iterable[str]) -> list[str]:
    """Return the modules of this package; pkgutil would load inspect, and with it a parser of Python."""
    files = {file for folder in folders for file in os.listdir(folder)}  # noqa: PTH208 - no pathlib here
    return sorted(file.removesuffix(".py") for file in files if file.endswith(".py") and file[0] not in "_.")


def _in_areas(module: str, areas: set[str]) -> bool:
    return module in areas or module.partition("_")[0] in areas


def all_checks(areas: Iterable[str] | None = None) -> list[Check]:
    """Return the checks of some areas, or all, ordered by id."""
    wanted = None if areas is None else set(areas)
    load(wanted)
    return [
        _CHECKS[name]
        for name in sorted(_CHECKS)
        if wanted is None or _in_areas(_CHECKS[name].function.__module__.rsplit(".", 1)[1], wanted)
    ]


def run_check(check: Check, groups: Mapping[type, object]) -> Finding | None:
    """Run one check on the collected fact groups, given by their type; None when not applicable."""
    arguments: dict[str, object] = {}
    for name, group in check.inputs().items():
        if group not in groups:
            return _finding(
                check,
                status="not_run",
                summary=f"not judged: {group.__name__} was not collected",
                why="not_attempted",
            )
        arguments[name] = groups[group]
    try:
        verdict = check.function(**arguments)
    except NotKnownError as error:
        if error.why == "not_selected":
            return _finding(check, status="not_run", summary=f"not judged: {error.detail}", why=error.why)
        return _finding(
            check,
            status="unknown",
            summary=error.detail,
            why=error.why,
            remedy=check.remedy,
        )
    except Exception as defect:  # noqa: BLE001 - a defect in one check must not end the run; it is recorded as one
        return _finding(
            check,
            status="error",
            summary=f"the check itself broke: {type(defect).__name__}: {defect}",
            remedy="report this as a defect of llamaops",
        )
    if isinstance(verdict, NotApplicable):
        return None
    return _finding(
        check,
        status="passed" if verdict.holds else "failed",
        summary=verdict.summary,
        expected=verdict.expected,
        observed=verdict.observed,
        remedy=None if verdict.holds else (verdict.remedy or check.remedy),
        evidence=verdict.evidence,
    )


def _finding(check: Check, **fields: object) -> Finding:
    return Finding(
        check=check.id,
        title=check.title,
        boundary=check.boundary,
        severity=check.severity,
        **fields,  # type: ignore[arg-type]  # each caller above passes fields of Finding
    )
