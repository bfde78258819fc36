"""Diagnose: what the parts of one situation mean, as a record; and the diagnosis of a run that failed."""

from __future__ import annotations

import msgspec

from llamaops.checks.diagnosis import boundary_of
from llamaops.diagnosis.judge import diagnose_parts
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import RuleSet, rule_set
from llamaops.facts.launch import LaunchFacts
from llamaops.operations.session import Session
from llamaops.render.inert import one_line
from llamaops.schema.diagnosis import Diagnosis
from llamaops.schema.evidence import Evidence
from llamaops.system.machine import Machine

NOT_COVERED = ("only what was given was read: nothing was started, asked or measured",)
_PROBES = ("--version", "--help", "--list-devices")
_BY_OWN_LIMIT = frozenset(("answer-cut-by-token-limit", "answer-cut-below-its-limit"))
"""Causes that the token limit of a probe brings about; they explain no failed check."""
OF_CHECKS = "the checks that failed"
"""Name of the part that holds them."""


def diagnose(session: Session, machine: Machine, parts: list[Part]) -> None:
    """Read the parts, add the diagnosis to the record and judge it."""
    del machine
    session.begin((), NOT_COVERED)
    with session.step("diagnose", f"read {len(parts)} parts: {', '.join(p.name for p in parts)[:300]}"):
        found = diagnose_parts(parts)
    session.add("diagnosis", found)
    session.promised = (boundary_of(found),)
    session.judge("diagnosis")


def diagnosis_of_run(session: Session, evidence: tuple[Evidence, ...]) -> Diagnosis | None:
    """Return what the logs and answers of a run that failed mean; None when they say nothing more."""
    parts = [part for item in evidence if (part := _part_of(item)) is not None]
    launch = session.group(LaunchFacts)
    if launch is not None:
        parts.append(Part("command", "command line", " ".join(launch.argv)))
    logs = any(part.kind in {"log", "http-response"} for part in parts)
    # One line each: a file's name may have line ends, and what follows one is no line of ours.
    failed = "".join(f"failed {f.check}: {one_line(f.summary)}\n" for f in session.failures())
    found = diagnose_parts([*parts, Part("inspect", OF_CHECKS, failed)], _rules_of_run())
    # What is no fault in the logs is no explanation of a failed check; without logs "unknown" says nothing.
    if found.verdict == "no_fault" or (found.verdict == "unknown" and not logs):
        return None
    return msgspec.structs.replace(found, proof=(), proven=None)


def _rules_of_run() -> RuleSet:
    """Return the rules without what a probe of llamaops makes happen by itself: it asks for few tokens."""
    rules = rule_set()
    return msgspec.structs.replace(rules, rules=tuple(r for r in rules.rules if r.slug not in _BY_OWN_LIMIT))


def _part_of(item: Evidence) -> Part | None:
    if item.kind == "http":
        return Part("http-response", item.label, item.text)
    words = item.label.split()
    if item.kind not in {"stderr", "log"} or not words:
        return None
    if any(word in _PROBES for word in words) or "llama" not in words[0].rsplit("/", 1)[-1]:
        return None
    return Part("log", item.label[:120], item.text)
