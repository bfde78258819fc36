"""One thing changed in an otherwise honest answer, as a proxy or an old build may do; each has a name."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Callable
from typing import Any

Change = Callable[[Any], object]


def _set(*path: str | int, to: object) -> Change:
    """Return what sets one field, whose place is given by its keys and positions."""

    def change(value: Any) -> object:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to
        return None

    return change


def _double(*path: str | int) -> Change:
    def change(value: Any) -> object:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] *= 2
        return None

    return change


def _second_choice(value: Any) -> object:
    value["choices"].append({**value["choices"][0], "index": 1})
    return None


def _fresh_vectors(value: Any) -> object:
    for entry in value["data"]:
        entry["embedding"] = [secrets.randbelow(1000) / 1000 for _ in entry["embedding"]]
    return None


def _wide_vectors(value: Any) -> object:
    for entry in value["data"]:
        entry["embedding"] *= 2
    return None


def _same_index(value: Any) -> object:
    for entry in value["data"]:
        entry["index"] = 0
    return None


def _idle(value: Any) -> object:
    return [{**slot, "is_processing": False, "next_token": []} for slot in value]


def _copied(value: Any) -> object:
    return [value[0] for _slot in value]


def _larger(value: Any) -> object:
    return [{**slot, "n_ctx": slot["n_ctx"] * 2} for slot in value]


CHAT, WORDS = (
    "/v1/chat/completions",
    "The sea is calm today and a warm wind blows in from the west, they say.",
)
CHANGES: dict[str, tuple[str, Change]] = {
    "role": (CHAT, _set("choices", 0, "message", "role", to="user")),
    "two-choices": (CHAT, _second_choice),
    "filtered": (CHAT, _set("choices", 0, "finish_reason", to="content_filter")),
    "prompt-count": (CHAT, _double("usage", "prompt_tokens")),
    "idle-slots": ("/slots", _idle),
    "copied-slots": ("/slots", _copied),
    "larger-slots": ("/slots", _larger),
    "count-double": ("/v1/messages/count_tokens", _double("input_tokens")),
    "responses-failed": ("/v1/responses", _set("status", to="failed")),
    "responses-echo": ("/v1/responses", _set("output", 0, "content", 0, "text", to=WORDS)),
    "messages-echo": ("/v1/messages", _set("content", 0, "text", to=WORDS)),
    "completions-echo": ("/v1/completions", _set("choices", 0, "text", to=WORDS)),
    "completions-stop": ("/v1/completions", _set("choices", 0, "finish_reason", to="stop")),
    "completion-cut": ("/completion", _set("truncated", to=True)),
    "vectors-fresh": ("/v1/embeddings", _fresh_vectors),
    "vectors-wide": ("/v1/embeddings", _wide_vectors),
    "vectors-index": ("/v1/embeddings", _same_index),
}
"""The path whose answers change, and how: a function changes its argument, or returns another value."""


def twisted(twist: str, path: str, status: int, value: object) -> bytes:
    """Return the body of an answer, changed where the twist is about its path."""
    at, change = CHANGES.get(twist, ("", None))
    if change is not None and path.partition("?")[0] == at and status == 200:
        copied = copy.deepcopy(value)
        if twist == "prompt-count":
            copied["usage"]["total_tokens"] += copied["usage"]["prompt_tokens"]  # type: ignore[index]
        changed = change(copied)
        value = copied if changed is None else changed
    body = json.dumps(value).encode()
    if twist == "key-twice" and path == CHAT and status == 200:
        body = body.replace(b'"role": "assistant"', b'"content": "", "role": "assistant"')
    return body


def twisted_pieces(twist: str, number: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a piece of a stream becomes: changed, lost, or itself."""
    choices = item.get("choices") or []
    said = bool(choices and choices[0]["delta"].get("content"))
    item = copy.deepcopy(item)
    if twist == "pieces-lost" and said and number % 3 == 0:
        return []
    if twist == "early-end" and said and number == 6:
        item["choices"][0]["finish_reason"] = "stop"
    if twist == "other-choice" and said and number > 6:
        item["choices"][0]["index"] = 1
    if twist == "other-model" and number > 6:
        item["model"] = "another-model"
    if twist == "stop-at-limit" and choices and choices[0].get("finish_reason") == "length":
        item["choices"][0]["finish_reason"] = "stop"
    return [item]
