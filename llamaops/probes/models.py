"""GET /v1/models: which models does the server offer, and what does it say about them?"""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import Json, as_list, as_object, flag, text, texts, whole
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json

MOST_MODELS = 1000


class ListedModel(Shape, frozen=True, kw_only=True):
    """One model of the list; figures are none where this build does not give them."""

    id: str
    """The name that a request has to use."""
    aliases: tuple[str, ...] = ()
    """Further names."""
    state: str | None = None
    """In router mode: unloaded, loading, loaded, sleeping and so on."""
    failed: bool | None = None
    """In router mode: whether the last attempt to load it failed."""
    vocabulary_size: int | None = None
    """Tokens in the vocabulary."""
    trained_context_tokens: int | None = None
    """Context that the model was trained for, in tokens."""
    slot_context_tokens: int | None = None
    """Context of one slot, in tokens."""
    embedding_length: int | None = None
    """Width of the model."""
    parameter_count: int | None = None
    """Number of parameters."""
    tensor_bytes: int | None = None
    """Size of the tensors in bytes; not the size of the file."""
    file_type: str | None = None
    """The engine's name of the quantization."""

    @property
    def is_up(self) -> bool:
        """Whether a router can answer for it without loading it first; one that sleeps wakes by itself."""
        return self.state in {"loaded", "sleeping"}

    @property
    def names(self) -> frozenset[str]:
        """Return every name the model answers to."""
        return frozenset((self.id, *self.aliases))


class ModelsAnswer(Shape, frozen=True, kw_only=True):
    """The list of models."""

    models: tuple[ListedModel, ...]
    """In the server's order."""

    def named(self, name: str) -> ListedModel | None:
        """Return the model with a name or alias."""
        return next((model for model in self.models if name in model.names), None)


def parse_models(body: bytes) -> ModelsAnswer:
    """Read the list in the OpenAI form, or the Ollama-like list where a build has only that.

    Raises: ParseError.
    """
    item = as_object(decode_json(body), "the body")
    if item.get("data") is None and item.get("models") is None:
        raise ParseError("the body has no list of models")
    if item.get("data") is not None:
        entries = as_list(item["data"], "data")
        return ModelsAnswer(models=tuple(_model(as_object(e, "a model")) for e in entries[:MOST_MODELS]))
    entries = as_list(item["models"], "models")
    names = [_name(as_object(entry, "a model")) for entry in entries[:MOST_MODELS]]
    return ModelsAnswer(models=tuple(ListedModel(id=name) for name in names))


def _name(item: Json) -> str:
    name = text(item, "model") or text(item, "name")
    if not name:
        raise ParseError("a model has no name")
    return name


def _model(item: Json) -> ListedModel:
    name = text(item, "id")
    if not name:
        raise ParseError("a model has no id")
    meta = as_object(item.get("meta") or {}, "meta")
    state = as_object(item.get("status") or {}, "status")
    return ListedModel(
        id=name,
        aliases=texts(item, "aliases"),
        state=text(state, "value"),
        failed=flag(state, "failed"),
        vocabulary_size=whole(meta, "n_vocab"),
        trained_context_tokens=whole(meta, "n_ctx_train"),
        slot_context_tokens=whole(meta, "n_ctx"),
        embedding_length=whole(meta, "n_embd"),
        parameter_count=whole(meta, "n_params"),
        tensor_bytes=whole(meta, "size"),
        file_type=text(meta, "ftype"),
    )


@probe(
    "models",
    sends="GET /v1/models",
    proves="which names a request may use, and the loaded model's own figures",
    does_not_prove="that the model generates; some builds answer it without a key",
)
def probe_models(client: HttpClient, *, bounds: Bounds) -> tuple[EndpointAnswer, Fact[ModelsAnswer]]:
    """Ask for the models."""
    return parsed(ask(client, "models", "GET", "/v1/models", bounds=bounds), parse_models)
