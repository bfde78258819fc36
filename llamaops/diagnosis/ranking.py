"""Which of the causes that hold is the first, and what the others are to it."""

from __future__ import annotations

from collections.abc import Sequence

from llamaops.diagnosis.candidates import Candidate
from llamaops.diagnosis.landmarks import Landmarks

SECURITY = "exposure"
"""The area of rules about who may reach the server or read its secrets."""
SEVERITY = {"fatal": 0, "error": 0, "warn": 1, "info": 2}
_TIER = {"cause": 0, "message": 1, "note": 1, "wrapper": 3}
_OF_ANSWERS = frozenset(("generated_output", "benchmark", "concurrency"))
"""Where a poor answer shows; it is no reason for a program to end."""
_UP_TO_LOAD = frozenset(("host", "binary", "model_file", "model_load"))

Rank = tuple[int, int, int, int, int, tuple[int, int], int]


def roles_of(held: Sequence[Candidate], marks: Landmarks) -> dict[int, str]:
    """Return what each cause is, by its identity: primary, recovered, or a symptom of another one."""
    roles = {id(c): "recovered" if _recovered(c, marks) else "primary" for c in held}
    standing = [c for c in held if roles[id(c)] == "primary"]
    for candidate in standing:
        if _explained(candidate, standing):
            roles[id(candidate)] = "symptom"
    return roles


def _explained(candidate: Candidate, standing: Sequence[Candidate]) -> bool:
    """Say whether another cause explains this one; a rule of the same slug does not."""
    slug = candidate.rule.slug
    return any(slug in c.rule.over and c.rule.slug != slug for c in standing)


def _recovered(candidate: Candidate, marks: Landmarks) -> bool:
    """Say whether the log says ready after the last line of a failure that readiness takes back."""
    rule = candidate.rule
    recovers = rule.recovers
    if recovers is None:
        recovers = rule.boundary in _UP_TO_LOAD and rule.severity in {"fatal", "error"}
    shown = next((h.shown for h in candidate.hits if (h.part, h.number) == candidate.last), "")
    return recovers and marks.ready_after(candidate.last, shown)


def rank_of(candidate: Candidate, marks: Landmarks) -> Rank:
    """Return what candidates are sorted by; the first is the primary cause."""
    rule = candidate.rule
    severity = SEVERITY[rule.severity]
    return (
        severity,
        # What could be abused is said after what fails: an operator asks why it fails.
        int(rule.area == SECURITY),
        int(rule.tier == "wrapper"),
        int(marks.before_last_start(candidate.last)),
        int(rule.severity == "error" and rule.boundary in _OF_ANSWERS),
        candidate.first if severity == 0 else (0, 0),
        _TIER[rule.tier],
    )


def other_role(candidate: Candidate, role: str, first: Candidate | None) -> str:
    """Return what a cause that is not the primary one is called in the answer."""
    if role != "primary":
        return role
    if candidate.rule.severity == "info":
        return "harmless"
    if candidate.rule.tier == "wrapper":
        return "symptom"
    if first is not None and SEVERITY[candidate.rule.severity] == 0 and candidate.first > first.first:
        return "symptom" if first.rule.severity in {"fatal", "error"} else "contributing"
    return "contributing"
