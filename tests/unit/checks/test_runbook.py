from __future__ import annotations

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.runbook_run import RunbookFacts, RunbookStep
from llamaops.schema.finding import Finding

RUNGS = [
    "runbook.host-shown-by-a-step",
    "runbook.binary-shown-by-a-step",
    "runbook.model-file-shown-by-a-step",
    "runbook.model-load-shown-by-a-step",
    "runbook.generated-output-shown-by-a-step",
    "runbook.api-response-shown-by-a-step",
    "runbook.concurrency-shown-by-a-step",
    "runbook.benchmark-shown-by-a-step",
]


def ran(name: str, end: str = "done", **fields: object) -> RunbookStep:
    return RunbookStep(id=name, title=name, do="serve", command=(), end=end, consent="not_needed", **fields)  # type: ignore[arg-type]  # as the test says


def findings(*steps: RunbookStep) -> dict[str, Finding]:
    facts = RunbookFacts(id="book", title="Do it", sha256="0" * 64, inputs=(), steps=steps)
    found = [run_check(check, {RunbookFacts: facts}) for check in all_checks(["runbook"])]
    return {finding.check: finding for finding in found if finding is not None}


def test_all_done() -> None:
    found = findings(ran("one"), ran("two", "earlier"))
    assert {name: item.status for name, item in found.items()} == {
        "runbook.steps-gave-what-was-expected": "passed",
        "runbook.whole-runbook-was-run": "passed",
    }


def test_a_failed_step_says_what_did_not_hold() -> None:
    finding = findings(
        ran("one", "failed", ended="exit status 3", unmet=("exit status 0",)), ran("two", "not_run")
    )
    failed = finding["runbook.steps-gave-what-was-expected"]
    assert (failed.status, failed.boundary) == ("failed", None)
    assert "one failed (exit status 3): exit status 0 did not hold" in failed.summary
    assert finding["runbook.whole-runbook-was-run"].status == "unknown"


def test_a_declined_step_is_incomplete_and_not_failed() -> None:
    found = findings(ran("one"), ran("two", "declined"))
    assert found["runbook.steps-gave-what-was-expected"].status == "passed"
    assert found["runbook.whole-runbook-was-run"].status == "unknown"
    assert "two was declined" in found["runbook.whole-runbook-was-run"].summary


@pytest.mark.parametrize("check", RUNGS)
def test_the_last_record_has_the_last_word_on_a_rung(check: str) -> None:
    rung = check.removeprefix("runbook.").removesuffix("-shown-by-a-step").replace("-", "_")
    assert findings(ran("one", reached=(rung,)))[check].status == "passed"
    worse = findings(ran("one", reached=(rung,)), ran("two", "failed", not_reached=(rung,)))
    assert worse[check].status == "failed"
    better = findings(ran("one", "failed", not_reached=(rung,)), ran("two", reached=(rung,)))
    assert better[check].status == "passed"
    assert check not in findings(ran("one", not_reached=(rung,)))  # the runbook expected it to fail
