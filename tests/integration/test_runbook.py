"""Runbooks with real children: bounds, evidence, redaction, interrupts; nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.liars import install
from tests.llamacpp.runbooks import ends

BOOK = """runbook: 1
id: book
title: Do what a test asks
inputs:
  python: {{kind: path, about: an interpreter}}
steps:
{steps}
not_covered: [all else]
"""


def step(name: str, code: str, more: str = "reads_only: true", wall_s: float = 20) -> str:
    return (
        f"  - id: {name}\n    title: Run {name}\n    do: command\n"
        f"    argv: ['${{python}}', -c, '{code}']\n    {more}\n    bounds: {{wall_s: {wall_s}}}\n"
    )


def written(tmp_path: Path, *steps: str) -> str:
    path = tmp_path / "book.yaml"
    path.write_text(BOOK.format(steps="".join(steps)))
    return str(path)


def words(path: str, *more: str) -> list[str]:
    return ["runbook", "run", path, "--input", f"python={sys.executable}", *more]


def test_output_is_evidence_and_a_secret_in_it_is_not(tmp_path: Path) -> None:
    path = written(tmp_path, step("say", 'import os; print("key is", os.environ["MY_API_KEY"])'))
    ran = command.run_json(words(path), tmp_path / "records", {"MY_API_KEY": "sk-planted-0123456789abcdef"})
    assert ran.status == 0, ran.err
    evidence = ran.record["facts"]["runbook"]["steps"][0]["evidence"]
    text = next(item["text"] for item in ran.record["evidence"] if item["id"] == evidence[0])
    assert text.startswith("key is ")
    assert "planted" not in "".join(
        file.read_text() for file in (tmp_path / "records").rglob("*") if file.is_file()
    )
    assert "planted" not in ran.out + ran.err


def test_an_expected_text_decides(tmp_path: Path) -> None:
    more = "reads_only: true\n    expect: {status: [3], output: [right], absent: [wrong]}"
    good = command.run_json(
        words(written(tmp_path, step("say", 'print("right"); raise SystemExit(3)', more))),
        tmp_path / "records",
    )
    assert good.status == 0, good.open_findings()
    bad = command.run_json(
        words(written(tmp_path, step("say", 'print("wrong")', more))), tmp_path / "records"
    )
    assert bad.status == 3
    assert bad.record["facts"]["runbook"]["steps"][0]["unmet"] == [
        "exit status 3", "the text 'right'", "no text 'wrong'",
    ]  # fmt: skip


def test_a_step_at_its_bound_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    code = 'import subprocess, time; subprocess.Popen(["sleep", "300"]); time.sleep(300)'
    path = written(tmp_path, step("wait", code, wall_s=1.5), step("after", "pass"))
    ran = command.run_json(words(path), tmp_path / "records")
    assert ran.status == 5
    assert ends(ran) == {"wait": "stopped_at_bound", "after": "not_run"}


def test_a_program_that_is_not_there_is_a_failed_step(tmp_path: Path) -> None:
    path = written(tmp_path, step("gone", "pass").replace("'${python}'", "/nonexistent/program, '${python}'"))
    ran = command.run_json(words(path), tmp_path / "records")
    assert (ran.status, ends(ran)) == (3, {"gone": "failed"})
    assert "No such file" in ran.record["facts"]["runbook"]["steps"][0]["ended"]


def test_nothing_is_run_of_a_runbook_with_a_mistake(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    path = written(tmp_path, step("say", f'open("{touched}", "w")'), step("say", "pass", more="title: x"))
    ran = command.run(words(path), tmp_path / "records")
    assert ran.status == 2
    assert "book.yaml:" in ran.err
    assert not touched.exists()
    assert not (tmp_path / "records").exists()


@pytest.mark.llamacpp
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_whatever_was_started_is_stopped(tmp_path: Path, embedded_model: str, number: signal.Signals) -> None:
    """A server in the background and a step that waits: after a signal neither is there any more."""
    folder = install(tmp_path / "bin", "llama-server").parent
    serve = (
        "  - id: serve\n    title: Serve\n    do: serve\n    background: true\n"
        f"    options: {{model: '{embedded_model}', bin-dir: '{folder}', level: basic}}\n"
    )
    waiting = tmp_path / "waiting"
    path = written(
        tmp_path, serve, step("wait", f'import time; open("{waiting}", "w"); time.sleep(60)', wall_s=60)
    )
    process = command.start(words(path), tmp_path / "records")
    end = time.monotonic() + 60
    while not waiting.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    command.wait_none_left()
    end = time.monotonic() + 15
    while time.monotonic() < end and _alive(str(tmp_path)):
        time.sleep(0.1)
    assert _alive(str(tmp_path)) == []
    shown = command.run(["record", "show", "Z-runbook-"], tmp_path / "records")
    assert shown.status == 0, shown.err


def _alive(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if text in line and "pytest" not in line.split(text)[0]:
                found.append(line)
    return found


def test_a_changed_runbook_is_not_resumed(tmp_path: Path) -> None:
    changing = "changes: {target: nothing, scope: none, rollback: none}"
    path = written(tmp_path, step("one", "pass"), step("two", "pass", changing))
    records = tmp_path / "records"
    declined = command.run_json(words(path), records)
    assert (declined.status, ends(declined)) == (4, {"one": "done", "two": "declined"})
    Path(path).write_text(Path(path).read_text() + "# changed\n")
    refused = command.run(words(path, "--resume", "latest"), records)
    assert refused.status == 2
    assert "was changed since" in refused.err


def test_a_resumed_run_takes_its_inputs_from_the_record(tmp_path: Path) -> None:
    changing = "changes: {target: nothing, scope: none, rollback: none}"
    path = written(tmp_path, step("one", "pass"), step("two", "pass", changing))
    declined = command.run_json(words(path), tmp_path / "records")
    asked = ["runbook", "run", path, "--resume", declined.record["id"], "--yes"]
    resumed = command.run_json(asked, tmp_path / "records")
    if resumed.status == 2:  # the path of this Python holds a home directory, which a record does not keep
        assert "give it again with --input python=…" in resumed.err
    else:
        assert (resumed.status, ends(resumed)) == (0, {"one": "earlier", "two": "done"})
