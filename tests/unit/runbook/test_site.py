from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.runbook.load import find_all, find_shipped
from llamaops.runbook.site import AREAS, pages

DOCS = Path(__file__).parents[3] / "docs" / "runbooks"
MADE = pages()


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_page_is_what_its_runbook_says(name: str) -> None:
    assert (DOCS / name).read_text() == MADE[name], "make generate"


def test_every_page_is_in_the_index_and_every_area_has_one() -> None:
    index = MADE["index.md"]
    for found in find_shipped():
        assert f"({found.id}.md)" in index
    for title in AREAS.values():
        assert f"## {title}\n\n- [" in index


def test_own_runbooks_work_like_shipped_ones_and_hide_them(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("x")
    (tmp_path / "bounded-smoke.yaml").write_text("y")
    found = {item.id: item for item in find_all({"LLAMAOPS_RUNBOOKS": str(tmp_path)})}
    assert found["mine"].own
    assert found["bounded-smoke"].path == str(tmp_path / "bounded-smoke.yaml")
    assert not found["preflight-host"].own
