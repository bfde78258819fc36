"""Server-Sent Events in pieces of any size."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from llamaops.system.sse import SseParser

STREAM = 'data: {"a": 1}\n\n: ping\n\nevent: x\ndata: é\ndata: two\n\n'
STREAM += 'error: {"m": 2}\n\nid: 7\nretry: 9\n\ndata: [DONE]\n\n'


def test_events_comments_names_and_the_old_error_field() -> None:
    parser = SseParser()
    events = parser.feed(STREAM.encode(), 1.5)
    assert [(event.name, event.data) for event in events] == [
        ("", '{"a": 1}'), ("x", "é\ntwo"), ("error", '{"m": 2}'), ("", "[DONE]"),
    ]  # fmt: skip
    assert parser.comments == 1
    assert not parser.pending
    assert all(event.at_s == 1.5 for event in events)


@given(st.lists(st.integers(min_value=1, max_value=len(STREAM.encode())), max_size=8), st.booleans())
def test_where_it_is_cut_changes_nothing(cuts: list[int], carriage_returns: bool) -> None:
    data = STREAM.replace("\n", "\r\n").encode() if carriage_returns else STREAM.encode()
    parser = SseParser()
    found = []
    edges = [0, *sorted(set(cuts)), len(data)]
    for start, end in pairwise(edges):
        found += parser.feed(data[start:end], 0.0)
    assert [event.data for event in found] == ['{"a": 1}', "é\ntwo", '{"m": 2}', "[DONE]"]


@given(st.binary(max_size=400))
def test_any_bytes_can_be_fed(data: bytes) -> None:
    SseParser().feed(data, 0.0)


def test_an_event_without_its_empty_line_is_pending() -> None:
    parser = SseParser()
    assert parser.feed(b"data: half", 0.0) == []
    assert parser.pending
