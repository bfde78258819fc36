"""Texts of a real model of 135 million parameters are usable; what liars and broken back ends send is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaops.probes.usable_text import MEANING, judge_text

REAL = json.loads((Path(__file__).parents[2] / "data" / "real_generations.json").read_text(encoding="utf-8"))
PROMPT = "Write two short sentences about the sea."


@pytest.mark.parametrize("case", REAL, ids=lambda case: case["text"][:24])
def test_real_generations_of_smollm2_are_usable(case: dict[str, str]) -> None:
    assert judge_text(case["text"], case["prompt"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "4", "OK", "ok.", "Yes", "Red, Blue, Green", "👀🏰", "海は広いです。", "море", "2 + 2 = 4",
        "Hello caf\ufffd", "1. Red\n2. Blue\n3. Green", "```python\nprint(1)\n```", "x = 1\ty = 2",
        "Ha ha ha!", "👨‍👩‍👧 a family",
        "The sea is wide. The sea is deep.", "مرحبا بكم", "very very nice", "A\r\nB",
        f"{PROMPT} It is wide, and its colour changes all day.",
    ],
)  # fmt: skip
def test_short_and_foreign_answers_are_usable(text: str) -> None:
    assert judge_text(text, PROMPT) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        (" ", "whitespace"),
        ("\n\t \u3000", "whitespace"),
        ("\ufffd", "replacement"),
        ("\ufffd" * 40, "replacement"),
        ("Hel\ufffdo w\ufffdrld", "replacement"),
        ("\x00\x01\x02\x03", "control"),
        ("ab\x07\x07\x07", "control"),
        ("<|im_end|><|im_end|>", "control"),
        ("</s></s>", "control"),
        ("[PAD][PAD][PAD]", "control"),
        ("<unk> <unk>", "control"),
        ("<0x0A><0x0A>", "control"),
        ("\ue000\ue001", "control"),
        ("!!!!", "punctuation"),
        ("... - ...", "punctuation"),
        ("\u200b\u200b", "punctuation"),
        (" the" * 20, "repeated"),
        ("the The THE the, the.", "repeated"),
        ("GGGGGGGGGGGG", "repeated"),
        ("0" * 64, "repeated"),
        ("ab" * 20, "repeated"),
        ("of the " * 10, "repeated"),
        ("one two three " * 8, "repeated"),
        ("Hello" + "o" * 40, "repeated"),
        ("Well, " + "the " * 30, "repeated"),
        ("ok\n" * 12, "repeated"),
        ("the the a the the the the the the the the the", "repeated"),
        (PROMPT, "echo"),
        (PROMPT.upper(), "echo"),
        (f"  {PROMPT}\n\n{PROMPT}", "echo"),
        ("Write two short sentences ab", "echo"),
        (f"You said: {PROMPT}", "echo"),
        (f"user: {PROMPT}\nassistant:", "echo"),
        (f"<|im_start|>user\n{PROMPT}<|im_end|>", "echo"),
        (f"{PROMPT} Write two short", "echo"),
        ("sea. the about sentences short two Write", "echo"),
    ],
)
def test_what_is_no_answer_is_named(text: str, problem: str) -> None:
    assert judge_text(text, PROMPT) == problem
    assert problem in MEANING


def test_a_prompt_of_one_word_may_be_its_own_answer() -> None:
    assert judge_text("OK", "OK") is None


@given(st.text(max_size=300), st.text(max_size=60))
def test_it_judges_any_text(text: str, prompt: str) -> None:
    assert judge_text(text, prompt) in {None, *MEANING}


@given(st.sampled_from("abcxyzöß中🌊"), st.integers(min_value=8, max_value=200))
def test_one_character_again_and_again_is_never_usable(character: str, count: int) -> None:
    assert judge_text(character * count, PROMPT) == "repeated"
