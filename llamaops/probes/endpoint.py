"""Ask one endpoint, and say what its answer means: every status is a fact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from llamaops.errors import ParseError
from llamaops.probes.reading import as_object
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import Exchange, HttpFailure, StreamExchange, decode_json

T = TypeVar("T")

EndpointState = Literal[
    "works",  # answered in the documented form
    "refuses",  # said no to our request, in the documented form
    "absent",  # this build has no such path
    "needs_key",  # wants a key that we did not send or that is wrong
    "switched_off",  # there, and not enabled
    "loading",  # the model is still being loaded
    "no_answer",  # nothing whole before the deadline
    "unreachable",  # nobody listens there
    "broken",  # an answer that contradicts what the endpoint promises
]

WHY: dict[EndpointState, Why] = {
    "refuses": "refused",
    "absent": "absent",
    "needs_key": "refused",
    "switched_off": "unsupported",
    "loading": "failed",
    "no_answer": "timed_out",
    "unreachable": "failed",
    "broken": "unparsed",
}
MESSAGE_CHARACTERS = 200
NO_LOGITS = "logits computation"
"""What builds since 2025 say, with status 500, where a model for vectors or ranks is asked for text."""


class EndpointAnswer(Shape, frozen=True, kw_only=True):
    """What one request to one endpoint came to."""

    probe: str
    """Id of the probe that asked."""
    request: str
    """Method and path, under the origin's own path."""
    key: Literal["ours", "none", "wrong"]
    """Which API key was sent: the one we were given, none, or one that cannot be right."""
    state: EndpointState
    """What the answer means."""
    status: int | None
    """HTTP status; none where no status line came."""
    detail: str
    """The answer in one sentence: the server's own error message, cut, where it gave one."""
    elapsed_s: float
    """Seconds from connecting to the last byte, by our clock."""
    evidence: tuple[str, ...] = ()
    """Ids of the kept answer."""


class Asked(Shape, frozen=True, kw_only=True):
    """An endpoint's answer and the body of a status 200, before it is parsed."""

    answer: EndpointAnswer
    """What the request came to."""
    body: bytes = b""
    """The body where the status was 200."""


QUICK = Bounds(wall_s=10.0, keep_bytes=64 * KIB, total_bytes=4 * MIB)
"""Bounds of a light endpoint; while a decode step runs, /slots waits for it."""


def key_sent(client: HttpClient, *, with_key: bool = True) -> Literal["ours", "none"]:
    """Say which key a request carries."""
    return "ours" if client.has_key and with_key else "none"


def ask(
    client: HttpClient,
    probe: str,
    method: str,
    path: str,
    *,
    bounds: Bounds = QUICK,
    body: object | None = None,
    with_key: bool = True,
    clean: Callable[[bytes], bytes] | None = None,
) -> Asked:
    """Make one exchange and say what its status means; the body is not parsed yet."""
    result = client.exchange(method, path, bounds=bounds, body=body, with_key=with_key, clean=clean)
    request, key = f"{method} {path}", key_sent(client, with_key=with_key)
    answer = answer_of(probe, request, key, result)
    whole = isinstance(result, Exchange) and answer.state == "works"
    return Asked(answer=answer, body=result.body if whole and isinstance(result, Exchange) else b"")


def answer_of(
    probe: str,
    request: str,
    key: Literal["ours", "none", "wrong"],
    result: Exchange | StreamExchange | HttpFailure,
) -> EndpointAnswer:
    """Translate the end of an exchange into what it means."""
    if isinstance(result, HttpFailure):
        state: EndpointState = "broken"
        if result.kind in {"timed_out", "refused", "dns"}:
            state = "no_answer" if result.kind == "timed_out" else "unreachable"
        detail = result.detail
    else:
        state, detail = meaning_of(result)
    return EndpointAnswer(
        probe=probe,
        request=request,
        key=key,
        state=state,
        status=result.status,
        detail=detail,
        elapsed_s=round(result.elapsed_s, 6),
        evidence=(result.evidence,) if result.evidence else (),
    )


def meaning_of(result: Exchange | StreamExchange) -> tuple[EndpointState, str]:
    """Say what a status and an error body mean, by the table of the builds from 2024 on."""
    status = result.status
    message, kind = error_of(result.body)
    said = f"HTTP {status}" + (f": {message}" if message else "")
    if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own classes
        encoding = result.header("content-encoding")
        if encoding not in {"", "identity"}:
            return "broken", f"HTTP {status}, compressed ({encoding[:20]}) though identity was asked for"
        return ("broken", f"an error inside a {said}") if message else ("works", said)
    if 300 <= status < 400:  # noqa: PLR2004 - as above
        return "broken", f"HTTP {status}, a redirect, which is not followed"
    if status == 503:  # noqa: PLR2004 - as above
        return ("loading" if "loading" in message.lower() else "refuses"), said
    if status == 500 and NO_LOGITS in message:  # noqa: PLR2004 - as above
        return "switched_off", said
    if status == 403 and kind == "feature_disabled":  # noqa: PLR2004 - as above
        return "switched_off", said
    return _STATES.get(status, "refuses" if status < 500 else "broken"), said  # noqa: PLR2004 - as above


_STATES: dict[int, EndpointState] = {
    401: "needs_key",
    403: "needs_key",
    404: "absent",
    405: "absent",
    501: "switched_off",
}


def error_of(body: bytes) -> tuple[str, str]:
    """Return message and type of an error body, or empty texts; forms of 2024 included."""
    try:
        value = as_object(decode_json(body), "the body")
    except ParseError:
        return "", ""
    error = value.get("error")
    if isinstance(error, dict):
        message, kind = error.get("message"), error.get("type")
        return _short(message or "an error without a message"), _short(kind)
    if isinstance(error, str):
        return _short(error), ""
    if value.get("status") == "loading model":
        return "loading model", ""
    return "", ""


def _short(value: object) -> str:
    return str(value)[:MESSAGE_CHARACTERS] if value is not None else ""


def parsed(asked: Asked, parse: Callable[[bytes], T]) -> tuple[EndpointAnswer, Fact[T]]:
    """Parse the body of an answer that works; one that cannot be parsed makes the endpoint broken."""
    answer = asked.answer
    source = source_of(answer)
    if answer.state != "works":
        return answer, Unknown(why=WHY[answer.state], detail=sentence(answer), source=source)
    try:
        return answer, Known(value=parse(asked.body), source=source)
    except ParseError as error:
        detail = f"HTTP {answer.status}, and {error}"
        answer = with_state(answer, "broken", detail)
        return answer, Unknown(why="unparsed", detail=sentence(answer), source=source)


def with_state(answer: EndpointAnswer, state: EndpointState, detail: str) -> EndpointAnswer:
    """Return the same answer with another meaning."""
    from msgspec.structs import replace

    return replace(answer, state=state, detail=detail)


def source_of(answer: EndpointAnswer) -> Source:
    """Return the source of a fact that an answer gave."""
    return Source(kind="http", name=answer.request, evidence=answer.evidence[0] if answer.evidence else None)


def sentence(answer: EndpointAnswer) -> str:
    """Say what an endpoint answered, and what an operator can do about it."""
    advice = {
        "needs_key": "; give the API key by LLAMAOPS_API_KEY or a file",
        "loading": "; the model is still being loaded, ask again later",
        "absent": "; this build has no such endpoint",
        "switched_off": "; the server was started without it",
    }.get(answer.state, "")
    said = answer.detail if answer.detail.startswith(answer.request) else f"{answer.request}: {answer.detail}"
    return f"{said}{advice}"
