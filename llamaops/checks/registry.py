"""Declare checks, find them, and run them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar, get_type_hints

from llamaops.errors import NotKnownError
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.finding import Finding, Severity


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check concluded."""

    holds: bool
    summary: str
    """One sentence with both sides of the comparison and their units."""
    expected: str | None = None
    observed: str | None = None
    remedy: str | None = None
    """Replaces the declared remedy where the facts allow a better one."""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The check does not concern this run (no GPU was asked for, the model has no template)."""

    summary: str


CheckFunction = Callable[..., Verdict | NotApplicable]
F = TypeVar("F", bound=CheckFunction)


@dataclass(frozen=True, slots=True)
class Check:
    """A declared check."""

    id: str
    title: str
    boundary: BoundaryName
    severity: Severity
    remedy: str
    function: CheckFunction

    def inputs(self) -> dict[str, type]:
        """Return the parameter names and the fact group each one takes."""
        hints = get_type_hints(self.function)
        hints.pop("return", None)
        return hints


_CHECKS: dict[str, Check] = {}


def check(
    id: str,  # noqa: A002 - the word of the record
    *,
    title: str,
    boundary: BoundaryName,
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
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "registry" and (wanted is None or _in_areas(module.name, wanted)):
            importlib.import_module(f"llamaops.checks.{module.name}")


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
        return _finding(
            check,
            status="unknown",
            summary=error.detail,
            why=error.why,
            remedy=check.remedy,
        )
    except Exception:  # noqa: BLE001 - a defect in one check must not end the run; it is recorded as one
        return _finding(
            check,
            status="error",
            summary=f"the check itself broke: {traceback.format_exc(limit=-1).splitlines()[-1]}",
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


def describe(check: Check) -> str:
    """Return the first line of the check's docstring, for the reference page."""
    return (inspect.getdoc(check.function) or "").split("\n", 1)[0]
