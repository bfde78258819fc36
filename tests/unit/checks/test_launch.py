from __future__ import annotations

from llamaops.checks import launch as checks
from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.launch import LaunchFacts, MissingFlag
from llamaops.schema.fact import Fact, Known, Source, not_attempted
from llamaops.schema.finding import Finding

SOURCE = Source(kind="command", name="llama-server --help", evidence="ev-000000000003")
READ: Fact[bool] = Known(value=True, source=SOURCE)


def judged(launch: LaunchFacts) -> Finding:
    check = next(c for c in all_checks(["launch"]) if c.id == "binary.has-needed-flags")
    finding = run_check(check, {LaunchFacts: launch})
    assert finding is not None
    return finding


def test_every_flag_is_in_the_help() -> None:
    finding = judged(LaunchFacts(argv=("b", "-m", "x"), flags=("-m",), help_read=READ))
    assert finding.status == "passed"
    assert finding.evidence == ("ev-000000000003",)
    assert checks.has_needed_flags.__doc__


def test_a_missing_flag_is_named_with_the_nearest() -> None:
    missing = MissingFlag(flag="--no-mmap", wanted_for="the command line", nearest="--load-mode none")
    finding = judged(
        LaunchFacts(argv=("b", "--no-mmap"), flags=("--no-mmap",), help_read=READ, missing=(missing,))
    )
    assert finding.status == "failed"
    assert "--no-mmap (nearest: --load-mode none)" in finding.summary


def test_without_a_help_text_it_is_unknown() -> None:
    finding = judged(
        LaunchFacts(argv=("b",), flags=(), help_read=not_attempted("the help could not be read"))
    )
    assert (finding.status, finding.why) == ("unknown", "not_attempted")
