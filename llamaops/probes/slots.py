"""GET /slots: how many slots are there, and is one busy? Other people's text is dropped before it is kept."""

from __future__ import annotations

import msgspec

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import Json, as_list, as_object, flag, whole
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json

SAFE_SLOT_FIELDS = frozenset(
    {
        "id", "id_task", "task_id", "n_ctx", "speculative", "is_processing", "state", "n_prompt_tokens",
        "n_prompt_tokens_processed", "n_prompt_tokens_cache", "next_token", "n_predict", "n_remain",
        "n_decoded", "has_next_token", "has_new_line", "stopped_eos", "stopped_limit", "stopped_word",
    }
)  # fmt: skip
"""What is kept: figures and switches. An old build's slot also holds prompt, stop words and grammar."""


DEEPEST = 4
"""A slot is an object in an array, and `next_token` an object in an array in it."""


class SlotAnswer(Shape, frozen=True, kw_only=True):
    """One slot; a count is none where the slot was never used or the build does not give it."""

    id: int
    """Number of the slot."""
    context_tokens: int | None
    """Context of the slot, in tokens."""
    is_processing: bool | None
    """Whether it is working at this moment; `state` in builds before November 2024."""
    decoded_tokens: int | None = None
    """Tokens that the current request has generated."""
    task: int | None = None
    """Number of the current or last task."""


class SlotsAnswer(Shape, frozen=True, kw_only=True):
    """Every slot."""

    slots: tuple[SlotAnswer, ...]
    """In the server's order."""
    by_state: bool = False
    """Whether `state` says which are busy, as in builds before November 2024."""


def clean_slots(body: bytes) -> bytes:
    """Keep only figures and switches of a body; what is not JSON is replaced as a whole."""
    try:
        value = decode_json(body)
    except ParseError:
        return b"(not JSON; dropped, because it may hold other people's text)"
    if isinstance(value, dict) and isinstance(value.get("error"), dict):
        error = {name: _short(value["error"].get(name)) for name in ("code", "message", "type")}
        return msgspec.json.encode({"error": error})
    return msgspec.json.encode(_figures(value))


def _short(value: object) -> object:
    return value[:200] if isinstance(value, str) else value if isinstance(value, int) else None


def _figures(value: object, depth: int = 0) -> object:
    """Return the safe fields that hold numbers, switches, or objects and arrays of those."""
    if depth > DEEPEST or isinstance(value, str):
        return "(dropped)"
    if isinstance(value, list):
        return [_figures(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {k: _figures(entry, depth + 1) for k, entry in value.items() if k in SAFE_SLOT_FIELDS}
    return value


def parse_slots(body: bytes) -> SlotsAnswer:
    """Read the slots in the form of any build since 2024. Raises: ParseError."""
    entries = as_list(decode_json(body), "the body")
    items = [as_object(entry, "a slot") for entry in entries]
    by_state = any("state" in item and "is_processing" not in item for item in items)
    slots = tuple(map(_slot, items))
    if len({slot.id for slot in slots}) < len(slots):
        raise ParseError("two slots have the same id")
    return SlotsAnswer(slots=slots, by_state=by_state)


def _slot(item: Json) -> SlotAnswer:
    number = whole(item, "id")
    if number is None:
        raise ParseError("a slot has no id")
    busy = flag(item, "is_processing")
    if busy is None and "state" in item:
        busy = whole(item, "state") != 0
    following = item.get("next_token")
    if isinstance(following, list):
        following = following[0] if following else None
    counts = as_object(following, "next_token") if following is not None else {}
    return SlotAnswer(
        id=number,
        context_tokens=whole(item, "n_ctx"),
        is_processing=busy,
        decoded_tokens=whole(counts, "n_decoded") if "n_decoded" in counts else whole(item, "n_decoded"),
        task=whole(item, "id_task") if "id_task" in item else whole(item, "task_id"),
    )


@probe(
    "slots",
    sends="GET /slots",
    proves="how many slots there are, their context, and which were busy at that moment",
    does_not_prove="that slots run side by side; asking wakes a sleeping server, so one is not asked",
)
def probe_slots(
    client: HttpClient, *, bounds: Bounds, query: str = ""
) -> tuple[EndpointAnswer, Fact[SlotsAnswer]]:
    """Ask for the slots."""
    return parsed(
        ask(client, "slots", "GET", f"/slots{query}", bounds=bounds, clean=clean_slots), parse_slots
    )
