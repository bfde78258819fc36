"""How many streams advanced side by side, by the times at which their text arrived? Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import median

FEWEST_PIECES = 6
LEAST_BIN_S = 0.01
"""Threads of ours see an arrival up to some milliseconds late; a finer grain would see chance."""
NEW_ARRIVAL_S = 0.0004
FEWEST_ARRIVALS = 5
ADMISSIONS = 3
ADMITTED_WITHIN_S = 0.05
"""A connection and a queue take their time too: a model that says all in a millisecond waits for nobody."""
GAPS_IN_A_BIN = 4
BINS_IN_A_ROW = 3
"""When one stream ends and the next begins both are in one bin; side by side they share several."""


def pace_of(times: Sequence[float]) -> float | None:
    """Return the mean seconds between two pieces of a stream, None where too few came."""
    if len(times) < FEWEST_PIECES:
        return None
    return (times[-1] - times[0]) / (len(times) - 1)


def bin_width(streams: Sequence[Sequence[float]]) -> float:
    """Return the grain at which streams are compared: four pieces of a usual stream.

    The mean counts too, because pieces may come in bursts; not alone, because a pause would stretch it.
    """
    paces = [pace for pace in map(pace_of, streams) if pace is not None]
    if not paces:
        return LEAST_BIN_S
    gaps = [
        median(later - earlier for earlier, later in itertools.pairwise(times))
        for times in streams
        if len(times) >= FEWEST_PIECES
    ]
    return max(GAPS_IN_A_BIN * median(gaps), 2 * median(paces), LEAST_BIN_S)


def side_by_side(streams: Sequence[Sequence[float]]) -> int:
    """Return the largest number of streams that all advanced in each of three bins of time in a row.

    Streams that only share their ends, or of which one was given a first piece and then had to wait, are
    not side by side: that is what a server looks like that answers one request after the other.
    """
    long = [(n, times) for n, times in enumerate(streams) if len(times) >= FEWEST_PIECES]
    if not long:
        return 0
    width = bin_width(streams)
    bins: dict[int, set[int]] = {}
    for number, times in long:
        for at in times:
            bins.setdefault(int(at / width), set()).add(number)
    # A pause of the whole server, in which nothing arrived, is no end.
    ordered = [bins[key] for key in sorted(bins)]
    rows = [ordered[at : at + BINS_IN_A_ROW] for at in range(len(ordered) - BINS_IN_A_ROW + 1)]
    return max((len(set.intersection(*row)) for row in rows), default=1)


def long_enough(sent: Sequence[float], streams: Sequence[Sequence[float]]) -> bool:
    """Say whether overlap would have shown.

    The first that ended has to have lasted for some bins; the last has to have been sent before that one was
    half done, and to have had time to be admitted.
    """
    long = [times for times in streams if len(times) >= FEWEST_PIECES]
    if not long or len(long) < len(streams):
        return False
    first = min(long, key=lambda times: times[-1])
    if first[-1] - first[0] < (BINS_IN_A_ROW + 1) * bin_width(streams):
        return False
    if max(sent) > first[0] + (first[-1] - first[0]) / 2:
        return False
    return could_have_joined(max(sent), first[-1], first[0] - min(sent))


def could_have_joined(sent_s: float, until_s: float, admission_s: float) -> bool:
    """Say whether a request that was sent had time to give text before another one ended.

    Args:
        sent_s: When it was sent.
        until_s: When the other one gave its last text.
        admission_s: What a request took to its first text where a slot was free for it.
    """
    return until_s - sent_s >= ADMISSIONS * admission_s + ADMITTED_WITHIN_S


def arrives_in_lumps(streams: Sequence[Sequence[float]]) -> bool:
    """Say whether a stream came in a few lumps, so that arrival times say nothing about generation."""
    return any(len(times) >= FEWEST_PIECES and _arrivals(times) < FEWEST_ARRIVALS for times in streams)


def _arrivals(times: Sequence[float]) -> int:
    pairs = itertools.pairwise(times)
    return 1 + sum(1 for earlier, later in pairs if later - earlier > NEW_ARRIVAL_S)
