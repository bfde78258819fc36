"""Is a generated text something that a reader can use? Pure, and shared by smoke and serve.

It names the known ways in which a broken back end or a liar produces something that is not an answer.
It does not judge whether an answer is right: a model of 135 million parameters rarely is.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

TextProblem = Literal["empty", "whitespace", "replacement", "control", "punctuation", "repeated", "echo"]

MEANING: dict[TextProblem, str] = {
    "empty": "no text at all",
    "whitespace": "white space only",
    "replacement": "replacement characters: the bytes were not valid text",
    "control": "control characters, or markup of special tokens only",
    "punctuation": "punctuation only",
    "repeated": "one token or short phrase repeated",
    "echo": "only the prompt given back",
}

REPLACEMENT = "\ufffd"
CUT_CHARACTER_BYTES = 3
"""A limit on tokens can cut a character of four bytes, which leaves up to three replacements at the end."""
FRAMING = frozenset(
    {
        "a", "an", "and", "answer", "as", "asked", "assistant", "be", "echo", "from", "here", "i",
        "input", "is", "it", "me", "my", "of", "output", "prompt", "query", "question", "received",
        "reply", "response", "result", "said", "say", "system", "text", "that", "the", "this", "to",
        "user", "was", "you", "your",
    }
)  # fmt: skip
"""Words that may stand around an echoed prompt without making it an answer."""


def judge_text(text: str, prompt: str) -> TextProblem | None:
    """Return what is wrong with a generated text, or None when it is usable.

    Args:
        text: The generated text, without the prompt where the program echoes it.
        prompt: What was asked.
    """
    if not text:
        return "empty"
    if not text.strip():
        return "whitespace"
    if _has_replacements(text):
        return "replacement"
    visible = _without_special_tokens(text)
    if _is_control(visible):
        return "control"
    if not any(unicodedata.category(character)[0] in "LNS" for character in visible):
        return "punctuation"
    if _is_repeated(visible):
        return "repeated"
    if _is_echo(visible, prompt):
        return "echo"
    return None


def _has_replacements(text: str) -> bool:
    """Whether it has more replacement characters than a cut at the end explains."""
    body = text.rstrip()
    end = len(body) - len(body.rstrip(REPLACEMENT))
    if end <= CUT_CHARACTER_BYTES:
        body = body.rstrip(REPLACEMENT)
        if not body.strip():
            return True
    count = body.count(REPLACEMENT)
    return count > 1 or count * 50 > len(body)


def _without_special_tokens(text: str) -> str:
    """Remove markup such as <|im_end|>, </s>, [INST] and <unk>, which is no text."""
    import re

    markup = r"<\|[^|<>\n]{0,40}\|>|</?(?:s|unk|pad|bos|eos|mask|think)>|<(?:start|end)_of_turn>"
    markup += r"|\[/?(?:INST|PAD|UNK|CLS|SEP|MASK)[^\]\n]{0,12}\]|\[unused\d{1,4}\]|<0x[0-9A-Fa-f]{2}>"
    return re.sub(markup, " ", text)


def _is_control(text: str) -> bool:
    """Whether nothing is left, or more than one character in twenty is a control or unassigned one."""
    if not text.strip():
        return True
    kinds = [unicodedata.category(character) for character in text if character not in "\n\r\t"]
    # Format characters (Cf) join emoji and order right-to-left text; they are no fault.
    bad = sum(1 for kind in kinds if kind in {"Cc", "Co", "Cn", "Cs"})
    return bad * 20 > len(kinds)


def _is_repeated(text: str) -> bool:
    """Whether the text, or most of it, is one short unit again and again."""
    words = _words(text)
    return (
        _has_period(words, longest=3, times=4, least=4)
        or _is_mostly_one(words)
        or _has_period(list("".join(text.split())), longest=6, times=5, least=8)
        or _ends_in_a_run("".join(text.split()))
        or _tail_repeats(words)
    )


def _words(text: str) -> list[str]:
    """Split into lower-case words without punctuation around them; a symbol alone stays a word."""
    stripped = [word.strip("\"'`.,;:!?()[]{}*_-#>") for word in text.casefold().split()]
    return [word for word in stripped if word]


def _has_period(units: list[str], *, longest: int, times: int, least: int) -> bool:
    """Whether the whole sequence repeats its first 1 to `longest` units, at least `times` times."""
    if len(units) < least:
        return False
    for period in range(1, longest + 1):
        if len(units) >= period * times and all(
            units[at] == units[at - period] for at in range(period, len(units))
        ):
            return True
    return False


def _is_mostly_one(words: list[str]) -> bool:
    """Whether one word makes up four fifths of at least eight."""
    if len(words) < 8:  # noqa: PLR2004 - too few to speak of a share
        return False
    return max(words.count(word) for word in set(words)) * 5 >= len(words) * 4


def _ends_in_a_run(text: str) -> bool:
    """Whether the last half or more is one character, sixteen times or more."""
    run = len(text) - len(text.rstrip(text[-1]))
    return run >= 16 and run * 2 >= len(text)  # noqa: PLR2004 - longer than a ruled line of a table


def _tail_repeats(words: list[str]) -> bool:
    """Whether the last three quarters are a unit of one to three words, eight times or more."""
    for period in (1, 2, 3):
        at = len(words) - 1
        while at >= period and words[at] == words[at - period]:
            at -= 1
        tail = len(words) - 1 - at + period
        if tail >= period * 8 and tail * 4 >= len(words) * 3:
            return True
    return False


def _is_echo(text: str, prompt: str) -> bool:
    """Whether nothing is left when the prompt, and words that only frame it, are taken away."""
    said, asked = _words(text), _words(prompt)
    if len(asked) < 2 or not said:  # noqa: PLR2004 - one word may well be its own answer
        return False
    if _starts_alike(said, asked) or said == asked[::-1]:
        return True
    left = _without(said, asked)
    return len(left) < len(said) and all(word in FRAMING for word in left)


def _starts_alike(said: list[str], asked: list[str]) -> bool:
    """Whether it is the prompt, cut anywhere after its first three words; the last word may be cut too."""
    if len(said) < min(3, len(asked)) or len(said) > len(asked):
        return False
    return said[:-1] == asked[: len(said) - 1] and asked[len(said) - 1].startswith(said[-1])


def _without(said: list[str], asked: list[str]) -> list[str]:
    """Remove each whole occurrence of the prompt's words, and a cut one at the end."""
    left: list[str] = []
    at = 0
    while at < len(said):
        if said[at : at + len(asked)] == asked:
            at += len(asked)
        elif at and len(said) - at >= 3 and _starts_alike(said[at:], asked):  # noqa: PLR2004 - as there
            at = len(said)
        else:
            left.append(said[at])
            at += 1
    return left
