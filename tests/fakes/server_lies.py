"""The ways in which a fake llama-server lies: one Behaviour for each name."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Behaviour:
    """What the fake does; the defaults are an honest server."""

    health: str = "ok"
    """ok, never (503 for ever), until-chat (503 after the first chat), html, error, unknown-status."""
    everything_ok: bool = False
    """Answers 200 with the body of /health whatever is asked."""
    chat: str = "ok"
    """ok, hang, 500, 501, 404, error-200, html, types, no-choices, redirect, gzip, giant-header, infinite,
    drip, short-body, chunks, die, bare-close."""
    content: str = "ok"
    """ok, empty, null, whitespace, repeated, phrase, replacement, control, echo, said-echo, punctuation,
    markup, canned."""
    finish: str | None = "auto"
    """auto, or the word to send; None leaves it out."""
    usage: str = "ok"
    """ok, missing, zero, sum, small, large, less, prompt."""
    timings: bool = True
    fast_timings: bool = False
    """Says that it generated a thousand times faster than it did."""
    over_limit: bool = False
    """Generates far more than max_tokens."""
    hides_over_limit: bool = False
    """Says in usage that the limit was kept."""
    fixed_id: bool = False
    """The same id and time for every answer."""
    chat_model: str | None = None
    """Name of the model in answers, where it is not the listed one."""
    stream_model: str | None = None
    stream: str = "ok"
    """ok, at-once, lumps, cut, cut-clean, no-done, role-only, error-event, error-field, stall, json,
    no-finish, no-usage, ids, garbage, hang, reset, one-piece, chunks."""
    models: str = "ok"
    """ok, empty, html, types."""
    alias: str | None = None
    """Listed name, whatever was asked for."""
    model_path: str | None = None
    figures: dict[str, int] = field(default_factory=dict)
    """Figures of the model that differ from the truth."""
    build: str | None = None
    slots: int | None = None
    context: int | None = None
    listen: str | None = None
    """Address, whatever was asked for."""
    also_listen: str | None = None
    """A second address, on a port of its own."""
    key: str = "required"
    """required, ignored, any, chat-open, props-open: only where a key was given."""
    embeddings: str = "ok"
    """ok, constant, zero, nan, narrow (half as wide as the model), 500."""
    die_after_health: int = 0
    """Ends after so many answers 200 of /health; 0 is never."""
    batching: str = "ok"
    """ok, serial (one request at a time), serial-first (each gets its first piece at once, and then has to
    wait), no-join (a new one waits until all running ones have ended), half (half of the slots work),
    twice (takes more requests than it has slots)."""
    crowd: str = "ok"
    """What becomes of several at once: ok, all-fail (500 inside the stream), one-fails, one-empty, one-hangs,
    one-cut, swapped (one gets the answer of another), same-id, busy-503, over-limit."""
    surface: str = "ok"
    """ok, or what one of the lesser endpoints, or of the answers to wrong requests, does instead."""
    counters: str = "ok"
    """ok, stuck, doubled (of tokens generated), prompts-stuck, random (grow by far too much)."""
    features: str = "ok"
    """ok, keeps-slot (of a client that has gone), schema-ignored, schema-broken, tool-dropped, tool-unknown,
    tool-arguments, tool-stream (prose where it is streamed), tool-stream-cut, context-smaller,
    context-truncates, context-200 (a refusal with status 200), thinks (no content), thinks-always."""
    router: str = "ok"
    """ok, silent (the last model never answers), other-name (another model answers, and says so), one-for-all
    (one model answers, under every name), never-loads, says-unloaded."""
    sleep: str = "ok"
    """ok, never-wakes, fails-to-wake, says-asleep (after it answered), says-awake (while its log says that it
    sleeps), never-sleeps, health-wakes."""
    twist: str = ""
    """What is changed in honest answers: a key of `twists.CHANGES`, or key-twice, pieces-lost, early-end,
    other-choice, other-model, stop-at-limit."""
    log: str = "cpu"
    """Load log: cpu, gpu (device buffers), claims-gpu (an offload line, and CPU buffers)."""
    devices: str = "none"
    """--list-devices: none, vulkan."""
    ignores_sigterm: bool = False
    floods_log: bool = False
    forks: bool = False
    """Leaves a child in a session of its own."""


LIES: dict[str, Behaviour] = {
    "honest": Behaviour(),
    "honest-fast": Behaviour(),
    # no inference behind a green /health
    "chat-hangs": Behaviour(chat="hang"),
    "chat-500": Behaviour(chat="500"),
    "chat-dies": Behaviour(chat="die"),
    "chat-closes": Behaviour(chat="bare-close"),
    "chat-empty": Behaviour(content="empty"),
    "chat-null": Behaviour(content="null"),
    "chat-whitespace": Behaviour(content="whitespace"),
    "chat-repeated-token": Behaviour(content="repeated"),
    "chat-repeated-phrase": Behaviour(content="phrase"),
    "chat-replacement": Behaviour(content="replacement"),
    "chat-control": Behaviour(content="control"),
    "chat-punctuation": Behaviour(content="punctuation"),
    "chat-markup": Behaviour(content="markup"),
    "chat-echo": Behaviour(content="echo"),
    "chat-echo-framed": Behaviour(content="said-echo"),
    "chat-error-in-200": Behaviour(chat="error-200"),
    "chat-html": Behaviour(chat="html"),
    "chat-wrong-types": Behaviour(chat="types"),
    "chat-no-choices": Behaviour(chat="no-choices"),
    "ok-to-everything": Behaviour(everything_ok=True),
    # answers that contradict themselves
    "no-finish-reason": Behaviour(finish=None),
    "strange-finish-reason": Behaviour(finish="done"),
    "usage-missing": Behaviour(usage="missing"),
    "usage-zero": Behaviour(usage="zero", timings=False),
    "usage-wrong-sum": Behaviour(usage="sum"),
    "usage-too-small": Behaviour(usage="small"),
    "usage-too-large": Behaviour(usage="large", timings=False),
    "usage-somewhat-less": Behaviour(usage="less", timings=False),
    "usage-prompt-too-small": Behaviour(usage="prompt"),
    "limit-ignored": Behaviour(over_limit=True),
    "limit-ignored-and-hidden": Behaviour(over_limit=True, hides_over_limit=True, timings=False),
    "answers-from-a-cache": Behaviour(fixed_id=True),
    "canned-answer": Behaviour(content="canned"),
    "other-model-in-answers": Behaviour(chat_model="gpt-4o"),
    "other-model-in-stream": Behaviour(stream_model="gpt-4o"),
    # another server, another model, other settings
    "another-server": Behaviour(alias="older-server", model_path="/models/older.gguf"),
    "wrong-model-file": Behaviour(model_path="/models/other.gguf"),
    "wrong-model-figures": Behaviour(figures={"n_embd": 960, "n_params": 361821120, "size": 229000000}),
    "wrong-build": Behaviour(build="b4242-deadbee"),
    "fewer-slots": Behaviour(slots=1),
    "smaller-context": Behaviour(context=256),
    "models-empty": Behaviour(models="empty"),
    "models-html": Behaviour(models="html"),
    "models-wrong-types": Behaviour(models="types"),
    # sockets and life
    "every-address": Behaviour(listen="0.0.0.0"),
    "other-address": Behaviour(listen="127.0.0.2"),
    "second-address": Behaviour(also_listen="0.0.0.0"),
    "dead-after-ready": Behaviour(die_after_health=1),
    "never-ready": Behaviour(health="never"),
    "unready-after-chat": Behaviour(health="until-chat"),
    "health-html": Behaviour(health="html"),
    "health-error-in-200": Behaviour(health="error"),
    "health-unknown-status": Behaviour(health="unknown-status"),
    # hostile transport
    "drip": Behaviour(chat="drip"),
    "redirect": Behaviour(chat="redirect"),
    "gzip-bomb": Behaviour(chat="gzip"),
    "giant-header": Behaviour(chat="giant-header"),
    "infinite-body": Behaviour(chat="infinite"),
    "short-body": Behaviour(chat="short-body"),
    "broken-chunks": Behaviour(chat="chunks"),
    # streams
    "stream-at-once": Behaviour(stream="at-once"),
    "stream-in-lumps": Behaviour(stream="lumps"),
    "stream-in-lumps-fast-timings": Behaviour(stream="lumps", fast_timings=True),
    "stream-at-once-fast-timings": Behaviour(stream="at-once", fast_timings=True),
    "stream-one-piece": Behaviour(stream="one-piece"),
    "stream-cut": Behaviour(stream="cut"),
    "stream-cut-cleanly": Behaviour(stream="cut-clean"),
    "stream-no-done": Behaviour(stream="no-done"),
    "stream-role-only": Behaviour(stream="role-only"),
    "stream-error-event": Behaviour(stream="error-event"),
    "stream-error-field": Behaviour(stream="error-field"),
    "stream-stalls": Behaviour(stream="stall"),
    "stream-never-starts": Behaviour(stream="hang"),
    "stream-is-json": Behaviour(stream="json"),
    "stream-no-finish": Behaviour(stream="no-finish"),
    "stream-no-usage": Behaviour(stream="no-usage"),
    "stream-many-ids": Behaviour(stream="ids"),
    "stream-garbage": Behaviour(stream="garbage"),
    "stream-reset": Behaviour(stream="reset"),
    "stream-broken-chunks": Behaviour(stream="chunks"),
    # the key
    "key-ignored": Behaviour(key="ignored"),
    "any-key-accepted": Behaviour(key="any"),
    "chat-without-key": Behaviour(key="chat-open"),
    "props-without-key": Behaviour(key="props-open"),
    # embeddings
    "embeddings-only": Behaviour(chat="501"),
    "embeddings-constant": Behaviour(chat="501", embeddings="constant"),
    "embeddings-zero": Behaviour(chat="501", embeddings="zero"),
    "embeddings-not-numbers": Behaviour(chat="501", embeddings="nan"),
    "embeddings-cut-short": Behaviour(chat="501", embeddings="narrow"),
    "ranks-only": Behaviour(chat="501"),
    "ranks-only-backwards": Behaviour(chat="501", surface="rerank"),
    "no-inference-at-all": Behaviour(chat="404", embeddings="500"),
    # several requests at once
    "serialized": Behaviour(batching="serial"),
    "serialized-after-the-first-piece": Behaviour(batching="serial-first"),
    "half-of-the-slots": Behaviour(batching="half"),
    "no-continuous-batching": Behaviour(batching="no-join"),
    "more-than-its-slots": Behaviour(batching="twice"),
    "crowd-fails-together": Behaviour(crowd="all-fail"),
    "crowd-one-fails": Behaviour(crowd="one-fails"),
    "crowd-one-empty": Behaviour(crowd="one-empty"),
    "crowd-one-hangs": Behaviour(crowd="one-hangs"),
    "crowd-one-cut": Behaviour(crowd="one-cut"),
    "crowd-swapped": Behaviour(crowd="swapped"),
    "crowd-same-id": Behaviour(crowd="same-id"),
    "crowd-turned-away": Behaviour(crowd="busy-503"),
    "crowd-limit-ignored": Behaviour(crowd="over-limit"),
    "counters-stand-still": Behaviour(counters="stuck"),
    "prompt-counter-stands-still": Behaviour(counters="prompts-stuck"),
    "counters-count-double": Behaviour(counters="doubled"),
    # lesser endpoints and wrong requests
    "detokenize-other-text": Behaviour(surface="detokenize"),
    "template-drops-the-question": Behaviour(surface="template"),
    "text-completion-over-limit": Behaviour(surface="completions-long"),
    "completion-without-text": Behaviour(surface="completion-empty"),
    "responses-without-output": Behaviour(surface="responses"),
    "responses-fail": Behaviour(surface="responses-500"),
    "messages-without-reason": Behaviour(surface="messages"),
    "counts-nothing": Behaviour(surface="count"),
    "tokenize-html": Behaviour(surface="tokenize-html"),
    "reranks-backwards": Behaviour(surface="rerank"),
    "answers-any-path": Behaviour(surface="any-path"),
    "takes-broken-json": Behaviour(surface="bad-json"),
    "breaks-at-unknown-fields": Behaviour(surface="unknown-field"),
    "breaks-at-huge-limits": Behaviour(surface="huge"),
    "metrics-dropped": Behaviour(surface="metrics-off"),
    "tools-open": Behaviour(surface="tools"),
    "props-open-to-change": Behaviour(surface="props"),
    # what only some clients use
    "keeps-the-slot-of-who-has-gone": Behaviour(features="keeps-slot"),
    "schema-ignored": Behaviour(features="schema-ignored"),
    "schema-broken": Behaviour(features="schema-broken"),
    "tool-call-dropped": Behaviour(features="tool-dropped"),
    "tool-call-unknown": Behaviour(features="tool-unknown"),
    "tool-call-arguments": Behaviour(features="tool-arguments"),
    "tool-call-dropped-in-stream": Behaviour(features="tool-stream"),
    "tool-call-cut-in-stream": Behaviour(features="tool-stream-cut"),
    "context-smaller-than-said": Behaviour(features="context-smaller"),
    "context-cut-silently": Behaviour(features="context-truncates"),
    "thinks-until-allowed-more": Behaviour(features="thinks"),
    "context-refused-as-200": Behaviour(features="context-200"),
    # one thing changed in honest answers
    "answer-of-a-user": Behaviour(twist="role"),
    "two-choices": Behaviour(twist="two-choices"),
    "content-filter": Behaviour(twist="filtered"),
    "prompt-counted-twice": Behaviour(twist="prompt-count"),
    "key-stands-twice": Behaviour(twist="key-twice"),
    "stream-loses-pieces": Behaviour(twist="pieces-lost"),
    "stream-says-its-end-early": Behaviour(twist="early-end"),
    "stream-of-two-choices": Behaviour(twist="other-choice"),
    "stream-changes-its-model": Behaviour(twist="other-model"),
    "stop-at-the-limit": Behaviour(twist="stop-at-limit"),
    "slots-never-busy": Behaviour(twist="idle-slots"),
    "slots-copied": Behaviour(twist="copied-slots"),
    "slots-larger-than-props": Behaviour(twist="larger-slots"),
    "counts-double": Behaviour(twist="count-double"),
    "response-failed": Behaviour(twist="responses-failed"),
    "response-echoes": Behaviour(twist="responses-echo"),
    "message-echoes": Behaviour(twist="messages-echo"),
    "text-completion-echoes": Behaviour(twist="completions-echo"),
    "text-completion-stops": Behaviour(twist="completions-stop"),
    "completion-says-cut": Behaviour(twist="completion-cut"),
    "vectors-fresh-each-time": Behaviour(twist="vectors-fresh"),
    "vectors-too-wide": Behaviour(twist="vectors-wide"),
    "vectors-one-index": Behaviour(twist="vectors-index"),
    "counters-jump": Behaviour(counters="random"),
    # several models behind one server, and a server that sleeps
    "router-silent-model": Behaviour(router="silent"),
    "router-other-model": Behaviour(router="other-name"),
    "router-one-for-all": Behaviour(router="one-for-all"),
    "router-never-loads": Behaviour(router="never-loads"),
    "router-says-unloaded": Behaviour(router="says-unloaded"),
    "never-wakes": Behaviour(sleep="never-wakes"),
    "fails-to-wake": Behaviour(sleep="fails-to-wake"),
    "wakes-to-nonsense": Behaviour(content="replacement"),
    "sleeps-by-its-word": Behaviour(sleep="says-asleep"),
    "awake-by-its-word": Behaviour(sleep="says-awake"),
    "never-sleeps": Behaviour(sleep="never-sleeps"),
    "woken-by-health": Behaviour(sleep="health-wakes"),
    # devices, and ends
    "gpu-asked-weights-on-cpu": Behaviour(log="cpu", devices="vulkan"),
    "gpu-claimed-weights-on-cpu": Behaviour(log="claims-gpu", devices="vulkan"),
    "gpu-honest": Behaviour(log="gpu", devices="vulkan"),
    "ignores-sigterm": Behaviour(ignores_sigterm=True),
    "floods-its-log": Behaviour(floods_log=True),
    "leaves-a-child": Behaviour(forks=True),
}


def behaviour_from(names: list[str]) -> Behaviour:
    """Join several lies into one behaviour; a later one wins where both set a field."""
    honest = Behaviour()
    values: dict[str, object] = {}
    for name in names:
        for entry in fields(Behaviour):
            value = getattr(LIES[name], entry.name)
            if value != getattr(honest, entry.name):
                values[entry.name] = value
    return Behaviour(**values)  # type: ignore[arg-type]  # names and values are Behaviour's own
