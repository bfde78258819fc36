from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from llamaops.errors import UsageError
from llamaops.facts.runbook_run import RunbookStep
from llamaops.runbook.document import Changes, Expect, Input, Runbook, Step, StepBounds
from llamaops.runbook.fill import Values, command, resolve_inputs
from llamaops.runbook.page import plan_page, runbook_page
from llamaops.runbook.plan import PlannedStep, plan
from llamaops.runbook.run import Came, run
from tests.fakes.runbook_performer import GOOD, FakePerformer

CHANGES = Changes(target="${file}", scope="one file", rollback="rm ${file}")
FAILED = Came(status=3, ended="exit status 3", not_reached=("api_response",))


def step(name: str, **fields: object) -> Step:
    return msgspec.convert({"id": name, "title": name, "do": "preflight", **fields}, Step)


def changing(name: str) -> Step:
    return Step(
        id=name,
        title=name,
        do="command",
        argv=("touch", "${file}"),
        changes=CHANGES,
        bounds=StepBounds(wall_s=1),
    )


def book(*steps: Step, **inputs: Input) -> Runbook:
    return Runbook(runbook=1, id="book", title="Do it", inputs=inputs, steps=steps, not_covered=("all else",))


def last(
    runbook: Runbook, performer: FakePerformer, inputs: Mapping[str, str | None] | None = None, **how: object
) -> tuple[RunbookStep, ...]:
    wanted: dict[str, Any] = {"ask": None, "yes": False, **how}
    return list(run(runbook, inputs or {}, performer, **wanted))[-1]


def ends(results: tuple[RunbookStep, ...]) -> list[tuple[str, str]]:
    return [(one.id, one.end) for one in results]


def test_a_step_that_fails_stops_the_run() -> None:
    performer = FakePerformer({"two": [FAILED]})
    results = last(book(step("one"), step("two"), step("three")), performer)
    assert ends(results) == [("one", "done"), ("two", "failed"), ("three", "not_run")]
    assert results[1].unmet == ("exit status 0",)
    assert [name for name, _words in performer.calls] == ["one", "two"]


def test_a_step_may_fail_and_the_rest_goes_on() -> None:
    results = last(book(step("one", on_failure="continue"), step("two")), FakePerformer({"one": [FAILED]}))
    assert ends(results) == [("one", "failed"), ("two", "done")]


def test_every_expectation_has_to_hold() -> None:
    wanted = Expect(
        status=(0, 4),
        boundary="api_response",
        output=("good ${word}",),
        absent=("bad",),
        findings={"a.b": "passed", "c.d": "failed"},
    )
    came = msgspec.structs.replace(GOOD, output="bad", findings={"a.b": "failed"})
    one = msgspec.structs.replace(step("one"), expect=wanted)
    results = last(book(one), FakePerformer({"one": [came]}), {"word": "news"})
    assert results[0].unmet == (
        "the boundary api_response",
        "the text 'good news'",
        "no text 'bad'",
        "a.b passed, which is failed",
        "c.d failed, which is not in the record",
    )


def test_a_change_needs_consent_and_without_it_nothing_runs() -> None:
    performer = FakePerformer()
    results = last(book(changing("one"), step("two")), performer, {"file": "x"})
    assert ends(results) == [("one", "declined"), ("two", "not_run")]
    assert performer.calls == []


def test_the_operator_sees_target_scope_and_rollback_before_he_agrees() -> None:
    seen: list[PlannedStep] = []

    def ask(shown: PlannedStep) -> bool:
        seen.append(shown)
        return True

    results = last(book(changing("one")), FakePerformer(), {"file": "x"}, ask=ask)
    assert seen[0].changes == Changes(target="x", scope="one file", rollback="rm x")
    assert (results[0].end, results[0].consent) == ("done", "given")
    assert results[0].changes == "target: x; scope: one file; rollback: rm x"


def test_consent_beforehand() -> None:
    results = last(book(changing("one")), FakePerformer(), {"file": "x"}, yes=True)
    assert (results[0].end, results[0].consent) == ("done", "by_option")


def test_a_resumed_run_goes_on_after_what_was_done() -> None:
    performer = FakePerformer()
    results = last(book(step("one"), step("two")), performer, done=frozenset({"one"}))
    assert ends(results) == [("one", "earlier"), ("two", "done")]
    assert [name for name, _words in performer.calls] == ["two"]


def test_a_resumed_run_knows_the_records_of_what_was_done() -> None:
    performer = FakePerformer()
    runbook = book(step("one"), step("two", do="diagnose", args=["${steps.one.record}"]))
    results = last(runbook, performer, done=frozenset({"one"}), outputs={"one.record": "/records/r1"})
    assert ends(results) == [("one", "earlier"), ("two", "done")]
    assert performer.calls == [("two", ("diagnose", "/records/r1"))]
    assert results[0].record == "r1"  # so that a second resumption knows it too


def test_a_resumed_run_starts_its_servers_again() -> None:
    performer = FakePerformer({"serve": [msgspec.structs.replace(GOOD, url="http://127.0.0.1:1")]})
    runbook = book(
        step("serve", do="serve", background=True), step("ask", do="verify", args=["${steps.serve.url}"])
    )
    results = last(runbook, performer, done=frozenset({"serve"}))
    assert ends(results) == [("serve", "done"), ("ask", "done")]
    assert performer.calls[1] == ("ask", ("verify", "http://127.0.0.1:1"))


def test_a_server_is_stopped_also_when_a_later_step_fails() -> None:
    performer = FakePerformer(
        {"serve": [msgspec.structs.replace(GOOD, status=None, url="http://127.0.0.1:1")], "ask": [FAILED]}
    )
    results = last(book(step("serve", do="serve", background=True), step("ask")), performer)
    assert performer.stopped == ["serve"]
    assert ends(results) == [("serve", "done"), ("ask", "failed")]
    assert results[0].evidence == ("ev-log",)


def test_a_server_is_stopped_when_the_run_is_interrupted() -> None:
    class Interrupting(FakePerformer):
        def command(self, step: Step, words: tuple[str, ...]) -> Came:
            if step.id == "ask":
                raise KeyboardInterrupt
            return super().command(step, words)

    performer = Interrupting({"serve": [msgspec.structs.replace(GOOD, url="http://127.0.0.1:1")]})
    with pytest.raises(KeyboardInterrupt):
        last(book(step("serve", do="serve", background=True), step("ask")), performer)
    assert performer.stopped == ["serve"]


def test_a_fault_goes_back_to_the_last_good_step() -> None:
    performer = FakePerformer({"two": [FAILED]})
    results = last(book(step("one"), step("two", fall_back_to="one"), step("four")), performer)
    assert ends(results) == [("one", "done"), ("two", "failed"), ("one", "done"), ("four", "not_run")]
    assert results[2].fell_back_from == "two"


def test_what_is_left_to_be_done_by_hand_stops_the_run_until_it_was_done() -> None:
    runbook = book(step("hand", do="manual", says="do it"), step("two"))
    assert ends(last(runbook, FakePerformer())) == [("hand", "skipped"), ("two", "not_run")]
    done = last(runbook, FakePerformer(), by_hand_done=frozenset({"hand"}))
    assert ends(done) == [("hand", "done"), ("two", "done")]


def test_a_bound_is_told_from_a_failure() -> None:
    came = Came(status=None, ended="stopped at the bound wall_s", stopped_at_bound=True)
    assert last(book(step("one")), FakePerformer({"one": [came]}))[0].end == "stopped_at_bound"


def test_options_of_inputs_left_out_are_left_out() -> None:
    one = step(
        "one",
        do="serve",
        args=["--${kv}", "${gone}"],
        options={"model": "${model}", "bin_dir": "${gone}", "parallel": 2, "once": True, "verify": False},
        flags=["--metrics", "${more}"],
    )
    values = Values(
        {"kv": "kv-unified", "gone": None, "model": "a b", "more": "--x 1"}, words=frozenset({"more"})
    )
    assert command(one, values) == (
        *("serve", "--kv-unified", "--model", "a b", "--parallel", "2", "--once"),
        *("--", "--metrics", "--x", "1"),
    )


def test_inputs_are_checked_all_at_once() -> None:
    runbook = book(
        number=Input(kind="number", about="n"),
        pick=Input(kind="choice", about="c", choices=("a", "b"), default="a"),
        url=Input(kind="url", about="u", optional=True),
    )
    assert resolve_inputs(runbook, {"number": "7"}) == {"number": "7", "pick": "a", "url": None}
    with pytest.raises(UsageError) as raised:
        resolve_inputs(runbook, {"pick": "c", "url": "file:///etc/passwd", "other": "x"})
    for wanted in ("no input other", "number=…", "one of a, b", "http or https"):
        assert wanted in str(raised.value)


@pytest.mark.parametrize("value", ["--help", " ", "a\nb", "-rf"])
def test_a_value_that_a_program_would_misread_is_refused(value: str) -> None:
    with pytest.raises(UsageError):
        resolve_inputs(book(file=Input(kind="path", about="f")), {"file": value})


def test_a_plan_shows_everything_and_a_page_keeps_the_placeholders() -> None:
    runbook = book(changing("one"), file=Input(kind="path", about="a | file"))
    text = plan_page(plan(runbook, {"file": "some file"}))
    assert "$ touch 'some file'" in text
    assert "rollback: rm some file" in text
    assert text.endswith("nothing was run\n")
    page = runbook_page(runbook)
    assert "touch ${file}" in page
    assert "a \\| file" in page
    assert "--input file=…" in page
