"""A pattern that is tried only at its marks finds what it finds when it is tried everywhere."""

from __future__ import annotations

import random
import re

import pytest

from llamaops.record.marks import line_starts, lowered, matches, places

PIECES = ["ab", "a", "b", "x1", "\n", " ", "key=", "KEY=", "::", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"]


@pytest.mark.parametrize(
    ("pattern", "marks"),
    [(r"ab\d*", ["ab"]), (r"\bkey=\w+", ["key="]), (r"(?<!b)a+", ["a"]), (r"::|x\d", ["::", "x"])],
)
def test_marks_find_what_the_pattern_finds(pattern: str, marks: list[str]) -> None:
    dice = random.Random(pattern)
    for _ in range(500):
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 20)))
        found = [match.span() for match in matches(re.compile(pattern), text, places(text, *marks))]
        assert found == [match.span() for match in re.finditer(pattern, text)], text


def test_lines_begin_after_the_end_of_the_one_before() -> None:
    assert list(line_starts("ab\ncd\n\ne", [0, 4, 6, 7])) == [0, 3, 6, 7]


@pytest.mark.parametrize("text", ["ABC", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}A"])
def test_lower_case_keeps_every_place(text: str) -> None:
    assert len(lowered(text)) == len(text)
    assert lowered(text).endswith(text[-1].lower())
