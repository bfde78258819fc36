"""GET /props: build, slots, context and model, as the server itself reports them."""

from __future__ import annotations

import hashlib

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import Json, as_object, flag, text, whole
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json


class PropsAnswer(Shape, frozen=True, kw_only=True):
    """The server's properties; a field is none where this build does not give it."""

    build_info: str | None = None
    """Build number and commit, such as b11669-Debian; builds before 2025 do not say."""
    total_slots: int | None = None
    """Slots."""
    slot_context_tokens: int | None = None
    """Context of one slot, in tokens."""
    model_path: str | None = None
    """The model file as given on the server's command line."""
    model_alias: str | None = None
    """The first of the server's aliases; the model's path where none was given."""
    role: str | None = None
    """`router` where one server loads several models on demand."""
    models_autoload: bool | None = None
    """Of a router: whether a request for a model that is not loaded loads it."""
    max_instances: int | None = None
    """Of a router: how many models it keeps loaded at once; 0 is no limit."""
    is_sleeping: bool | None = None
    """Whether the model was put away until the next request."""
    chat_template_sha256: str | None = None
    """Digest of the chat template in use."""
    chat_template_characters: int | None = None
    """Length of the chat template."""
    template_has_tools: bool | None = None
    """Whether the chat template knows tools, by the server's own analysis or by the template's text."""
    template_has_thinking_switch: bool | None = None
    """Whether the chat template looks at `enable_thinking`."""
    cors_proxy: bool | None = None
    """Whether the server fetches other addresses for a web page."""
    endpoint_slots: bool | None = None
    """Whether /slots is switched on."""
    endpoint_props: bool | None = None
    """Whether POST /props, which changes the server, is switched on."""
    endpoint_metrics: bool | None = None
    """Whether /metrics is switched on."""

    @property
    def is_router(self) -> bool:
        """Whether this is a router, which has no model of its own."""
        return self.role == "router"


KNOWN_FIELDS = frozenset(
    {"default_generation_settings", "total_slots", "model_path", "build_info", "chat_template", "role"}
)


def parse_props(body: bytes) -> PropsAnswer:
    """Read the properties; the slot's context from both places where builds have had it.

    Raises: ParseError, also for an object that has none of the fields of any build.
    """
    item = as_object(decode_json(body), "the body")
    if not KNOWN_FIELDS & set(item):
        raise ParseError("the body has no field of any known build")
    settings = as_object(item.get("default_generation_settings") or {}, "default_generation_settings")
    context = whole(settings, "n_ctx")
    template = text(item, "chat_template")
    return PropsAnswer(
        build_info=text(item, "build_info"),
        total_slots=whole(item, "total_slots"),
        slot_context_tokens=whole(item, "n_ctx") if context is None else context,
        model_path=text(item, "model_path"),
        model_alias=text(item, "model_alias"),
        role=text(item, "role"),
        models_autoload=flag(item, "models_autoload"),
        max_instances=whole(item, "max_instances"),
        is_sleeping=flag(item, "is_sleeping"),
        chat_template_sha256=None if template is None else hashlib.sha256(template.encode()).hexdigest(),
        chat_template_characters=None if template is None else len(template),
        template_has_tools=_has_tools(item, template),
        template_has_thinking_switch=None if template is None else "enable_thinking" in template,
        cors_proxy=flag(item, "cors_proxy_enabled"),
        endpoint_slots=flag(item, "endpoint_slots"),
        endpoint_props=flag(item, "endpoint_props"),
        endpoint_metrics=flag(item, "endpoint_metrics"),
    )


def _has_tools(item: Json, template: str | None) -> bool | None:
    caps = item.get("chat_template_caps")
    if isinstance(caps, dict) and isinstance(caps.get("supports_tools"), bool):
        return bool(caps["supports_tools"])
    return None if template is None else "tools" in template


@probe(
    "props",
    sends="GET /props",
    proves="the build, slots and context that the server reports, and whether it is a router",
    does_not_prove="that slots run side by side, or that the context can be filled",
)
def probe_props(
    client: HttpClient, *, bounds: Bounds, query: str = "", name: str = "props"
) -> tuple[EndpointAnswer, Fact[PropsAnswer]]:
    """Ask for the properties; a sleeping server is not woken by it."""
    return parsed(ask(client, name, "GET", f"/props{query}", bounds=bounds), parse_props)
