"""What HTTP answers and requests say: status, error, text, thinking, counts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_BODY_BYTES = 1024 * 1024
LEAST_CHARS = 16
MOST_TOKEN = 6
"""Characters of a piece that can be one token; a longer one is a phrase."""
_STATUS = re.compile(
    r"^(?:(?P<method>GET|POST|PUT|DELETE|OPTIONS|HEAD) (?P<path>/\S*) (?:->|HTTP/[\d.]+\"?) ?"
    r"(?P<status>\d{3})\b|"
    r"HTTP/[\d.]+ (?P<raw>\d{3})\b.*|(?P<bare>[1-5]\d\d)(?= |$))(?P<rest>.*)$"
)


class Answer(msgspec.Struct):
    """One answer."""

    method: str = ""
    path: str = ""
    status: int = 0
    body: str = ""
    json: Any = None

    def data(self) -> dict[str, Any]:
        """Return the body when it is a JSON object."""
        return self.json if isinstance(self.json, dict) else {}


def answers(text: str) -> list[Answer]:
    """Return the answers in a text: a status line each, then its body."""
    found: list[Answer] = []
    for line in text[:MAX_BODY_BYTES].splitlines():
        status = _STATUS.match(line.strip())
        if status:
            code = status["status"] or status["raw"] or status["bare"] or "0"
            found.append(
                Answer(status["method"] or "", status["path"] or "", int(code), status["rest"].strip())
            )
            continue
        if not found:
            found.append(Answer())
        found[-1].body += f"{line}\n"
    for answer in found:
        answer.json = decode(answer.body)
    return found


def decode(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON value in a text, headers before it left out; None when there is none."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        return msgspec.json.decode(text[start:].strip().encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return _streamed(text)


def _streamed(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return what a stream of events amounts to: its texts joined, its last finish reason and counts."""
    content, thinking, merged, seen = "", "", {}, False
    for line in text.splitlines():
        if not line.startswith("data: {"):
            continue
        try:
            event = msgspec.json.decode(line[6:].encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            continue
        if not isinstance(event, dict):
            continue
        seen = True
        merged.update({key: event[key] for key in ("usage", "error", "timings") if key in event})
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {} if isinstance(choice, dict) else {}
            content += str(delta.get("content") or "")
            thinking += str(delta.get("reasoning_content") or "")
            if choice.get("finish_reason"):
                merged["finish_reason"] = choice["finish_reason"]
    if not seen:
        return None
    message = {"content": content, "reasoning_content": thinking}
    return {**merged, "choices": [{"message": message, "finish_reason": merged.get("finish_reason")}]}


def facts_of(found: list[Answer]) -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield facts of answers, as names and values; a later answer replaces an earlier one."""
    for answer in found:
        if answer.status:
            yield "http_status", answer.status
        if answer.path == "/health":
            yield "health_status", answer.status
            yield "health_ok", answer.status == 200  # noqa: PLR2004 - HTTP
        error = answer.data().get("error")
        if isinstance(error, dict):
            yield from _error_facts(error)
        yield from _text_facts(answer)


def _error_facts(error: dict[str, Any]) -> Iterator[tuple[str, str | int | float | bool]]:
    yield "error_message", str(error.get("message", ""))[:300]
    yield "error_type", str(error.get("type", ""))[:80]
    for key in ("n_prompt_tokens", "n_ctx"):
        if isinstance(error.get(key), int):
            yield f"error_{key}", error[key]


def _text_facts(answer: Answer) -> Iterator[tuple[str, str | int | float | bool]]:
    data = answer.data()
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    message = choice.get("message") if choice else None
    content: Any = None
    if isinstance(message, dict):
        content = message.get("content")
        thinking = message.get("reasoning_content") or message.get("reasoning") or message.get("thinking")
        yield "answer_thinking", bool(thinking)
        yield "answer_tool_calls", bool(message.get("tool_calls"))
        content = "" if content is None else content
    elif choice is not None and isinstance(choice.get("text"), str):
        content = choice["text"]
    elif isinstance(data.get("content"), str):
        content = data["content"]
    if isinstance(content, str):
        yield "answer_empty", not content.strip()
        yield "answer_one_token", one_token(content)
        yield "answer_repeats", repeats(content)
        yield "answer_replacement", content.count("\ufffd") > 3  # noqa: PLR2004 - one may be a cut character
        yield "answer_chars", len(content)
    if choice is not None and isinstance(choice.get("finish_reason"), str):
        yield "finish", choice["finish_reason"]
    for source, name in (
        ("completion_tokens", "answer_tokens"),
        ("prompt_tokens", "prompt_tokens"),
    ):
        usage = data.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get(source), int):
            yield name, usage[source]
    for source, name in (("tokens_predicted", "answer_tokens"), ("tokens_evaluated", "prompt_tokens")):
        if isinstance(data.get(source), int):
            yield name, data[source]
    if isinstance(data.get("truncated"), bool):
        yield "answer_truncated", data["truncated"]


def one_token(text: str) -> bool:
    """Say whether a text is one character, one short piece or one special token over and over."""
    stripped = "".join(text.split())
    period = _period(stripped, 24)
    return bool(period) and (period <= MOST_TOKEN or (stripped[0] == "<" and stripped[period - 1] == ">"))


def repeats(text: str) -> bool:
    """Say whether a text is one phrase over and over."""
    return bool(_period(" ".join(text.split()) + " ", 120))


def _period(text: str, most: int) -> int:
    """Return the length of the piece that a text repeats at least four times, or 0."""
    if len(text) < LEAST_CHARS:
        return 0
    return next(
        (
            size
            for size in range(1, min(most, len(text) // 4) + 1)
            if text == (text[:size] * (len(text) // size + 1))[: len(text)]
        ),
        0,
    )


def request_facts(text: str) -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield facts of a request body."""
    body = decode(text)
    if not isinstance(body, dict):
        return
    for key in ("max_tokens", "max_completion_tokens", "n_predict"):
        if isinstance(body.get(key), int):
            yield "asked_max_tokens", body[key]
    for key in ("stream", "cache_prompt"):
        if isinstance(body.get(key), bool):
            yield f"asked_{key}", body[key]
    yield "asked_tools", len(body["tools"]) if isinstance(body.get("tools"), list) else 0
    if isinstance(body.get("model"), str):
        yield "asked_model", body["model"][:120]
    messages = body.get("messages")
    if isinstance(messages, list):
        roles = [str(m.get("role")) for m in messages if isinstance(m, dict)]
        yield "asked_roles", " ".join(roles)[:200]
        yield "roles_alternate", all(a != b for a, b in itertools.pairwise(roles))
