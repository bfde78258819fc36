"""Tell from what a template rendered what it has a place for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from llamaops.schema.fact import Fact, Known, Source, Unknown, known

# Words of the fixed conversations, as the child has them.
SYSTEM, USER, ANSWER, AGAIN = "SYSTEMWORD", "USERWORD", "ANSWERWORD", "AGAINWORD"
THOUGHT, RESULT, CITY, TOOL = "THOUGHTWORD", "RESULTWORD", "CITYWORD", "toolword_weather"
ANSWER_TEXT = "ANSWERWORD good evening"
LONGEST_MARKER = 48
# The markers of the formats in use: <|im_end|>, </s>, [/INST], <end_of_turn> and their like.
_MARKER = r" ?(<[^<>\s]{1,46}>|\[[A-Za-z0-9_/~]{1,46}\]|\[e~\[)"


class Reading:
    """The lines that the child printed, and what follows from them."""

    def __init__(self, lines: Sequence[dict[str, Any]], source: Source) -> None:
        self._lines = [line for line in lines if "conversation" in line]
        self._source = source
        self.texts: dict[str, str] = {
            str(line["conversation"]): str(line.get("text", ""))
            for line in self._lines
            if line.get("outcome") == "rendered"
        }

    def outcomes(self) -> Iterable[dict[str, Any]]:
        """Yield how each conversation ended; one that was begun and has no end stopped the child."""
        ended = {line["conversation"]: line for line in self._lines if "outcome" in line}
        for line in self._lines:
            name = line["conversation"]
            if "outcome" in line:
                kept = {"outcome", "detail", "bytes", "sha256"} & line.keys()
                yield {"name": name} | {key: line[key] for key in kept}
            elif name not in ended:
                yield {
                    "name": name,
                    "outcome": "not_ended",
                    "detail": "it took all the time or memory there is",
                }

    def supports(self) -> dict[str, bool | None]:
        """Return what the template has a place for."""
        return {
            "system": self._has("system", SYSTEM, USER),
            "multi_turn": self._has("multi-turn", USER, ANSWER, AGAIN),
            "tools": self._has("tools", TOOL),
            "tool_calls": self._has("tool-call", CITY, RESULT),
            "parts": self._has("parts", USER),
            "thinking_switch": self._differ("thinking-on", "thinking-off"),
            "reasoning": self._has("reasoning", THOUGHT),
            "generation_prompt": self._differ("user", "user-no-prompt"),
            "any_order": self._has("two-users", USER, AGAIN),
        }

    def _has(self, name: str, *words: str) -> bool | None:
        text = self.texts.get(name)
        if text is None:
            outcomes = {line["conversation"]: line.get("outcome") for line in self._lines}
            return False if outcomes.get(name) in {"refused", "failed"} else None
        # Content as a list that was printed as such is no support: the engine's words are not the user's.
        return all(word in text for word in words) and not (name == "parts" and "'type'" in text)

    def _differ(self, one: str, two: str) -> bool | None:
        first, second = self.texts.get(one), self.texts.get(two)
        return None if first is None or second is None else first != second

    def turn_end(self) -> Fact[str]:
        """Return the marker right after an assistant's message."""
        text = self.texts.get("multi-turn", "")
        at = text.find(ANSWER_TEXT)
        if at < 0:
            detail = "the template renders no message of an assistant"
            return Unknown(why="unsupported", detail=detail, source=self._source)
        found = re.match(_MARKER, text[at + len(ANSWER_TEXT) :][: 2 * LONGEST_MARKER])
        if found is None:
            detail = "no marker follows a message of an assistant"
            return Unknown(why="absent", detail=detail, source=self._source)
        return known(found[1], self._source)

    def starts_with(self, bos: str) -> Fact[bool]:
        """Say whether the rendered text begins with the first token."""
        text = self.texts.get("user")
        if text is None or not bos:
            detail = "the template rendered nothing, or the model names no first token"
            return Unknown(why="unsupported", detail=detail, source=self._source)
        return Known(value=text.startswith(bos), source=self._source)
