"""Ask a running server everything, in order and within one budget of time: the fact group ServerFacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from llamaops.probes.auth import probe_auth
from llamaops.probes.chat import PROMPT, ChatAnswer, probe_chat, probe_chat_other
from llamaops.probes.chat_stream import StreamAnswer, probe_chat_stream
from llamaops.probes.embeddings import EmbeddingsAnswer, probe_embeddings
from llamaops.probes.endpoint import QUICK, EndpointAnswer
from llamaops.probes.health import HealthAnswer, probe_health
from llamaops.probes.metrics import MetricsAnswer, probe_metrics
from llamaops.probes.models import ListedModel, ModelsAnswer, probe_models
from llamaops.probes.props import PropsAnswer, probe_props
from llamaops.probes.rerank import RerankAnswer, probe_rerank
from llamaops.probes.selection import Selection, select
from llamaops.probes.slots import SlotsAnswer, probe_slots
from llamaops.probes.tokenize import probe_tokenize
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, not_attempted, not_selected
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

T = TypeVar("T")
A = TypeVar("A", ChatAnswer, StreamAnswer)
MAX_TOKENS = 48
"""Tokens asked of each of the two long answers: enough to see them arrive, cheap on a slow host."""
REQUEST_S = 120.0
TOTAL_S = 300.0


class Wanted(Protocol):
    """What the probes need to know of the run as it was asked for; `AskedFacts` has it."""

    @property
    def alias(self) -> str | None:
        """Return the one-time alias."""
        ...

    @property
    def embeddings(self) -> bool:
        """Say whether the server was started for embeddings."""
        ...

    @property
    def reranking(self) -> bool:
        """Say whether the server was started for ranking documents."""
        ...


class Preparation(NamedTuple):
    """What comes between the light questions and the first request that generates."""

    model: str | None = None
    """The model to ask for; else the alias, else the first listed one (of a router: loaded one)."""
    step: Callable[[Fact[ModelsAnswer], Fact[PropsAnswer]], Fact[ModelsAnswer]] | None = None
    """Called with models and properties; returns the models anew."""


class ServerFacts(Shape, frozen=True, kw_only=True):
    """What a running server answered to each question, and what each answer meant."""

    origin: str
    """Where the requests went."""
    endpoints: tuple[EndpointAnswer, ...]
    """Every request with our key (or without one where none is used), in order."""
    without_key: Fact[tuple[EndpointAnswer, ...]]
    """The same questions without the key and with a wrong one; only where a key is used."""
    request_model: Fact[str]
    """The model's name that our requests used, as the server reports it."""
    health: Fact[HealthAnswer]
    """Whether it says that it is ready."""
    models: Fact[ModelsAnswer]
    """The models it offers."""
    props: Fact[PropsAnswer]
    """Build, slots, context and model."""
    slots: Fact[SlotsAnswer]
    """Its slots, without anybody's text."""
    metrics: Fact[MetricsAnswer]
    """Its counters, before our requests."""
    metrics_after: Fact[MetricsAnswer]
    """Its counters, after our requests."""
    prompt_tokens_counted: Fact[int]
    """Tokens of our own prompt by /tokenize, without the chat template."""
    chat: Fact[ChatAnswer]
    """One whole answer."""
    chat_other: Fact[ChatAnswer]
    """One whole answer to another question, with a small limit on tokens."""
    chat_stream: Fact[StreamAnswer]
    """The first question again, streamed."""
    embeddings: Fact[EmbeddingsAnswer]
    """Vectors; only asked where there is no chat, or where the server was started for embeddings."""
    health_after: Fact[HealthAnswer]
    """Whether it still says that it is ready, after all requests."""
    rerank: Fact[RerankAnswer] | None = None
    """Ranks of two documents; only asked where there is no chat, or where the server was started for it."""
    model_props: Fact[PropsAnswer] | None = None
    """Of a router: slots, context and template of the model that our requests used."""

    @property
    def has_no_chat(self) -> bool:
        """Whether chat is not what this server is for: it has none, and gives vectors or ranks instead."""
        chat = self.outcome("chat")
        without = isinstance(chat, Known) and chat.value.state in {"absent", "switched_off"}
        return without and (isinstance(self.embeddings, Known) or isinstance(self.rerank, Known))

    @property
    def stream_hangs(self) -> bool:
        """Whether the one streamed request did not end before its deadline: further ones would not either."""
        stream = self.chat_stream
        if isinstance(stream, Known):
            return stream.value.ended == "timed_out"
        return stream.why == "timed_out"

    @property
    def props_of_model(self) -> Fact[PropsAnswer]:
        """Return the properties of the model that was asked: the server's own where it has one model."""
        return self.props if self.model_props is None else self.model_props

    def outcome(self, probe: str) -> Fact[EndpointAnswer]:
        """Return what a probe's request came to; unknown when it was not sent."""
        for answer in self.endpoints:
            if answer.probe == probe:
                evidence = answer.evidence[0] if answer.evidence else None
                source = Source(kind="http", name=answer.request, evidence=evidence)
                return Known(value=answer, source=source)
        fact = getattr(self, probe.replace("-", "_"), None)
        if isinstance(fact, Unknown) and fact.why == "not_selected":
            return fact
        return not_attempted(fact.detail if isinstance(fact, Unknown) else f"{probe} was not asked")


class _Session:
    """One run of all probes: the budget, and every answer so far."""

    def __init__(self, client: HttpClient, total_s: float, selection: Selection) -> None:
        self.client = client
        self.selection = selection
        self.answers: list[EndpointAnswer] = []
        self._end = client.now() + total_s
        self.stop: str | None = None
        """Why nothing more is sent."""

    def ask(
        self,
        probe: str,
        function: Callable[[Bounds], tuple[EndpointAnswer, Fact[T]]],
        *,
        wall_s: float = QUICK.wall_s,
    ) -> Fact[T]:
        """Run one probe, where it is selected, within what is left of the budget, and note its answer."""
        if probe not in self.selection:
            return not_selected(self.selection.why_not(probe))
        left = self._end - self.client.now()
        if left <= 0:
            self.stop = self.stop or "the time for all probes together was used up"
        if self.stop is not None:
            return not_attempted(self.stop)
        answer, fact = function(Bounds(wall_s=min(wall_s, left)))
        self.answers.append(answer)
        return fact

    def state(self, probe: str) -> str:
        """Return the state of a probe's answer, or the empty text."""
        return next((answer.state for answer in self.answers if answer.probe == probe), "")


def collect_server(
    client: HttpClient,
    asked: Wanted,
    *,
    max_tokens: int = MAX_TOKENS,
    request_s: float = REQUEST_S,
    quick_s: float = QUICK.wall_s,
    total_s: float = TOTAL_S,
    selection: Selection | None = None,
    prepare: Preparation = Preparation(),  # noqa: B008 - it cannot be changed
) -> ServerFacts:
    """Ask a running server every question in order; whatever it does is a fact.

    Args:
        client: For the server's origin, with the key where there is one.
        asked: The run as asked for; decides whether embeddings are asked.
        max_tokens: Bound on the tokens of each long answer.
        request_s: Bound on one generating request.
        quick_s: Bound on one light request.
        total_s: Bound on all requests together.
        selection: The probes to ask; all of level basic where none is given.
        prepare: The model to ask for, and what to do before anything is generated.

    Units: seconds and tokens. Raises: nothing for what a server does.
    """
    run = _Session(client, total_s, selection or select("basic"))
    health = run.ask("health", lambda b: probe_health(client, bounds=b), wall_s=quick_s)
    run.stop = _why_stop(run.answers[0]) if run.answers else run.stop
    models = run.ask("models", lambda b: probe_models(client, bounds=b), wall_s=quick_s)
    props = run.ask("props", lambda b: probe_props(client, bounds=b), wall_s=quick_s)
    if prepare.step is not None and run.stop is None:
        models = prepare.step(models, props)
    name = choose_model(models, props, asked, prepare.model)
    query = router_query(props, name)
    model_props = _props_of_model(run, query, quick_s)
    metrics = run.ask("metrics", lambda b: probe_metrics(client, bounds=b, query=query), wall_s=quick_s)
    if isinstance(name, Unknown) and isinstance(props, Known) and props.value.is_router:
        run.stop = run.stop or name.detail
    generated = _Generated(run, _name(name), asked, _Limits(max_tokens, request_s, quick_s))
    without_key = _ask_without_key(run, _name(name), quick_s)
    slots = run.ask("slots", lambda b: probe_slots(client, bounds=b, query=query), wall_s=quick_s)
    metrics_after = run.ask(
        "metrics", lambda b: _again(probe_metrics(client, bounds=b, query=query)), wall_s=quick_s
    )
    run.stop = None
    health_after = run.ask(
        "health", lambda b: probe_health(client, bounds=b, name="health-after"), wall_s=quick_s
    )
    return ServerFacts(
        origin=client.origin.url,
        endpoints=tuple(run.answers),
        without_key=without_key,
        request_model=name,
        health=health,
        models=models,
        props=props,
        slots=slots,
        metrics=metrics,
        metrics_after=metrics_after,
        prompt_tokens_counted=generated.prompt_tokens,
        chat=generated.chat,
        chat_other=generated.chat_other,
        chat_stream=generated.chat_stream,
        embeddings=generated.embeddings,
        rerank=generated.rerank,
        health_after=health_after,
        model_props=model_props,
    )


def _props_of_model(run: _Session, query: str, quick_s: float) -> Fact[PropsAnswer] | None:
    """Ask a router for the properties of the model that requests will use."""
    if not query:
        return None
    bounds = Bounds(wall_s=quick_s)
    answer, props = probe_props(run.client, bounds=bounds, query=query, name="props-model")
    run.answers.append(answer)
    return props


class _Limits(NamedTuple):
    max_tokens: int
    request_s: float
    quick_s: float


class _Generated:
    """The requests that make the server work, asked in order."""

    def __init__(
        self,
        run: _Session,
        model: str | None,
        asked: Wanted,
        limits: _Limits,
    ) -> None:
        client, tokens, wall_s = run.client, limits.max_tokens, limits.request_s
        self.prompt_tokens = run.ask(
            "tokenize", lambda b: probe_tokenize(client, PROMPT, bounds=b, model=model), wall_s=limits.quick_s
        )
        chat = run.ask(
            "chat", lambda b: probe_chat(client, model=model, max_tokens=tokens, bounds=b), wall_s=wall_s
        )
        self.chat = self._counted(run, chat, model, limits.quick_s)
        before, state = run.stop, run.state("chat")
        if state in {"no_answer", "unreachable", "absent", "switched_off"}:
            run.stop = before or f"the chat request before it came to: {state.replace('_', ' ')}"
        self.chat_other = run.ask(
            "chat-other", lambda b: probe_chat_other(client, model=model, bounds=b), wall_s=wall_s
        )
        self.chat_stream = run.ask(
            "chat-stream",
            lambda b: probe_chat_stream(client, model=model, max_tokens=tokens, bounds=b),
            wall_s=wall_s,
        )
        whole = chat.value.text if isinstance(chat, Known) else ""
        # The same text has the same tokens; another one is counted.
        if isinstance(self.chat_stream, Known) and self.chat_stream.value.text != whole:
            self.chat_stream = self._counted(run, self.chat_stream, model, limits.quick_s)
        run.stop = before
        self.rerank: Fact[RerankAnswer] | None = None
        without = state in {"absent", "switched_off"}
        if asked.reranking or without:
            self.rerank = run.ask(
                "rerank", lambda b: probe_rerank(client, model=model, bounds=b), wall_s=wall_s
            )
        self.embeddings: Fact[EmbeddingsAnswer] = not_attempted("the server is not one for embeddings")
        # A model that ranks gives vectors as well, and they say nothing.
        if asked.embeddings or (without and not isinstance(self.rerank, Known)):
            self.embeddings = run.ask(
                "embeddings", lambda b: probe_embeddings(client, model=model, bounds=b), wall_s=wall_s
            )

    @staticmethod
    def _counted(run: _Session, chat: Fact[A], model: str | None, quick_s: float) -> Fact[A]:
        """Add the tokens of the content by /tokenize, where it works."""
        from msgspec.structs import replace

        if not isinstance(chat, Known) or not chat.value.text or run.state("tokenize") != "works":
            return chat
        text = chat.value.text
        count = run.ask(
            "tokenize",
            lambda b: probe_tokenize(run.client, text, bounds=b, name="tokenize-answer", model=model),
            wall_s=quick_s,
        )
        if not isinstance(count, Known):
            return chat
        return Known(value=replace(chat.value, counted_tokens=count.value), source=chat.source)


def choose_model(
    models: Fact[ModelsAnswer], props: Fact[PropsAnswer], asked: Wanted, wanted: str | None
) -> Fact[str]:
    """Return the name to use in requests: the one wanted, the alias, or the first that is listed.

    A router's model that is not loaded is not chosen: asking would load it and may put another one away.
    """
    source = Source(kind="computed", name="the model's name in our requests")
    router = isinstance(props, Known) and props.value.is_router
    if wanted is not None and not (router and isinstance(models, Known)):
        return Known(value=wanted, source=source)
    if isinstance(models, Unknown):
        return Unknown(why=models.why, detail=f"no model's name is known: {models.detail}", source=source)
    listed = models.value.models
    if router:
        listed = tuple(model for model in listed if model.is_up and wanted in {None, *model.names})
        if not listed:
            detail = "a router without a loaded model; name the one to ask with --model, which loads it"
            if wanted is not None:
                detail = f"the router has not loaded {wanted}"
            return Unknown(why="not_attempted", detail=detail, source=source)
    chosen = _ours(listed, asked) or (listed[0] if listed else None)
    if chosen is None:
        return Unknown(why="absent", detail="the list of models is empty", source=source)
    return Known(value=chosen.id, source=source)


def _ours(listed: tuple[ListedModel, ...], asked: Wanted) -> ListedModel | None:
    return next((model for model in listed if asked.alias is not None and asked.alias in model.names), None)


def _name(name: Fact[str]) -> str | None:
    return name.value if isinstance(name, Known) else None


def router_query(props: Fact[PropsAnswer], name: Fact[str]) -> str:
    """Return the query that a router needs; it must not load a model because of a question."""
    if not (isinstance(props, Known) and props.value.is_router and isinstance(name, Known)):
        return ""
    from urllib.parse import quote

    return f"?model={quote(name.value, safe='')}&autoload=false"


def _why_stop(health: EndpointAnswer) -> str | None:
    """Return why nothing else is asked after an answer of /health that makes it pointless."""
    match health.state:
        case "unreachable" | "no_answer":
            return f"/health gave no answer: {health.detail}"
        case "loading":
            return "the model is still being loaded; ask again later"
        case _:
            return None


def _ask_without_key(run: _Session, model: str | None, quick_s: float) -> Fact[tuple[EndpointAnswer, ...]]:
    if "auth" not in run.selection:
        return not_selected(run.selection.why_not("auth"))
    if not run.client.has_key:
        return not_attempted("no API key is used")
    if run.stop is not None:
        return not_attempted(run.stop)
    answers = probe_auth(run.client, model=model, bounds=Bounds(wall_s=quick_s))
    source = Source(kind="http", name="requests without the key and with a wrong one")
    return Known(value=answers, source=source)


def _again(
    result: tuple[EndpointAnswer, Fact[MetricsAnswer]],
) -> tuple[EndpointAnswer, Fact[MetricsAnswer]]:
    """Give the second reading of the counters a name of its own."""
    from msgspec.structs import replace

    answer, fact = result
    return replace(answer, probe="metrics-after"), fact


def pace_of_chat(server: ServerFacts) -> float | None:
    """Return the seconds between two tokens of the first answer, by the server's clock."""
    timings = server.chat.value.timings if isinstance(server.chat, Known) else None
    if timings is None or not timings.generation_s or (timings.generated_tokens or 0) < 2:  # noqa: PLR2004 - a gap has two ends
        return None
    return timings.generation_s / ((timings.generated_tokens or 2) - 1)


def slot_context(server: ServerFacts) -> int | None:
    """Return the context of one slot, by /props or else /slots."""
    props = server.props_of_model
    if isinstance(props, Known) and props.value.slot_context_tokens:
        return props.value.slot_context_tokens
    if isinstance(server.slots, Known):
        return next((slot.context_tokens for slot in server.slots.value.slots), None)
    return None
