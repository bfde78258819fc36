"""Derive boundaries, gaps and the outcome from findings; nobody sets them by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llamaops.errors import ExitStatus
from llamaops.record.record import Outcome
from llamaops.schema.boundary import LADDER, MEANING, Boundary, BoundaryName, BoundaryState, Gap
from llamaops.schema.evidence import Evidence
from llamaops.schema.finding import Finding
from llamaops.schema.step import StepResult

# What an operator runs to test a rung that this record leaves untested.
TESTED_BY: Mapping[BoundaryName, str] = {
    "host": "llamaops preflight",
    "binary": "llamaops preflight",
    "model_file": "llamaops inspect MODEL",
    "model_load": "llamaops smoke --model MODEL",
    "generated_output": "llamaops smoke --model MODEL --max-tokens 64",
    "api_response": "llamaops serve --model MODEL --verify",
    "concurrency": "llamaops serve --model MODEL --verify --level standard, or llamaops verify URL",
    "benchmark": "run llama-bench twice with one variable changed; this version of llamaops does not",
}


OURS = "server.answer-is-ours"
NOT_STARTED_BY_US = "the server at the address asked for answered a representative request"
"""What `api_response` says where no check showed that the server is the one that we started."""


def derive(findings: Iterable[Finding], elapsed_s: Mapping[str, float]) -> tuple[Boundary, ...]:
    """Return every rung of the ladder with the state that its findings give it.

    Units: `elapsed_s` in seconds, by boundary name.
    """
    by_name: dict[BoundaryName, list[Finding]] = {name: [] for name in LADDER}
    for finding in findings:
        if finding.boundary is not None:
            by_name[finding.boundary].append(finding)
    return tuple(_boundary(name, by_name[name], elapsed_s.get(name)) for name in LADDER)


def _boundary(name: BoundaryName, findings: Sequence[Finding], elapsed_s: float | None) -> Boundary:
    judged = [f for f in findings if f.severity == "required" and f.status != "not_run"]
    state = _state(judged)
    return Boundary(
        name=name,
        state=state,
        claim=_claim(name, state, judged),
        findings=tuple(f.check for f in findings),
        evidence=tuple(dict.fromkeys(item for f in judged for item in f.evidence)),
        elapsed_s=None if state == "not_tested" or elapsed_s is None else round(elapsed_s, 3),
    )


def _state(judged: Sequence[Finding]) -> BoundaryState:
    if not judged:
        return "not_tested"
    if any(f.status == "failed" for f in judged):
        return "failed"
    if any(f.status in {"unknown", "error"} for f in judged):
        return "unknown"
    return "reached"


def _claim(name: BoundaryName, state: BoundaryState, judged: Sequence[Finding]) -> str:
    if state == "not_tested":
        return f"to test it: {TESTED_BY[name]}"
    if state == "reached":
        ours = any(f.check == OURS for f in judged)
        return MEANING[name] if ours or name != "api_response" else NOT_STARTED_BY_US
    wanted = {"failed"} if state == "failed" else {"unknown", "error"}
    return "; ".join(f.summary for f in judged if f.status in wanted)


def strongest(boundaries: Sequence[Boundary]) -> BoundaryName | None:
    """Return the highest boundary reached with none failed or unknown below it."""
    best: BoundaryName | None = None
    for boundary in boundaries:
        if boundary.state in {"failed", "unknown"}:
            break
        if boundary.state == "reached":
            best = boundary.name
    return best


def gaps(
    findings: Iterable[Finding],
    evidence: Iterable[Evidence],
    steps: Iterable[StepResult],
    not_covered: Iterable[str],
) -> tuple[Gap, ...]:
    """Return what the record does not show, derived so that it cannot be left out."""
    found = [gap for finding in findings if (gap := _gap_of(finding)) is not None]
    found += [
        Gap(
            subject=step.id,
            limit="cut_short",
            detail=f"the step {step.id} was stopped: {step.detail}",
            lifted_by="a larger bound, or the cause removed",
        )
        for step in steps
        if step.end in {"stopped_at_bound", "interrupted"}
    ]
    found += [
        Gap(
            subject=item.id,
            limit="cut_short",
            detail=f"{item.label}: kept a part of {item.total_bytes:,} bytes",
            lifted_by="running the command by hand",
        )
        for item in evidence
        if item.truncated
    ]
    found += [
        Gap(subject="scope", limit="out_of_scope", detail=line, lifted_by="another command or test")
        for line in not_covered
    ]
    return tuple(found)


def _gap_of(finding: Finding) -> Gap | None:
    match finding.status:
        case "unknown":
            return Gap(
                subject=finding.check,
                limit="not_observed",
                detail=finding.summary,
                lifted_by=finding.remedy or "the fact that is missing",
            )
        case "error" | "not_run":
            return Gap(
                subject=finding.check,
                limit="not_judged",
                detail=finding.summary,
                lifted_by=finding.remedy or "a run that collects what the check needs",
            )
        case "passed" | "failed":
            return None


def judge_outcome(
    findings: Sequence[Finding],
    boundaries: Sequence[Boundary],
    promised: Sequence[BoundaryName],
    steps: Sequence[StepResult],
    *,
    interrupted: bool,
) -> tuple[Outcome, ExitStatus]:
    """Compute the outcome and the exit status; the order is the precedence."""
    required = [f for f in findings if f.severity == "required"]
    open_failures = [f for f in required if f.status == "failed" and f.accepted is None]
    if interrupted:
        return "stopped", ExitStatus.INTERRUPTED
    if any(step.end == "stopped_at_bound" for step in steps):
        return "stopped", ExitStatus.BOUND
    if open_failures:
        return "failed", ExitStatus.FAILED
    if not _all_reached(boundaries, promised, findings):
        return "incomplete", ExitStatus.INCOMPLETE
    if not required or any(f.status in {"unknown", "error"} for f in required):
        return "incomplete", ExitStatus.INCOMPLETE
    return "passed", ExitStatus.PASSED


def _all_reached(
    boundaries: Sequence[Boundary], promised: Sequence[BoundaryName], findings: Sequence[Finding]
) -> bool:
    """Whether each promised rung is reached, or fails only in what the operator accepted."""
    accepted = {f.boundary for f in findings if f.accepted is not None}
    return all(
        b.state == "reached" or (b.state == "failed" and b.name in accepted)
        for b in boundaries
        if b.name in promised
    )
