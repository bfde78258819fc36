"""A router: does each model that may be asked answer as itself, and is one to be loaded there in time?

Asking for a model that is not loaded makes a router load it, and may make it put another one away. So only
models that are loaded, that sleep, or that the operator named are asked.
"""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

from llamaops.probes.chat import OTHER_PROMPT, PATH, ChatAnswer, parse_chat, request_body
from llamaops.probes.embeddings import INPUTS, parse_embeddings
from llamaops.probes.embeddings import PATH as EMBEDDINGS
from llamaops.probes.endpoint import QUICK, EndpointAnswer, ask, parsed
from llamaops.probes.metrics import probe_metrics
from llamaops.probes.models import ListedModel, ModelsAnswer, probe_models
from llamaops.probes.props import PropsAnswer
from llamaops.probes.registry import probe
from llamaops.probes.usable_text import TextProblem
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

LOAD_S = 120.0
SAYS_SO_S = 3.0
"""How long a router may take to list a model as loaded once a request to it was answered."""
TOTAL_S = 300.0
ANSWER_S = 120.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
TOKENS = 16
TEXT_CHARACTERS = 200
MOST_ASKED = 16
NO_LOAD = "?autoload=false"
NOT_LISTED = "it was named, and the router does not list it"
COUNTER = "tokens_predicted_total"
NO_CHAT = frozenset({"absent", "switched_off", "refuses"})


class RouterModel(Shape, frozen=True, kw_only=True):
    """One model that a router lists, and what became of a request to it."""

    name: str
    """The name to ask it by."""
    state_before: str | None
    """Its state in the list before anything was asked: unloaded, loading, loaded, sleeping and so on."""
    state_after: str | None
    """The same right after its answer."""
    why_not: str = ""
    """Why it was not asked; empty where it was."""
    load: EndpointAnswer | None = None
    """The request that made the router load it; none where it was loaded."""
    load_s: float | None = None
    """Seconds until it was listed as loaded; none where it was loaded before, or did not get there."""
    failed_to_load: bool = False
    """Whether the list says that loading it failed."""
    asked_by: Literal["chat", "embeddings"] | None = None
    """What it was asked: chat, or vectors where it has no chat."""
    answer: EndpointAnswer | None = None
    """What the representative request came to."""
    answered_as: str | None = None
    """The model's name in the answer."""
    problem: TextProblem | None = None
    """What is wrong with the text; none if usable, or where vectors came."""
    text: str = ""
    """The beginning of the text; kept because the prompt is our own."""
    completion_tokens: int | None = None
    """Tokens generated, by usage."""
    counted_tokens: int | None = None
    """By how much this model's own counter of generated tokens grew; none without /metrics."""
    parameter_count: int | None = None
    """Number of parameters, by the list."""
    vocabulary_size: int | None = None
    """Tokens in the vocabulary, by the list."""


class RouterFacts(Shape, frozen=True, kw_only=True):
    """The models behind a router."""

    autoload: bool | None
    """Whether a request for a model that is not loaded loads it."""
    max_loaded: int | None
    """How many models it keeps loaded at once; 0 is no limit."""
    named: tuple[str, ...]
    """Models that the operator named, which may be loaded."""
    models: Fact[tuple[RouterModel, ...]]
    """Each model of the list."""
    put_away: tuple[str, ...] = ()
    """Models that were loaded, before or meanwhile, and were not at the end."""


class Load(NamedTuple):
    """How loading a model went."""

    answer: EndpointAnswer
    load_s: float | None


class Router:
    """A router during one verification: what it listed at first, and what was loaded since."""

    def __init__(
        self,
        client: HttpClient,
        named: tuple[str, ...],
        *,
        load_s: float = LOAD_S,
        answer_s: float = ANSWER_S,
        total_s: float = TOTAL_S,
    ) -> None:
        self.client = client
        self.named = named
        self.props: PropsAnswer | None = None
        self.before: tuple[ListedModel, ...] = ()
        self.loads: dict[str, Load] = {}
        self._load_s, self._answer_s, self._total_s = load_s, answer_s, total_s
        self._end = 0.0

    @property
    def there(self) -> bool:
        """Whether the server is a router."""
        return self.props is not None

    def meet(self, models: Fact[ModelsAnswer], props: Fact[PropsAnswer]) -> Fact[ModelsAnswer]:
        """Note what a router lists, load the model that was named first, and return the list of then."""
        if not (isinstance(props, Known) and props.value.is_router and isinstance(models, Known)):
            return models
        self.props, self.before = props.value, models.value.models
        self._end = self.client.now() + self._total_s
        first = models.value.named(self.named[0]) if self.named else None
        if first is None or first.is_up:
            return models
        self.load(first.id)
        return probe_models(self.client, bounds=QUICK)[1]

    def load(self, name: str) -> Load:
        """Make the router load a model, by a request for it or, where that does not load, by its own call."""
        began = self.client.now()
        bounds = self.bounds(self._load_s)
        if self.props is not None and self.props.models_autoload is False:
            body: dict[str, object] = {"model": name}
            answer = ask(self.client, "router", "POST", "/models/load", bounds=bounds, body=body).answer
            patience_s = bounds.wall_s
        else:
            body = request_body(OTHER_PROMPT, max_tokens=1, model=name)
            answer = ask(self.client, "router", "POST", PATH, bounds=bounds, body=body).answer
            patience_s = (self.client.now() - began) + SAYS_SO_S
        up = self._wait_up(name, began + patience_s)
        done = Load(answer, round(self.client.now() - began, 3) if up else None)
        self.loads[name] = done
        return done

    def _wait_up(self, name: str, end_s: float) -> bool:
        """Read the list until the model is loaded, has failed, or the time is over."""
        pause_s = FIRST_PAUSE_S
        while True:
            seen = self.listed(name)
            if seen is not None and seen.is_up:
                return True
            if (seen is not None and seen.failed) or self.client.now() >= end_s:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def listed(self, name: str) -> ListedModel | None:
        """Return a model as the list has it now."""
        models = probe_models(self.client.without_evidence(), bounds=QUICK)[1]
        return models.value.named(name) if isinstance(models, Known) else None

    def up(self) -> frozenset[str]:
        """Return the models that are loaded or sleep now."""
        models = probe_models(self.client.without_evidence(), bounds=QUICK)[1]
        found = models.value.models if isinstance(models, Known) else ()
        return frozenset(model.id for model in found if model.is_up)

    def bounds(self, wall_s: float | None = None) -> Bounds:
        """Return the bounds of one request within what is left of all the time."""
        left = max(1.0, min(wall_s or self._answer_s, self._end - self.client.now()))
        return Bounds(wall_s=left, keep_bytes=64 * KIB, total_bytes=2 * MIB)

    @property
    def time_is_up(self) -> bool:
        """Whether all the time is used."""
        return self.client.now() >= self._end


@probe(
    "router",
    sends=f"of a router, POST {PATH} to each model that is loaded, sleeps or was named with --model (16 at "
    "most); one that was named and is not loaded is loaded; /v1/models before and after",
    proves="each of them answers as itself, and one that had to be loaded was loaded in time and says so",
    does_not_prove="that models that are not loaded can be, unless they were named",
    tokens="at most 16 for each model, and 1 for each that is loaded",
    seconds="one answer for each model, and at most 120 for loading one; at most 300 in all",
    level="standard",
)
def probe_router(router: Router) -> RouterFacts:
    """Ask each model that may be asked."""
    props = router.props or PropsAnswer()
    asked = 0
    found = []
    # Loading one may put another away, so those that are loaded by now come first.
    up = router.up()
    for model in sorted(router.before, key=lambda model: model.id not in up):
        why_not = _why_not(router, model, asked)
        if why_not:
            found.append(_not_asked(model, why_not))
            continue
        asked += 1
        found.append(_asked(router, model))
    found += [_not_asked(ListedModel(id=name), NOT_LISTED) for name in _strange(router)]
    before = {model.id for model in router.before if model.is_up} | {m.name for m in found if m.load_s}
    return RouterFacts(
        autoload=props.models_autoload,
        max_loaded=props.max_instances,
        named=router.named,
        models=Known(value=tuple(found), source=Source(kind="http", name="POST to each model of the router")),
        put_away=tuple(sorted(before - router.up())),
    )


def _strange(router: Router) -> list[str]:
    """Return names of the operator's that the router does not list."""
    return [name for name in router.named if not any(name in model.names for model in router.before)]


def not_asked(router: Router, gap: Unknown) -> RouterFacts:
    """Return the facts of a router whose models were not asked."""
    props = router.props or PropsAnswer()
    return RouterFacts(
        autoload=props.models_autoload, max_loaded=props.max_instances, named=router.named, models=gap
    )


def _why_not(router: Router, model: ListedModel, asked: int) -> str:
    named = any(name in model.names for name in router.named)
    if not named and not model.is_up:
        state = model.state or "of no known state"
        return f"it is {state}; asking would load it: name it with --model"
    if router.named and not named:
        return "others were named"
    if asked >= MOST_ASKED:
        return f"more than {MOST_ASKED} are not asked"
    return "the time for all models together was used up" if router.time_is_up else ""


def _not_asked(model: ListedModel, why_not: str) -> RouterModel:
    return RouterModel(name=model.id, state_before=model.state, state_after=None, why_not=why_not)


def _asked(router: Router, model: ListedModel) -> RouterModel:
    now = router.listed(model.id)
    failed = router.loads.get(model.id)
    if not (now is not None and now.is_up) and (failed is None or failed.load_s is not None):
        router.load(model.id)
        now = router.listed(model.id)
    load = router.loads.get(model.id)
    base = RouterModel(
        name=model.id,
        state_before=model.state,
        state_after=now.state if now else None,
        load=load.answer if load else None,
        load_s=load.load_s if load else None,
        failed_to_load=bool(now and now.failed and not now.is_up),
        parameter_count=now.parameter_count if now else None,
        vocabulary_size=now.vocabulary_size if now else None,
    )
    if load is not None and load.load_s is None and load.answer.state != "works":
        return base
    return _answered(router, base)


def _answered(router: Router, base: RouterModel) -> RouterModel:
    from msgspec.structs import replace

    # Its counters would wake a model that sleeps before our request does.
    before = None if base.state_after == "sleeping" else _counter(router, base.name)
    body = request_body(OTHER_PROMPT, max_tokens=TOKENS, model=base.name)
    asked = ask(router.client, "router", "POST", PATH + NO_LOAD, bounds=router.bounds(), body=body)
    answer, chat = parsed(asked, lambda data: parse_chat(data, prompt=OTHER_PROMPT, max_tokens=TOKENS))
    after = None if before is None else _counter(router, base.name)
    now = router.listed(base.name)
    base = replace(base, state_after=now.state if now else None, answer=answer, asked_by="chat")
    if isinstance(chat, Known):
        grown = None if before is None or after is None else int(after - before)
        return _with_chat(base, chat.value, grown)
    return _vectors(router, base) if answer.state in NO_CHAT else base


def _with_chat(base: RouterModel, chat: ChatAnswer, counted: int | None) -> RouterModel:
    from msgspec.structs import replace

    return replace(
        base,
        answered_as=chat.model,
        problem=chat.problem,
        text=chat.text[:TEXT_CHARACTERS],
        completion_tokens=chat.usage.completion_tokens if chat.usage else None,
        counted_tokens=counted,
    )


def _vectors(router: Router, base: RouterModel) -> RouterModel:
    """Ask a model without chat for vectors; where it has none either, its first answer stays."""
    from msgspec.structs import replace

    body: dict[str, object] = {"input": list(INPUTS), "encoding_format": "float", "model": base.name}
    asked = ask(router.client, "router", "POST", EMBEDDINGS + NO_LOAD, bounds=router.bounds(), body=body)
    answer, vectors = parsed(asked, parse_embeddings)
    if not isinstance(vectors, Known):
        return base
    now = router.listed(base.name)
    return replace(base, state_after=now.state if now else None, answer=answer, asked_by="embeddings")


def _counter(router: Router, name: str) -> float | None:
    """Return how many tokens a model has generated, by its own counter; it is not loaded for that."""
    from urllib.parse import quote

    query = f"?model={quote(name, safe='')}&autoload=false"
    metrics = probe_metrics(router.client.without_evidence(), bounds=QUICK, query=query)[1]
    return metrics.value.counters.get(COUNTER) if isinstance(metrics, Known) else None
