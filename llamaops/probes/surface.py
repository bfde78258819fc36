"""The whole surface: does each endpoint work, refuse as documented, or is it not there? And its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from llamaops.errors import ParseError
from llamaops.probes import surface_forms as forms
from llamaops.probes.chat import PATH as CHAT
from llamaops.probes.chat import SEED
from llamaops.probes.chat_stream import DONE
from llamaops.probes.completion_body import error_message
from llamaops.probes.embeddings import INPUTS, parse_embeddings
from llamaops.probes.embeddings import PATH as EMBEDDINGS
from llamaops.probes.endpoint import Asked, EndpointAnswer, EndpointState, answer_of, ask, key_sent
from llamaops.probes.reading import as_list, as_object
from llamaops.probes.registry import probe
from llamaops.probes.rerank import PATH as RERANK
from llamaops.probes.rerank import rerank_body
from llamaops.probes.selection import Selection
from llamaops.probes.server import ServerFacts, router_query
from llamaops.probes.slots import clean_slots
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted, not_selected
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import Exchange, StreamExchange, decode_json
from llamaops.system.sse import SseEvent

Meaning = Literal[
    "works",
    "refuses_as_documented",  # there, and switched off or not for this model; the flag says what enables it
    "absent",  # this build has no such endpoint
    "needs_key",
    "no_answer",
    "broken",
]
TOTAL_S = 120.0
OF_A_MODEL = frozenset({"/lora-adapters"})
"""Paths that a router has to be told the model for, which a GET does in its query."""
COUNTS_INPUT = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
"""Paths that say how many tokens the same messages have."""
NATIVE_BEFORE_2025 = frozenset({"/v1/completions"})
OTHER_SITE = "http://page-of-another-site.invalid"


class SurfaceRow(Shape, frozen=True, kw_only=True):
    """One endpoint."""

    request: str
    """Method and path."""
    meaning: Meaning
    """What its answer means."""
    status: int | None
    """HTTP status."""
    detail: str
    """The answer in one sentence."""
    enabled_by: str = ""
    """What enables it where it refuses."""
    evidence: tuple[str, ...] = ()
    """Ids of the kept answer."""


class ErrorRow(Shape, frozen=True, kw_only=True):
    """One request that is wrong or unusual, and what it came to."""

    name: str
    """What is wrong with it."""
    holds: bool | None
    """Whether the answer is a documented one; none where no answer came."""
    status: int | None
    """HTTP status."""
    detail: str
    """The answer in one sentence."""
    expected: str
    """The documented answers."""
    evidence: tuple[str, ...] = ()
    """Ids of the kept answer."""


class Exposure(Shape, frozen=True, kw_only=True):
    """What others could do with the server."""

    tools: EndpointState
    """GET /tools: built-in tools that read files or run commands; `works` is switched on."""
    proxy: EndpointState
    """GET /cors-proxy: fetching other addresses; `works` or `refuses` is switched on."""
    props_change: bool | None
    """Whether POST /props, which changes the server, is switched on."""
    other_sites: bool | None
    """Whether pages of other web sites may read its answers (CORS)."""
    slots_open: bool | None
    """Whether /slots answers without a key."""
    props_open: bool | None
    """Whether /props answers without a key."""
    slot_files: EndpointState | None = None
    """Saving a slot under a name that no file can have: `refuses` is switched on (--slot-save-path)."""
    loads_models: bool | None = None
    """Whether it is a router, which loads and unloads models for whoever asks."""


class SurfaceFacts(Shape, frozen=True, kw_only=True):
    """Every endpoint, the error contract, and what is exposed."""

    rows: Fact[tuple[SurfaceRow, ...]]
    """Each endpoint in a fixed order."""
    errors: Fact[tuple[ErrorRow, ...]]
    """Requests that are wrong or unusual."""
    exposure: Fact[Exposure]
    """What others could do."""


class _Spec(NamedTuple):
    """How one endpoint is asked, and what a whole answer is."""

    method: str
    path: str
    body: dict[str, object] | None
    form: Callable[[bytes], str]
    enabled_by: str = ""


_MESSAGES = [{"role": "user", "content": forms.WORDS + "."}]
_SAMPLING: dict[str, object] = {"temperature": 0, "seed": SEED, "cache_prompt": False}
_SPECS = (
    _Spec("GET", "/lora-adapters", None, forms.adapters),
    _Spec("POST", "/apply-template", {"messages": _MESSAGES}, forms.apply_template),
    _Spec(
        "POST", "/v1/completions",
        # Builds of early 2024 take this path for /completion and know no max_tokens: they would never end.
        {
            "prompt": forms.WORDS, "max_tokens": forms.LIMIT, "n_predict": forms.LIMIT, "ignore_eos": True,
            **_SAMPLING,
        },
        forms.text_completion,
    ),
    _Spec(
        "POST", "/completion",
        {"prompt": forms.WORDS, "n_predict": forms.LIMIT, "ignore_eos": True, **_SAMPLING}, forms.completion,
    ),
    _Spec(
        "POST", "/v1/responses", {"input": forms.WORDS, "max_output_tokens": forms.CHAT_LIMIT}, forms.response
    ),
    _Spec("POST", "/v1/messages", {"messages": _MESSAGES, "max_tokens": forms.CHAT_LIMIT}, forms.message),
    _Spec("POST", "/v1/messages/count_tokens", {"messages": _MESSAGES}, forms.counted),
    _Spec(
        "POST", EMBEDDINGS, {"input": list(INPUTS), "encoding_format": "float"}, forms.embedded,
        "--embeddings with a --pooling",
    ),
    _Spec("POST", RERANK, rerank_body(None), forms.reranked, "--reranking, and a model for it"),
    _Spec(
        "POST", "/infill",
        {"input_prefix": "one =", "input_suffix": "\n", "n_predict": forms.LIMIT, **_SAMPLING},
        forms.infilled, "a model with fill-in-the-middle tokens",
    ),
)  # fmt: skip
_SEEN = (
    ("chat", f"POST {CHAT}", ""), ("health", "GET /health", ""), ("models", "GET /v1/models", ""),
    ("props", "GET /props", ""), ("slots", "GET /slots", "--slots"), ("metrics", "GET /metrics", "--metrics"),
)  # fmt: skip
"""Endpoints that were asked already, with the probe that asked."""


class _Basic(NamedTuple):
    """The smallest request that this server is for, and the field that holds its answer."""

    path: str
    body: dict[str, object]
    field: str


_CHAT = _Basic(CHAT, {"messages": _MESSAGES, "max_tokens": 1, **_SAMPLING}, "choices")
_VECTORS = _Basic(EMBEDDINGS, {"input": forms.WORDS}, "data")
_RANKS = _Basic(RERANK, rerank_body(None), "results")


class _Work(NamedTuple):
    client: HttpClient
    model: str | None
    has_build: bool
    query: str
    end_s: float
    request_s: float

    def bounds(self) -> Bounds:
        left = max(1.0, min(self.request_s, self.end_s - self.client.now()))
        return Bounds(wall_s=left, keep_bytes=64 * KIB, total_bytes=4 * MIB)

    def ask(self, name: str, method: str, path: str, body: object | None) -> Asked:
        """Ask, with the model's name where the request is one for a model."""
        if isinstance(body, dict) and self.model is not None and "model" not in body:
            body = {**body, "model": self.model}
        if method == "GET" and path in OF_A_MODEL:
            path += self.query
        # A server that is not what it seems may answer there with other people's prompts.
        clean = clean_slots if path.startswith("/slots") else None
        return ask(self.client, name, method, path, bounds=self.bounds(), body=body, clean=clean)


def collect_surface(
    client: HttpClient,
    server: ServerFacts,
    selection: Selection,
    *,
    total_s: float = TOTAL_S,
    request_s: float = 60.0,
) -> SurfaceFacts:
    """Ask every endpoint once, and every kind of wrong request once.

    Units: seconds. Raises: nothing for what a server does.
    """
    name = server.request_model
    has_build = isinstance(server.props, Known) and bool(server.props.value.build_info)
    work = _Work(
        client,
        name.value if isinstance(name, Known) else None,
        has_build,
        router_query(server.props, name),
        client.now() + total_s,
        request_s,
    )
    rows: Fact[tuple[SurfaceRow, ...]] = not_selected(selection.why_not("surface"))
    errors: Fact[tuple[ErrorRow, ...]] = not_selected(selection.why_not("errors"))
    exposure: Fact[Exposure] = not_selected(selection.why_not("exposure"))
    chat = server.outcome("chat")
    if isinstance(chat, Known) and chat.value.state in {"no_answer", "unreachable"}:
        gap = not_attempted(f"one chat request did not come back: {chat.value.detail}")
        return SurfaceFacts(rows=gap, errors=gap, exposure=gap)
    if isinstance(name, Unknown) and isinstance(server.props, Known) and server.props.value.is_router:
        rows, errors = name if "surface" in selection else rows, name if "errors" in selection else errors
        if "exposure" in selection:
            exposure = Known(value=probe_exposure(work, server), source=_source("what others could do"))
        return SurfaceFacts(rows=rows, errors=errors, exposure=exposure)
    if "surface" in selection:
        rows = Known(value=probe_surface(work, server), source=_source("every endpoint"))
    if "errors" in selection:
        errors = Known(value=probe_errors(work, _basic(server)), source=_source("wrong requests"))
    if "exposure" in selection:
        exposure = Known(value=probe_exposure(work, server), source=_source("what others could do"))
    return SurfaceFacts(rows=rows, errors=errors, exposure=exposure)


def _basic(server: ServerFacts) -> _Basic:
    """Return the request that wrong ones are made from: chat, or what a server without chat is for."""
    if not server.has_no_chat:
        return _CHAT
    return _RANKS if isinstance(server.rerank, Known) else _VECTORS


def _source(name: str) -> Source:
    return Source(kind="http", name=name)


@probe(
    "surface",
    sends="one small request to each endpoint: completions, responses, messages, embeddings, rerank, infill, "
    "tokenize and detokenize, apply-template, lora-adapters",
    proves="which endpoints work, refuse as documented, or are absent in this build",
    does_not_prove="that an endpoint works for other requests than the one sent",
    tokens="at most 28 generated in all",
    seconds="a dozen exchanges, at most 120 in all",
    level="standard",
)
def probe_surface(work: _Work, server: ServerFacts) -> tuple[SurfaceRow, ...]:
    """Ask each endpoint once; what was asked before is taken from there."""
    rows = []
    for name, request, enabled_by in _SEEN:
        outcome = server.outcome(name)
        if isinstance(outcome, Known):
            rows.append(_row(request, outcome.value, "", enabled_by))
    rows += _round_trip(work)
    counted: dict[str, int] = {}
    for spec in _SPECS:
        asked = work.ask("surface", spec.method, spec.path, spec.body)
        ranks = spec.path == EMBEDDINGS and isinstance(server.rerank, Known)
        fault = _fault(asked, forms.pooled_to_ranks if ranks else spec.form)
        if not fault and not ranks and asked.answer.state == "works":
            fault = _contradiction(spec.path, asked, counted, server)
        request = f"{spec.method} {spec.path}"
        native = fault and spec.path in NATIVE_BEFORE_2025 and not work.has_build
        if native and not _fault(asked, forms.completion):
            rows.append(_as_before_2025(request, asked.answer))
        else:
            rows.append(_row(request, asked.answer, fault, spec.enabled_by))
    return tuple(rows)


def _contradiction(path: str, asked: Asked, counted: dict[str, int], server: ServerFacts) -> str:
    """Compare an answer of the right form with what other endpoints say."""
    if path in COUNTS_INPUT:
        return _counts_differ(asked, counted)
    name, models = server.request_model, server.models
    if path == EMBEDDINGS and isinstance(name, Known) and isinstance(models, Known):
        listed = models.value.named(name.value)
        width, seen = listed.embedding_length if listed else None, parse_embeddings(asked.body).dimension
        return f"vectors of {seen} numbers, /v1/models says {width}" if width not in {None, seen} else ""
    return ""


def _counts_differ(asked: Asked, counted: dict[str, int]) -> str:
    """Compare how many tokens the same messages have by each endpoint that counts them."""
    try:
        count = forms.input_tokens(asked.body)
    except ParseError:
        return ""
    if count is None:
        return ""
    before = next(iter(counted.items()), None)
    counted[asked.answer.request] = count
    if before is None or before[1] == count:
        return ""
    return f"it counts {count} input tokens, {before[0]} counts {before[1]} for the same messages"


def _as_before_2025(request: str, answer: EndpointAnswer) -> SurfaceRow:
    """Return the row of a path that builds before 2025, which name no build, take for /completion."""
    return SurfaceRow(
        request=request,
        meaning="absent",
        status=answer.status,
        detail="it answers as /completion does: the form of OpenAI's is absent in this build",
        evidence=answer.evidence,
    )


def _round_trip(work: _Work) -> list[SurfaceRow]:
    """Cut our text into tokens and put it together again."""
    asked = work.ask("surface", "POST", "/tokenize", {"content": forms.WORDS, "add_special": False})
    rows = [_row("POST /tokenize", asked.answer, _fault(asked, forms.tokens), "")]
    if rows[0].meaning == "works":
        ids = as_list(as_object(decode_json(asked.body), "the body")["tokens"], "tokens")
        back = work.ask("surface", "POST", "/detokenize", {"tokens": ids})
        rows.append(_row("POST /detokenize", back.answer, _fault(back, forms.detokenized), ""))
    return rows


def _fault(asked: Asked, form: Callable[[bytes], str]) -> str:
    if asked.answer.state != "works":
        return ""
    try:
        return form(asked.body)
    except ParseError as error:
        return str(error)


_MEANINGS: dict[EndpointState, Meaning] = {
    "works": "works",
    "switched_off": "refuses_as_documented",
    "absent": "absent",
    "needs_key": "needs_key",
    "loading": "no_answer",
    "no_answer": "no_answer",
    "unreachable": "broken",
    "refuses": "broken",
    "broken": "broken",
}


def _row(request: str, answer: EndpointAnswer, fault: str, enabled_by: str) -> SurfaceRow:
    meaning = "broken" if fault else _MEANINGS[answer.state]
    detail = f"HTTP {answer.status}, but {fault}" if fault else answer.detail
    # Refusals that are documented and come with another status than 501.
    documented = (
        "pooling type",
        "does not support",
        "not supported",
        "is not supported",
        "--embedding",
        "--jinja",
    )
    if answer.state in {"refuses", "broken"} and answer.status in {400, 500}:
        meaning = "refuses_as_documented" if any(w in detail.lower() for w in documented) else meaning
    return SurfaceRow(
        request=request,
        meaning=meaning,
        status=answer.status,
        detail=detail,
        enabled_by=enabled_by if meaning == "refuses_as_documented" else "",
        evidence=answer.evidence,
    )


@probe(
    "errors",
    sends="requests with a broken body, an unknown field, an unknown model, a huge max_tokens (a grammar "
    "ends it after two letters, and we leave after eight events), and one for an unknown path",
    proves="wrong requests are refused as documented, and unusual ones do no harm",
    does_not_prove="that every wrong request is",
    tokens="at most 8 in all",
    seconds="five exchanges, at most 60 each",
    level="standard",
)
def probe_errors(work: _Work, basic: _Basic) -> tuple[ErrorRow, ...]:
    """Send what is wrong, one thing at a time."""
    path, body, field = basic
    if work.model is not None:
        body = {**body, "model": work.model}
    strange: dict[str, object] = {**body, "llamaops_no_such": 1}
    other: dict[str, object] = {**body, "model": "llamaops-none"}
    wrong = (
        _Wrong("a body that is not JSON", path, b'{"messages": [', *_BAD_BODY, field),
        _Wrong("a path that no build has", "/llamaops-no-such-path", None, "HTTP 404", _ABSENT, field),
        _Wrong("a field that no build has", path, strange, *_UNUSUAL, field),
        _Wrong("a model that is not there", path, other, *_UNUSUAL, field),
    )
    rows = tuple(_error(work, item) for item in wrong)
    return (*rows, _huge_limit(work)) if basic is _CHAT else rows


class _Wrong(NamedTuple):
    """A request, and the statuses that are documented for it."""

    name: str
    path: str
    body: object | None
    expected: str
    good: frozenset[int]
    field: str


_ABSENT = frozenset({404})
_BAD_BODY = ("HTTP 400 (500 in builds before about 11000)", frozenset({400, 422, 500}))
_UNUSUAL = ("HTTP 200, or a refusal", frozenset({200, 400, 404, 422}))
ENOUGH_EVENTS = 8


def _error(work: _Work, wrong: _Wrong) -> ErrorRow:
    method = "GET" if wrong.body is None else "POST"
    result = work.client.exchange(method, wrong.path, bounds=work.bounds(), body=wrong.body)
    answer = answer_of("errors", f"{wrong.path} with {wrong.name}", key_sent(work.client), result)
    holds: bool | None = False if answer.state == "broken" else None
    detail = answer.detail
    if answer.status is not None and isinstance(result, Exchange):
        holds = answer.status in wrong.good
        if holds and work.has_build and not _has_form(result, wrong.field, refused=answer.status >= 400):  # noqa: PLR2004 - HTTP's classes
            holds, detail = False, f"HTTP {answer.status}, and no body of the documented form"
    return ErrorRow(
        name=wrong.name,
        holds=holds,
        status=answer.status,
        detail=detail,
        expected=wrong.expected,
        evidence=answer.evidence,
    )


def _huge_limit(work: _Work) -> ErrorRow:
    """Ask for far more than any context holds; a grammar ends it, and we leave after a few events."""
    body: dict[str, object] = {
        "messages": _MESSAGES, "max_tokens": 10**9, "grammar": 'root ::= "ok"', "stream": True, **_SAMPLING,
    }  # fmt: skip
    if work.model is not None:
        body["model"] = work.model
    seen: list[SseEvent] = []

    def enough(event: SseEvent) -> bool:
        seen.append(event)
        return event.data.strip() == DONE or len(seen) >= ENOUGH_EVENTS

    result = work.client.stream("POST", CHAT, bounds=work.bounds(), body=body, stop=enough)
    answer = answer_of("errors", f"{CHAT} with a huge max_tokens", key_sent(work.client), result)
    status = answer.status
    holds: bool | None = None if status is None else status in _UNUSUAL[1]
    if status == 200 and not seen:  # noqa: PLR2004 - HTTP's own number
        silent = answer.state == "no_answer" or (
            isinstance(result, StreamExchange) and result.end == "timed_out"
        )
        holds = None if silent else False
    return ErrorRow(
        name="a limit of a thousand million tokens",
        holds=holds,
        status=status,
        detail=answer.detail,
        expected=_UNUSUAL[0],
        evidence=answer.evidence,
    )


def _has_form(result: Exchange, field: str, *, refused: bool) -> bool:
    """Whether a refusal has an error object, and an answer what was asked for."""
    try:
        item = as_object(decode_json(result.body), "the body")
        return bool(error_message(item)) if refused else bool(as_list(item.get(field), field))
    except ParseError:
        return False


@probe(
    "exposure",
    sends="GET /tools and /cors-proxy, POST /slots/0?action=save under a name that no file can have, and GET "
    "/health as a browser would from a page of another site; of a server on this machine the kernel's "
    "tables, and with a key GET /props of its children, without that key",
    proves="which doors are open: built-in tools, a proxy, other web sites, slots and props without a key, "
    "files of slots, other addresses, children of a router that need no key",
    does_not_prove="that nothing else on the machine or in the network lets others in",
    seconds="four exchanges, at most 10 each; 3 for each child",
    level="standard",
)
def probe_exposure(work: _Work, server: ServerFacts) -> Exposure:
    """Ask what is open; nothing is changed and no tool is called."""
    tools = work.ask("exposure", "GET", "/tools", None).answer
    proxy = work.ask("exposure", "GET", "/cors-proxy", None).answer
    # Nothing can be written under this name, neither in the folder for it nor elsewhere.
    files = work.ask("exposure", "POST", "/slots/0?action=save", {"filename": "."}).answer
    page = work.client.exchange("GET", "/health", bounds=work.bounds(), with_key=False, web_origin=OTHER_SITE)
    allowed = page.header("access-control-allow-origin") if isinstance(page, Exchange) else None
    return Exposure(
        tools=tools.state,
        proxy=proxy.state,
        props_change=server.props.value.endpoint_props if isinstance(server.props, Known) else None,
        other_sites=None if allowed is None else allowed in {"*", OTHER_SITE},
        slots_open=_open(work, server, "slots"),
        props_open=_open(work, server, "props"),
        slot_files=files.state,
        loads_models=server.props.value.is_router if isinstance(server.props, Known) else None,
    )


def _open(work: _Work, server: ServerFacts, name: str) -> bool | None:
    """Whether a path answers without a key, from what was asked before."""
    if not work.client.has_key:
        outcome = server.outcome(name)
        return outcome.value.state == "works" if isinstance(outcome, Known) else None
    if not isinstance(server.without_key, Known):
        return None
    found = [a for a in server.without_key.value if a.request == f"GET /{name}" and a.key == "none"]
    return found[0].state == "works" if found else None
