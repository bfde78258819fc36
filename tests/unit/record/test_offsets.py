import re

from hypothesis import given
from hypothesis import strategies as st

from llamaops.record.offsets import rewrite


def test_a_span_leads_back_to_where_it_came_from() -> None:
    step = rewrite(re.compile(r"%41|-"), lambda match: "A" if match[0] == "%41" else "", "x%41-y-z")
    assert step.text == "xAyz"
    assert step.back(1, 2) == (1, 4)
    assert step.back(2, 3) == (5, 6)
    assert step.back(0, 4) == (0, 8)
    assert step.back_wide(2, 3) == (4, 7)
    assert step.joints() == [2, 2, 3]


@given(st.text("ab-"), st.data())
def test_dropping_keeps_every_kept_character_in_its_place(text: str, data: st.DataObject) -> None:
    step = rewrite(re.compile("-+"), lambda _match: "", text)
    assert step.text == text.replace("-", "")
    if step.text:
        at = data.draw(st.integers(0, len(step.text) - 1))
        start, end = step.back(at, at + 1)
        assert text[start:end] == step.text[at]
