"""Text from outside cannot drive a terminal or break out of Markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaops.render.inert import cell, fence, inert, one_line


def test_escape_sequences_are_shown_not_sent() -> None:
    assert inert("\x1b]0;title\x07a\x9b2J") == "\\x1b]0;title\\x07a\\x9b2J"


def test_marks_that_reverse_text_are_shown() -> None:
    assert inert("a\u202eb") == "a\\u202eb"


def test_tabs_and_line_ends_stay() -> None:
    assert inert("a\tb\nc") == "a\tb\nc"


def test_a_cell_holds_one_line_and_no_markup() -> None:
    assert cell("a|b\n<script>`x`*") == "a\\|b \\<script\\>\\`x\\`\\*"


def test_one_line_is_cut_with_a_mark() -> None:
    assert one_line("word " * 50, 20) == "word word word word…"


def test_a_fence_is_longer_than_any_fence_inside() -> None:
    assert fence("a\n````\nb").splitlines()[0] == "`````text"


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    assert all(character in "\t\n" or character >= " " for character in inert(text))


@given(st.text())
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    lines = fence(text).split("\n")
    bar = lines[0].removesuffix("text")
    assert lines[-1] == bar
    assert all(bar not in line for line in lines[1:-1])
