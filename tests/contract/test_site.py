"""The table of contents names pages that exist, and every runbook is in the chapter of its area."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from llamaops.runbook.site import AREAS, shipped

ROOT = Path(__file__).parents[2]
NAV = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]


def files(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for item in part:
            yield from files(item)
    elif isinstance(part, dict):
        for item in part.values():
            yield from files(item)


def test_every_page_of_the_site_exists() -> None:
    missing = [name for name in files(NAV) if not (ROOT / "docs" / name).is_file()]
    assert missing == []


def test_the_chapters_come_in_the_order_of_an_operator() -> None:
    titles = [next(iter(part)) for part in NAV]
    assert titles[1:7] == [*AREAS.values(), "Sources"]


def test_every_runbook_is_in_the_chapter_of_its_area() -> None:
    chapters = {title: set(files(part)) for entry in NAV for title, part in entry.items()}
    for book in shipped():
        assert f"runbooks/{book.id}.md" in chapters[AREAS[book.area]], book.id
