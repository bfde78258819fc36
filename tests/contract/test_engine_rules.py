"""Each of the 36 rules about engines names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line.split(" | ")
    for line in (ROOT / "docs" / "engine-rules.md").read_text().splitlines()
    if re.match(r"\| \d+ \|", line)
]
DEFINED = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", file.read_text())
}


def test_every_rule_is_there() -> None:
    assert [int(row[0].strip("| ")) for row in ROWS] == list(range(1, 37))


def test_every_rule_names_tests_that_exist() -> None:
    for row in ROWS:
        named = re.findall(r"`(test_\w+)`", row[3])
        assert named, row[0]
        assert set(named) <= DEFINED, (row[0], set(named) - DEFINED)
