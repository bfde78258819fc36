# ruff: noqa: E501 - lines of a log are kept whole
from __future__ import annotations

import pytest

from llamaops.facts.timings import parse_completion_timings, timing_row
from tests.unit.facts.load_logs import SOURCE, stored, why

BLOCK = """\
{tag}:        load time =      82.17 ms
{tag}: prompt eval time =      23.68 ms /     5 tokens (    4.74 ms per token,   211.16 tokens per second)
{tag}:        eval time =      49.24 ms /     5 runs   (    9.85 ms per token,   101.55 tokens per second)
{tag}:       total time =      74.97 ms /    10 tokens
"""


@pytest.mark.parametrize("tag", ["common_perf_print", "llama_perf_context_print", "llama_print_timings"])
def test_every_era_has_the_same_figures(tag: str) -> None:
    timings = parse_completion_timings(BLOCK.format(tag=tag), SOURCE)
    assert timings.printed_by.need() == tag
    assert (timings.prompt_tokens.need(), timings.generated_runs.need()) == (5, 5)
    assert timings.prompt_processing_per_s.need() == 211.16
    assert timings.token_generation_per_s.need() == 101.55
    assert timings.load_ms.need() == 82.17


@pytest.mark.parametrize("name", ["b11669-completion", "b11669-completion-jsonl"])
def test_real_output(name: str) -> None:
    timings = parse_completion_timings(stored(name), SOURCE)
    assert timings.generated_runs.need() == 5
    assert timings.total_ms.need() > 70


def test_the_last_block_counts() -> None:
    text = BLOCK.format(tag="common_perf_print").replace("/     5 runs", "/     9 runs")
    timings = parse_completion_timings(text + BLOCK.format(tag="common_perf_print"), SOURCE)
    assert timings.generated_runs.need() == 5


def test_nothing_generated_gives_no_rate() -> None:
    text = "llama_print_timings:        eval time =       0.00 ms /     0 runs   (    -nan ms per token,     inf tokens per second)\n"
    timings = parse_completion_timings(text, SOURCE)
    assert timings.generated_runs.need() == 0
    assert why(timings.token_generation_per_s) == "absent"


def test_generated_text_that_looks_like_timings_is_none() -> None:
    timings = parse_completion_timings("eval time = 1.00 ms / 5 runs\nhello\n", SOURCE)
    assert why(timings.generated_runs) == "absent"


def test_a_row_without_a_rate() -> None:
    row = timing_row("total time =     106.37 ms /     9 tokens")
    assert row is not None
    assert (row.what, row.number, row.per_s) == ("total", 9, None)
    assert timing_row("total time = x ms") is None
