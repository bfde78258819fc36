"""The tool that counts what damaged files come to: whole commands, bounded, and it would see a traceback."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fakes import gguf_files as g
from tests.figures import fuzz


def model(folder: Path) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(g.FakeGguf().to_bytes())
    return path


def test_damaged_files_end_with_a_finding_and_never_with_a_traceback(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = fuzz.run_files(24, 1, [model(tmp_path)], scratch)
    assert {outcome.status for outcome in found} <= {0, 3, 4}
    assert not any("Traceback" in outcome.errors for outcome in found)
    assert sum(outcome.status == 3 for outcome in found) > 6
    named = {word for outcome in found for word in outcome.words}
    assert len(named) > 5
    assert "no record" not in named
    assert (scratch / "model.gguf").read_bytes() == (tmp_path / "model.gguf").read_bytes()
    text = fuzz.report(found, fuzz.run_examples(20))
    assert "| traceback, or a defect reported as one | 0 |" in text
    assert "20 examples of hypothesis" in text


def test_what_escapes_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_words: list[str]) -> int:
        raise RecursionError("too deep")

    monkeypatch.setattr(fuzz, "main", broken)
    outcome = fuzz.inspect(model(tmp_path), tmp_path / "records")
    assert outcome.status == 99
    assert "Traceback RecursionError: too deep" in outcome.errors
    assert "| traceback, or a defect reported as one | 1 |" in fuzz.report([outcome], Counter())


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "main", lambda _words: len(bytearray(4 * fuzz.MEMORY_BYTES)))
    assert "MemoryError" in fuzz.inspect(model(tmp_path), tmp_path / "records").errors
