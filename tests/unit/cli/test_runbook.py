from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamaops.cli import app
from llamaops.errors import ExitStatus
from llamaops.runbook.load import find_shipped

MINE = """runbook: 1
id: mine
title: Look at what is mine
inputs:
  model: {kind: path, about: a file}
steps:
  - {id: look, title: Look, do: inspect, args: ["${model}"]}
not_covered: [all else]
"""


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "mine.yaml").write_text(MINE)
    monkeypatch.chdir(tmp_path)


def test_list_shows_shipped_and_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["runbook", "list", "--format", "json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)["runbooks"]}
    assert set(rows) == {found.id for found in find_shipped()} | {"mine"}
    assert rows["mine"]["own"]
    (Path("runbooks") / "broken.yaml").write_text("x")
    assert app.main(["runbook", "list"]) == 0
    out = capsys.readouterr().out
    assert "Look at what is mine (own)" in out
    assert "is broken: see `llamaops runbook lint`" in out


def test_show_and_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["runbook", "show", "mine"]) == 0
    assert "llamaops inspect ${model}" in capsys.readouterr().out
    assert app.main(["runbook", "plan", "mine", "--input", "model=/m.gguf", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["steps"][0]["command"] == ["llamaops", "inspect", "/m.gguf"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["plan", "mine"], "--input model=… is needed"),
        (["plan", "mien"], "did you mean mine?"),
        (["plan", "mine", "--input", "model"], "has no value"),
        (["plan", "mine", "--input", "model=a", "--input", "model=b"], "given twice"),
        (["run", "mine", "--input", "model=a", "--resume", "nothing"], "no record nothing"),
        (["run", "mine", "--input", "model=a", "--resume", "latest"], "no record of a runbook"),
        (["show", "./gone.yaml"], "cannot read"),
    ],
)
def test_a_mistake_is_one_clear_line(
    words: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["runbook", *words]) == ExitStatus.USAGE
    assert wanted in capsys.readouterr().err


def test_lint_takes_every_runbook_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["runbook", "lint"]) == 0
    assert "nothing wrong" in capsys.readouterr().out
    Path("runbooks/mine.yaml").write_text(MINE.replace("do: inspect", "do: inspect, argv: [x]"))
    assert app.main(["runbook", "lint", "mine"]) == ExitStatus.FAILED
    assert "runbooks/mine.yaml:7:" in capsys.readouterr().out
