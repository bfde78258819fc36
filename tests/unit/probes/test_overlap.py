"""Arrival times tell side by side from one after the other, and neither from too little to see."""

from __future__ import annotations

import pytest

from llamaops.probes.overlap import arrives_in_lumps, could_have_joined, long_enough, side_by_side

PACE = 0.02


def stream(begin_s: float, pieces: int = 24, pace_s: float = PACE) -> list[float]:
    return [begin_s + n * pace_s for n in range(pieces)]


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_two_waves_on_some_slots(slots: int) -> None:
    first = [stream(0.001 * n) for n in range(slots)]
    second = [stream(0.5 + 0.001 * n) for n in range(slots)]
    assert side_by_side(first + second) == slots
    assert long_enough([0.0] * (2 * slots), first + second)


def test_one_after_the_other_shares_only_the_ends() -> None:
    streams = [stream(0.48 * n) for n in range(6)]
    assert side_by_side(streams) == 1
    assert long_enough([0.0] * 6, streams)


def test_a_first_piece_ahead_does_not_make_a_stream_run() -> None:
    streams = [[0.001 * n, *stream(0.05 + 0.48 * n)] for n in range(4)]
    assert side_by_side(streams) == 1


def test_a_last_piece_held_back_does_not_make_a_stream_run() -> None:
    streams = [[*stream(0.48 * n), 2.0] for n in range(4)]
    assert side_by_side(streams) == 1


def test_a_pause_of_the_whole_server_is_no_end() -> None:
    def paused(begin: float) -> list[float]:
        return stream(begin, 12) + stream(begin + 1.5, 12)

    assert side_by_side([paused(0.0), paused(0.004)]) == 2


def test_a_stall_of_one_stream_is_not_taken_for_serial() -> None:
    assert side_by_side([stream(0.0, 48), stream(0.1, 10)]) == 2


@pytest.mark.parametrize("streams", [[], [[0.1]], [[0.1, 0.2], [0.1, 0.2]]])
def test_too_few_pieces_show_nothing(streams: list[list[float]]) -> None:
    assert side_by_side(streams) == 0
    assert not long_enough([0.0], streams)


def test_answers_that_end_before_the_last_was_sent_are_too_short() -> None:
    quick = [stream(0.0, 24, 0.0001), stream(0.01, 24, 0.0001)]
    assert not long_enough([0.0, 0.01], quick)
    slow = [stream(0.0), stream(0.6)]
    assert not long_enough([0.0, 0.55], slow)


def test_lumps_are_seen() -> None:
    assert arrives_in_lumps([[0.1] * 12 + [0.4] * 12])
    assert not arrives_in_lumps([stream(0.0)])
    assert not arrives_in_lumps([[0.1, 0.1]])


def test_a_model_that_says_all_at_once_waits_for_nobody() -> None:
    quick = [[0.10 + 0.0001 * n for n in range(128)], [0.2 + 0.0001 * n for n in range(128)]]
    assert not long_enough([0.0, 0.1], quick)
    assert not could_have_joined(0.101, 0.112, 0.004)
    assert could_have_joined(0.1, 0.6, 0.1)
    assert not could_have_joined(0.1, 0.6, 0.2)
