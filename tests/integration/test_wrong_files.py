"""Every kind of wrong file is named for what it is, in one line, with a next step and an exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.figures.wrong_files import CASES, Make, every, named, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "inspect.md"


@pytest.mark.parametrize(("kind", "name", "make"), CASES, ids=[kind for kind, _, _ in CASES])
def test_a_wrong_file_is_named(kind: str, name: str, make: Make, tmp_path: Path) -> None:
    found = named(kind, name, make, tmp_path)
    assert found.status == 3
    assert "\n" not in found.summary
    assert len(found.remedy) > 5
    assert name.partition(".")[0] in found.summary


def test_the_page_has_what_is_said_now() -> None:
    assert table(every()) in PAGE.read_text(encoding="utf-8"), "python -m tests.figures.wrong_files"
