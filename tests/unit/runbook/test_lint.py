from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from llamaops.cli.app import COMMANDS
from llamaops.cli.runbook import accepts
from llamaops.runbook.document import Do
from llamaops.runbook.lint import WITH_RECORD, lint_file
from llamaops.runbook.load import find_all

BROKEN = sorted((Path(__file__).parents[2] / "data" / "runbooks_broken").glob("*.yaml"))


def test_there_are_broken_runbooks() -> None:
    assert len(BROKEN) > 30


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_a_broken_runbook_is_caught_at_its_place(file: Path) -> None:
    content = file.read_bytes()
    place, wanted = content.decode().splitlines()[0].removeprefix("# ").split(": ", 1)
    problems = [problem.shown("") for problem in lint_file(file.name, content, accepts)]
    assert any(shown.startswith(f":{place}: ") and wanted in shown for shown in problems), problems


@pytest.mark.parametrize("found", find_all({}), ids=lambda found: found.id)
def test_a_shipped_runbook_has_nothing_wrong(found: object) -> None:
    path = Path(getattr(found, "path", ""))
    assert lint_file(str(path), path.read_bytes(), accepts) == []


def test_every_error_is_reported_at_once() -> None:
    text = b"runbook: 1\nid: Bad Id\ntitel: x\nsteps: 7\nnot_covered: [{a: 1}]\n"
    shown = [problem.shown("x") for problem in lint_file("x.yaml", text)]
    assert len(shown) == 4, shown
    assert [line.split(":")[1] for line in shown] == ["1", "3", "4", "5"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", "is empty"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a: " + b"[" * 40 + b"]" * 40, "nested deeper"),
        (b"- x\n" * 6000, "has more than"),
        (b"x" * 300_000, "larger than"),
        (b"a: \x07", "is not YAML"),
        (b"? [a]\n: 1", "a key has to be plain text"),
        (b"<<: {a: 1}", "a key has to be plain text"),
    ],
)
def test_text_that_is_no_runbook(text: bytes, wanted: str) -> None:
    assert wanted in " ".join(problem.text for problem in lint_file("x.yaml", text))


def test_every_command_with_a_place_in_a_runbook_is_one_of_llamaops() -> None:
    for do in get_args(Do):
        assert do in {"command", "manual"} or do.split()[0] in COMMANDS
    for name in WITH_RECORD:
        assert name in get_args(Do)
        said = accepts((*name.split(), "--quiet", "--records", "x", "--format", "json", "x")) or ""
        assert "--" not in said.split("required")[0], said
