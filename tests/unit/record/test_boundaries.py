"""Boundaries, gaps and outcome are derived, and nothing missing becomes green."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.errors import ExitStatus
from llamaops.record.boundaries import derive, gaps, judge_outcome, strongest
from llamaops.schema.boundary import LADDER, BoundaryName
from llamaops.schema.evidence import evidence_of
from llamaops.schema.finding import Finding, Severity, Status
from llamaops.schema.step import StepResult


def finding(
    boundary: BoundaryName, status: Status, severity: Severity = "required", check: str | None = None
) -> Finding:
    return Finding(
        check=check or f"{boundary}.{status}.{severity}",
        title="t",
        boundary=boundary,
        status=status,
        severity=severity,
        summary=f"{boundary} is {status}",
        remedy="do this",
    )


def step(end: str) -> StepResult:
    return msgspec.convert(
        {"id": "s", "end": end, "started_at": "2026-01-01T00:00:00Z", "elapsed_s": 1.0, "detail": "d"},
        StepResult,
    )


STATES = [
    ([], "not_tested"),
    (["passed"], "reached"),
    (["passed", "failed"], "failed"),
    (["passed", "unknown"], "unknown"),
    (["unknown", "failed"], "failed"),
    (["passed", "error"], "unknown"),
    (["not_run"], "not_tested"),
]


@pytest.mark.parametrize(("statuses", "state"), STATES)
def test_the_state_follows_from_the_required_findings(statuses: list[Status], state: str) -> None:
    ladder = derive([finding("host", status, check=f"h.{n}") for n, status in enumerate(statuses)], {})
    assert ladder[0].state == state
    assert [b.name for b in ladder] == list(LADDER)


@pytest.mark.parametrize("status", ["passed", "failed", "unknown"])
def test_an_advisory_finding_neither_reaches_nor_fails_a_boundary(status: Status) -> None:
    assert derive([finding("host", status, "advisory")], {})[0].state == "not_tested"


@pytest.mark.parametrize(
    ("check", "claim"),
    [("server.answer-is-ours", "our own server"), ("server.chat-answers", "the server at")],
)
def test_a_server_is_called_ours_only_where_that_was_shown(check: str, claim: str) -> None:
    found = [finding("api_response", "passed", check="server.is-healthy")]
    ladder = derive([*found, finding("api_response", "passed", check=check)], {})
    reached = next(item for item in ladder if item.name == "api_response")
    assert reached.claim.startswith(claim)


def test_an_untested_boundary_says_what_would_test_it() -> None:
    claims = {b.name: b.claim for b in derive([], {})}
    assert "llamaops smoke" in claims["generated_output"]


def test_the_strongest_boundary_stops_below_a_failure() -> None:
    findings = [finding("host", "passed"), finding("model_load", "failed"), finding("api_response", "passed")]
    assert strongest(derive(findings, {})) == "host"


def test_the_strongest_boundary_stops_below_an_unknown() -> None:
    findings = [
        finding("binary", "passed"),
        finding("model_load", "unknown"),
        finding("api_response", "passed"),
    ]
    assert strongest(derive(findings, {})) == "binary"


def test_an_untested_rung_below_does_not_hide_what_was_reached() -> None:
    assert strongest(derive([finding("api_response", "passed")], {})) == "api_response"


def test_nothing_reached_is_none() -> None:
    assert strongest(derive([], {})) is None


CASES = [
    ([], [], False, "incomplete", ExitStatus.INCOMPLETE),
    ([("host", "passed")], [], False, "passed", ExitStatus.PASSED),
    ([("host", "passed")], ["binary"], False, "incomplete", ExitStatus.INCOMPLETE),
    ([("host", "unknown")], [], False, "incomplete", ExitStatus.INCOMPLETE),
    ([("host", "error")], ["host"], False, "incomplete", ExitStatus.INCOMPLETE),
    ([("host", "failed"), ("binary", "unknown")], [], False, "failed", ExitStatus.FAILED),
    ([("host", "failed")], [], True, "stopped", ExitStatus.INTERRUPTED),
]


@pytest.mark.parametrize(("judged", "promised", "interrupted", "outcome", "status"), CASES)
def test_the_outcome(
    judged: list[tuple[BoundaryName, Status]],
    promised: list[BoundaryName],
    interrupted: bool,
    outcome: str,
    status: ExitStatus,
) -> None:
    findings = [finding(name, state) for name, state in judged]
    got = judge_outcome(findings, derive(findings, {}), promised, [], interrupted=interrupted)
    assert got == (outcome, status)


def test_a_bound_wins_over_a_failure() -> None:
    findings = [finding("host", "failed")]
    got = judge_outcome(findings, derive(findings, {}), [], [step("stopped_at_bound")], interrupted=False)
    assert got == ("stopped", ExitStatus.BOUND)


def test_an_advisory_failure_does_not_decide() -> None:
    findings = [finding("host", "passed"), finding("host", "failed", "advisory")]
    assert (
        judge_outcome(findings, derive(findings, {}), ["host"], [], interrupted=False)[1] == ExitStatus.PASSED
    )


def test_an_accepted_failure_stays_failed_but_does_not_decide() -> None:
    accepted = msgspec.structs.replace(finding("host", "failed"), accepted="known and wanted")
    findings = [accepted, finding("binary", "passed")]
    ladder = derive(findings, {})
    assert ladder[0].state == "failed"
    assert judge_outcome(findings, ladder, ["host", "binary"], [], interrupted=False)[1] == ExitStatus.PASSED


def test_gaps_name_what_is_missing_and_what_would_lift_it() -> None:
    cut = evidence_of("stderr", "llama-server", b"x", total_bytes=10, truncated=True)
    found = gaps([finding("host", "unknown")], [cut], [step("interrupted")], ["more than one request"])
    assert [gap.limit for gap in found] == ["not_observed", "cut_short", "cut_short", "out_of_scope"]
    assert found[0].lifted_by == "do this"
