"""Exposure: read the decisions, judge them, and refuse to serve beyond loopback without all of them."""

from __future__ import annotations

from llamaops.checks.registry import all_checks, run_check
from llamaops.errors import InputFileError, UsageError
from llamaops.facts.exposure import Decisions, ExposureFacts, collect_exposure
from llamaops.launch.settings import LOOPBACK
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.runbook.load import shown
from llamaops.runbook.yaml_shape import parse, read_file
from llamaops.schema.finding import Finding
from llamaops.system.machine import Machine
from llamaops.system.ports import System

NOT_COVERED = (
    "whether firewall, proxy and certificate do what was decided: ask the server from another machine",
    "what clients do with the answers",
)


def read_decisions(path: str) -> Decisions:
    """Read a decisions file.

    Raises: InputFileError with every error and its place.
    """
    read = parse(read_file(path), Decisions)
    if isinstance(read, list):
        raise InputFileError(shown(path, read))
    return read.value


def check_decisions(session: Session, machine: Machine, path: str, decisions: Decisions) -> str:
    """Judge a decisions file and return how it ended."""
    session.begin((), NOT_COVERED)
    with session.step("look", f"look at the files that {path} names"):
        session.add("exposure", collect_exposure(machine, decisions))
    session.judge("exposure")
    return "ended by itself; nothing was started or changed"


def undecided(system: System, decisions: Decisions) -> list[Finding]:
    """Return what is missing or does not hold in the decisions."""
    groups: dict[type, object] = {ExposureFacts: collect_exposure(system, decisions)}
    found = [run_check(check, groups) for check in all_checks(["exposure"])]
    return [finding for finding in found if finding is not None and finding.status != "passed"]


def require_decided(settings: Settings, decisions: Decisions | None, system: System) -> bool:
    """Refuse an address beyond loopback unless a complete decisions file names it; say whether it is beyond.

    Raises: UsageError that names what is missing.
    """
    if settings.host in LOOPBACK or settings.host.startswith("127."):
        return False
    if decisions is None:
        raise UsageError(
            f"--host {settings.host} would serve beyond this machine",
            hint="use 127.0.0.1, or decide it: --decisions FILE, checked by `llamaops expose check FILE`",
        )
    bind = decisions.bind
    if bind is not None and (bind.address != settings.host or settings.port not in {0, bind.port}):
        raise UsageError(
            f"the decisions say {bind.address}:{bind.port}, not {settings.host}:{settings.port}",
            hint="decide what is to be served",
        )
    if left := undecided(system, decisions):
        raise UsageError(
            f"{len(left)} decisions are missing or do not hold: "
            + "; ".join(f"{item.check}: {item.summary}" for item in left),
            hint="`llamaops expose check FILE` says what to do about each",
        )
    return True
