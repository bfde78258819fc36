"""What was searched once is not searched again, and what was learned since is still found in it."""

from __future__ import annotations

from llamaops.record.redact import Redactor, redact
from llamaops.record.secrets import Secrets
from llamaops.record.spans import Span

LEARNED = "q7Wm2ZxT9bLk4NvR8sYd"


def test_a_value_learned_later_is_found_in_what_was_clean_before() -> None:
    redactor = Redactor()
    assert redactor.clean({"line": f"loaded {LEARNED} twice"}) == {"line": f"loaded {LEARNED} twice"}
    redactor.clean({"line": f"API_KEY={LEARNED}"})
    assert LEARNED not in str(redactor.clean({"line": f"loaded {LEARNED} twice"}))


def test_what_had_to_go_goes_every_time_and_is_counted_in_its_place() -> None:
    redactor = Redactor(Secrets(values=("hunter2hunter2",)))
    record = {"a/b": [{"text": "the word is hunter2hunter2"}], "c": "hunter2hunter2", "removed": []}
    first, second = redact(record, redactor), redact(record, redactor)
    assert "hunter2" not in str(first.record)
    assert first.record == second.record
    assert [(item.place, item.count) for item in second.removed] == [("/a~1b/0/text", 1), ("/c", 1)]


def test_a_text_is_searched_once() -> None:
    class Counting(Redactor):
        searched = 0

        def spans(self, text: str) -> list[Span]:
            self.searched += len(text)
            return super().spans(text)

    redactor = Counting()
    record = {"help": "x" * 10_000}
    redactor.clean(record)
    once = redactor.searched
    redactor.clean(record)
    assert redactor.searched - once < 100
