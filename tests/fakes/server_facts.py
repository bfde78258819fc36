"""ServerFacts of an honest server, and ways to change one thing in them."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from llamaops.probes.chat import OTHER_PROMPT, PROMPT, ChatAnswer
from llamaops.probes.chat_stream import StreamAnswer
from llamaops.probes.completion_body import ServerTimings, Usage
from llamaops.probes.endpoint import EndpointAnswer, EndpointState
from llamaops.probes.health import HealthAnswer
from llamaops.probes.metrics import MetricsAnswer
from llamaops.probes.models import ListedModel, ModelsAnswer
from llamaops.probes.props import PropsAnswer
from llamaops.probes.server import ServerFacts
from llamaops.probes.slots import SlotAnswer, SlotsAnswer
from llamaops.schema.fact import Known, Source, Unknown, Why, not_attempted

V = TypeVar("V")
S = TypeVar("S", bound=msgspec.Struct)
SOURCE = Source(kind="http", name="GET /made-up", evidence="ev-1")
PROBES = (
    "health", "models", "props", "metrics", "tokenize", "chat", "chat-other", "chat-stream", "slots",
    "metrics-after", "health-after",
)  # fmt: skip


def known(value: V) -> Known[V]:
    return Known(value=value, source=SOURCE)


def unknown(why: Why = "timed_out", detail: str = "no whole answer before the deadline") -> Unknown:
    return Unknown(why=why, detail=detail, source=SOURCE)


def answer(
    probe: str,
    state: EndpointState = "works",
    status: int | None = 200,
    *,
    request: str | None = None,
    key: Literal["ours", "none", "wrong"] = "none",
) -> EndpointAnswer:
    return EndpointAnswer(
        probe=probe, request=request or f"GET /{probe}", key=key, state=state, status=status,
        detail=f"HTTP {status}" if status else "made up", elapsed_s=0.1, evidence=("ev-2",),
    )  # fmt: skip


USAGE = Usage(prompt_tokens=38, completion_tokens=20, total_tokens=58)
TIMINGS = ServerTimings(prompt_tokens=38, generated_tokens=20, generation_s=0.2)
MODEL = ListedModel(
    id="ours", aliases=("ours",), vocabulary_size=49152, trained_context_tokens=8192, slot_context_tokens=512,
    embedding_length=576, parameter_count=134515008, tensor_bytes=96576768,
)  # fmt: skip
PROPS = PropsAnswer(
    build_info="b10434-7e4c0a9", total_slots=2, slot_context_tokens=512, model_path="/models/tiny.gguf",
    model_alias="ours",
)  # fmt: skip
CHAT = ChatAnswer(
    prompt=PROMPT, max_tokens=48, text="The sea is wide and never still.", characters=32, content="valued",
    reasoning="absent", reasoning_characters=0, problem=None, role="assistant", finish_reason="stop",
    usage=USAGE, timings=TIMINGS, model="ours", id="chatcmpl-1", created=1, counted_tokens=19,
)  # fmt: skip
OTHER = ChatAnswer(
    prompt=OTHER_PROMPT, max_tokens=16, text="Monday, Tuesday, Wednesday, Thursday", characters=36,
    content="valued", reasoning="absent", reasoning_characters=0, problem=None, role="assistant",
    finish_reason="length", usage=Usage(prompt_tokens=41, completion_tokens=16, total_tokens=57),
    timings=None, model="ours", id="chatcmpl-2", created=2,
)  # fmt: skip
STREAM = StreamAnswer(
    prompt=PROMPT, max_tokens=48, content_type="text/event-stream", ended="done", error=None,
    text="The sea is wide and never still.", reasoning_characters=0, problem=None, role="assistant",
    first_content="null", last_content="absent", pieces=19, finish_reason="stop", usage=USAGE,
    usage_choices_empty=True, timings=TIMINGS, model="ours", ids=("chatcmpl-3",), comments=0, unreadable=0,
    first_token_s=0.2, inter_piece_median_s=0.01, inter_piece_p95_s=0.02, spread_s=0.19, lumps=19,
)  # fmt: skip


def changed(shape: S, **changes: Any) -> Known[S]:
    """Return a known fact of a shape with some fields changed."""
    return known(msgspec.structs.replace(shape, **changes))


def server(
    *, answers: tuple[EndpointAnswer, ...] = (), without: tuple[str, ...] = (), **facts: Any
) -> ServerFacts:
    """Return what an honest server answers, with some facts and endpoint answers changed."""
    replaced = {item.probe: item for item in answers}
    endpoints = [replaced.get(name, answer(name)) for name in PROBES if name not in without]
    endpoints += [item for item in answers if item.probe not in PROBES]
    values: dict[str, Any] = {
        "without_key": not_attempted("no API key is used"),
        "request_model": known("ours"),
        "health": known(HealthAnswer(status="ok")),
        "models": known(ModelsAnswer(models=(MODEL,))),
        "props": known(PROPS),
        "slots": known(
            SlotsAnswer(
                slots=tuple(SlotAnswer(id=n, context_tokens=512, is_processing=False) for n in (0, 1))
            )
        ),
        "metrics": known(MetricsAnswer(counters={"tokens_predicted_total": 100.0})),
        "metrics_after": known(MetricsAnswer(counters={"tokens_predicted_total": 156.0})),
        "prompt_tokens_counted": known(8),
        "chat": known(CHAT),
        "chat_other": known(OTHER),
        "chat_stream": known(STREAM),
        "embeddings": not_attempted("the server is not one for embeddings"),
        "health_after": known(HealthAnswer(status="ok")),
    }
    return ServerFacts(origin="http://127.0.0.1:8080", endpoints=tuple(endpoints), **{**values, **facts})
