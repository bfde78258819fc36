"""Every liar: what it lies about, and the finding that must not pass because of it.

`LIARS` is for the server checks (`tests/integration/test_liars.py`) and for whole commands alike. `level`
says what can see the lie: `answers` needs only a running server, `standard` and `full` the probes of that
level, `command` the load log or the process. `install` makes a program of the right name, which llamaops can
be pointed at.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llamaops.schema.boundary import BoundaryName

ROOT = Path(__file__).resolve().parents[2]
Program = Literal["llama-server", "llama-completion"]


@dataclass(frozen=True)
class Liar:
    """One lie."""

    name: str
    """Key of `server_lies.LIES` or `completion_lies.LIES`."""
    about: str
    """What it lies about, in a sentence."""
    boundary: BoundaryName
    """The rung that must not be reached."""
    check: str
    """Id of the check that must not pass."""
    status: Literal["failed", "unknown"] = "failed"
    """`unknown` where waiting longer could have helped: a hang is not told from a slow machine."""
    program: Program = "llama-server"
    level: Literal["answers", "standard", "full", "command"] = "answers"
    flags: tuple[str, ...] = ()
    """Further flags of the program, such as --embeddings."""
    key: bool = False
    """Whether an API key is used."""


def _answers(name: str, about: str, check: str, *, status: Literal["failed", "unknown"] = "failed") -> Liar:
    return Liar(name=name, about=about, boundary="api_response", check=f"server.{check}", status=status)


def _text(name: str, about: str) -> Liar:
    return Liar(name=name, about=about, boundary="generated_output", check="server.chat-text-is-usable")


def _crowd(name: str, about: str, check: str, *, status: Literal["failed", "unknown"] = "failed") -> Liar:
    return Liar(
        name=name, about=about, boundary="concurrency", check=f"concurrency.{check}", status=status,
        level="standard",
    )  # fmt: skip


CROWD_LIARS = (
    _crowd("serialized", "has two slots, and answers one request after the other", "slots-run-side-by-side"),
    _crowd(
        "serialized-after-the-first-piece",
        "gives each request a first piece at once, and then answers one after the other",
        "slots-run-side-by-side",
    ),
    _crowd("half-of-the-slots", "says two slots, and uses one", "slots-run-side-by-side"),
    _crowd("more-than-its-slots", "takes more requests than it says it has slots", "slots-run-side-by-side"),
    _crowd("no-continuous-batching", "lets a late request wait though a slot is free", "late-request-joins"),
    _crowd("crowd-fails-together", "several requests fail together", "every-request-is-answered"),
    _crowd("crowd-one-fails", "one of several fails inside its stream", "every-request-is-answered"),
    _crowd("crowd-one-empty", "one of several gets no text", "every-request-is-answered"),
    _crowd("crowd-one-hangs", "one of several stands still", "every-request-is-answered"),
    _crowd("crowd-one-cut", "one of several is cut", "every-request-is-answered"),
    _crowd("crowd-turned-away", "one of several is turned away", "every-request-is-answered"),
    _crowd("crowd-swapped", "one answer is given to all", "answers-belong-to-their-requests"),
    _crowd("crowd-same-id", "all answers have one id", "answers-belong-to-their-requests"),
    _crowd("crowd-limit-ignored", "answers longer than asked", "answers-belong-to-their-requests"),
)
"""Lies that show only when several requests come at once."""


def _surface(name: str, about: str, check: str = "endpoints-work-or-say-why", *flags: str) -> Liar:
    return Liar(name, about, "api_response", f"surface.{check}", level="standard", flags=flags)


def _feature(name: str, about: str, check: str, level: Literal["standard", "full"] = "full") -> Liar:
    return Liar(name, about, "api_response", f"features.{check}", level=level)


SURFACE_LIARS = (
    _surface("detokenize-other-text", "makes another text of its tokens"),
    _surface("template-drops-the-question", "renders a prompt without the question"),
    _surface("text-completion-over-limit", "ignores the limit of a text completion"),
    _surface("completion-without-text", "completes without a word"),
    _surface("responses-without-output", "a response without output"),
    _surface("responses-fail", "an endpoint that always fails"),
    _surface("messages-without-reason", "a message that does not say why it ended"),
    _surface("counts-nothing", "counts no tokens"),
    _surface("tokenize-html", "a web page instead of tokens"),
    _surface(
        "reranks-backwards", "ranks the irrelevant document first", "endpoints-work-or-say-why", "--reranking"
    ),
    _surface("answers-any-path", "status ok for a path that does not exist", "errors-follow-the-contract"),
    _surface("takes-broken-json", "answers a request that is not JSON", "errors-follow-the-contract"),
    _surface("breaks-at-unknown-fields", "fails at a field it does not know", "errors-follow-the-contract"),
    _surface("breaks-at-huge-limits", "fails at a huge limit", "errors-follow-the-contract"),
    _surface("metrics-dropped", "drops --metrics", "enabled-endpoints-answer"),
    _surface("tools-open", "runs commands for whoever asks", "no-doors-for-others"),
    _surface("props-open-to-change", "lets whoever asks change it", "no-doors-for-others"),
    _feature(
        "keeps-the-slot-of-who-has-gone",
        "goes on for a client that has gone",
        "disconnect-frees-the-slot",
        "standard",
    ),
    _feature("schema-ignored", "prose instead of the schema", "schema-is-followed"),
    _feature("schema-broken", "a value that the schema does not allow", "schema-is-followed"),
    _feature("tool-call-dropped", "prose instead of the call that is required", "tool-is-called"),
    _feature("tool-call-unknown", "calls a tool that was not offered", "tool-is-called"),
    _feature("tool-call-arguments", "arguments that are no JSON", "tool-is-called"),
    _feature(
        "tool-call-dropped-in-stream", "prose instead of the call, once it is streamed", "tool-is-called"
    ),
    _feature("tool-call-cut-in-stream", "a streamed call without its end", "tool-is-called"),
    _feature("context-smaller-than-said", "refuses half of the context it reports", "context-is-real"),
    _feature("context-cut-silently", "cuts a prompt that does not fit, and says nothing", "context-is-real"),
)
"""Lies of endpoints beside chat, of answers to wrong requests, and of features that only some clients use."""


def _of_a_router(
    name: str, about: str, check: str, *, status: Literal["failed", "unknown"] = "failed"
) -> Liar:
    flags = ("--models", "one,two", "--loaded", "one")
    return Liar(name, about, "api_response", f"router.{check}", status, level="standard", flags=flags)


def _asleep(
    name: str, about: str, check: str, *flags: str, status: Literal["failed", "unknown"] = "failed"
) -> Liar:
    flags = flags or ("--asleep",)
    return Liar(name, about, "api_response", f"sleep.{check}", status, level="standard", flags=flags)


TWISTED_LIARS = (
    _answers("answer-of-a-user", "an answer in the name of the user", "finish-reason-and-usage"),
    _answers("two-choices", "two choices where one was asked for", "chat-answers"),
    _answers("content-filter", "a filter's reason for the end", "finish-reason-and-usage"),
    _answers("prompt-counted-twice", "the prompt counted twice, but not streamed", "finish-reason-and-usage"),
    _answers("key-stands-twice", "a key that stands twice, empty and valued", "chat-answers"),
    _answers("stream-loses-pieces", "a stream that loses each third piece", "finish-reason-and-usage"),
    _answers("stream-says-its-end-early", "text after the reason for its end", "stream-is-complete"),
    _answers("stream-of-two-choices", "a stream whose pieces belong to two choices", "stream-is-complete"),
    _answers("stream-changes-its-model", "another model's name half-way", "stream-is-complete"),
    _answers("slots-larger-than-props", "a larger context in /slots than in /props", "context-as-asked"),
    _crowd("stop-at-the-limit", "says stop where the limit ended it", "answers-belong-to-their-requests"),
    _feature("slots-never-busy", "shows idle slots for ever", "disconnect-frees-the-slot", "standard"),
    _surface("slots-copied", "shows one slot several times"),
    _surface("counts-double", "counts the tokens of a message twice"),
    _surface("response-failed", "a response that says it failed"),
    _surface("response-echoes", "a response that is the prompt"),
    _surface("message-echoes", "a message that is the prompt"),
    _surface("text-completion-echoes", "a text completion that is the prompt"),
    _surface("text-completion-stops", "says stop where the limit ended it"),
    _surface("completion-says-cut", "says that it cut a prompt of a few words"),
    _surface(
        "vectors-fresh-each-time", "random vectors beside chat", "endpoints-work-or-say-why", "--embeddings"
    ),
    _surface("vectors-too-wide", "vectors of twice the width", "endpoints-work-or-say-why", "--embeddings"),
    _surface("vectors-one-index", "vectors with one index", "endpoints-work-or-say-why", "--embeddings"),
    _answers("counters-jump", "counts forty times the tokens", "counters-agree"),
    _feature("context-refused-as-200", "refuses a prompt with status 200", "context-is-real"),
)
"""Honest servers behind something that changes one thing."""

ROUTER_LIARS = (
    _of_a_router(
        "router-silent-model", "lists a model that never answers", "models-answer", status="unknown"
    ),
    _of_a_router("router-other-model", "another model answers, and says so", "models-answer"),
    _of_a_router("router-one-for-all", "one model answers under every name", "each-model-is-its-own"),
    _of_a_router("router-never-loads", "loads a model for ever", "loads-what-was-named", status="unknown"),
    _of_a_router("router-says-unloaded", "lists what answers as not loaded", "loads-what-was-named"),
)
"""Lies about several models behind one server."""

SLEEP_LIARS = (
    _asleep("never-wakes", "says 200, sleeps, and never wakes", "wakes-and-answers", status="unknown"),
    _asleep("fails-to-wake", "says 200 while it sleeps, and cannot load again", "wakes-and-answers"),
    _asleep("wakes-to-nonsense", "wakes, and gives replacement characters", "wakes-and-answers"),
    _asleep("sleeps-by-its-word", "says that it sleeps, after it answered", "wakes-and-answers"),
    _asleep(
        "awake-by-its-word", "says that it is awake while its log says otherwise", "falls-asleep",
        "--sleep-idle-seconds", "1",
    ),
    _asleep("never-sleeps", "drops --sleep-idle-seconds", "falls-asleep", "--sleep-idle-seconds", "1"),
)  # fmt: skip
"""Lies about a server that sleeps when nobody asks; `woken-by-health` is only unruly."""

SERVER_LIARS = (
    _answers("chat-hangs", "says ready, and never answers a request", "chat-answers", status="unknown"),
    _answers("chat-500", "says ready, and every request fails", "chat-answers"),
    _answers("chat-dies", "says ready, and dies of the first request", "chat-answers"),
    _answers("chat-closes", "says ready, and closes every request", "chat-answers"),
    _answers("chat-error-in-200", "an error with status 200", "chat-answers"),
    _answers("chat-html", "a proxy's error page with status 200", "chat-answers"),
    _answers("chat-wrong-types", "an answer whose fields have other types", "chat-answers"),
    _answers("chat-no-choices", "an answer without a choice", "chat-answers"),
    _answers("ok-to-everything", "status ok to any question", "chat-answers"),
    _text("chat-empty", "an answer without text"),
    _text("chat-null", "an answer whose content is null"),
    _text("chat-whitespace", "an answer of white space"),
    _text("chat-repeated-token", "one token again and again"),
    _text("chat-repeated-phrase", "one phrase again and again"),
    _text("chat-replacement", "replacement characters"),
    _text("chat-control", "control characters"),
    _text("chat-punctuation", "punctuation only"),
    _text("chat-markup", "special tokens only"),
    _text("chat-echo", "the prompt given back"),
    _text("chat-echo-framed", "the prompt given back with a word around it"),
    _answers("no-finish-reason", "no reason for the end", "finish-reason-and-usage"),
    _answers("strange-finish-reason", "a reason for the end that nobody knows", "finish-reason-and-usage"),
    _answers("usage-missing", "no usage", "finish-reason-and-usage"),
    _answers("usage-zero", "no token generated", "finish-reason-and-usage"),
    _answers("usage-wrong-sum", "a usage that does not add up", "finish-reason-and-usage"),
    _answers("usage-too-small", "fewer tokens than the text has", "finish-reason-and-usage"),
    _answers("usage-too-large", "more tokens than the limit", "token-limit-is-honoured"),
    _answers("usage-somewhat-less", "two thirds of the tokens", "finish-reason-and-usage"),
    _answers("usage-prompt-too-small", "fewer prompt tokens than the prompt", "finish-reason-and-usage"),
    _answers("limit-ignored", "generates past max_tokens", "token-limit-is-honoured"),
    _answers("limit-ignored-and-hidden", "generates past max_tokens and hides it", "token-limit-is-honoured"),
    _answers("answers-from-a-cache", "one stored id for all answers", "answers-depend-on-the-question"),
    _answers("canned-answer", "one text whatever is asked", "answers-depend-on-the-question"),
    _answers("other-model-in-answers", "another model's name in answers", "model-name-agrees"),
    _answers("other-model-in-stream", "another model's name in the stream", "model-name-agrees"),
    _answers("another-server", "an older server holds the port", "answer-is-ours"),
    _answers("wrong-model-file", "another file was loaded", "answer-is-ours"),
    _answers("wrong-model-figures", "another model was loaded", "model-agrees-with-header"),
    _answers("wrong-build", "another build answers", "build-agrees-with-binary"),
    _answers("fewer-slots", "fewer slots than asked", "slots-as-asked"),
    _answers("smaller-context", "a smaller context than asked", "context-as-asked"),
    _answers("models-empty", "no model is listed", "lists-the-model"),
    _answers("models-html", "a web page instead of the list", "lists-the-model"),
    _answers("models-wrong-types", "a list whose fields have other types", "lists-the-model"),
    _answers("every-address", "listens on every address", "socket-is-ours"),
    _answers("second-address", "listens on a second address too", "socket-is-ours"),
    _answers("dead-after-ready", "ends right after it said ready", "is-healthy"),
    _answers("never-ready", "loads for ever", "is-healthy", status="unknown"),
    _answers("unready-after-chat", "is ready until somebody asks something", "still-alive-after-requests"),
    _answers("health-html", "a web page with status 200 for /health", "is-healthy"),
    _answers("health-error-in-200", "an error with status 200 for /health", "is-healthy"),
    _answers("health-unknown-status", "a status that no build has", "is-healthy"),
    _answers("drip", "one byte of header now and then", "chat-answers", status="unknown"),
    _answers("redirect", "a redirect to another address", "chat-answers"),
    _answers("gzip-bomb", "a small compressed body that is huge", "chat-answers"),
    _answers("giant-header", "a header of megabytes", "chat-answers"),
    _answers("infinite-body", "a body without an end", "chat-answers"),
    _answers("short-body", "a body shorter than announced", "chat-answers"),
    _answers("broken-chunks", "a body in broken chunks", "chat-answers"),
    _answers("stream-at-once", "a stream delivered all at once", "stream-arrives-over-time"),
    _answers("stream-in-lumps", "a stream delivered in two lumps", "stream-arrives-over-time"),
    _answers("stream-in-lumps-fast-timings", "lumps that timings excuse", "stream-arrives-over-time"),
    _answers(
        "stream-at-once-fast-timings",
        "one lump, and timings that excuse it",
        "stream-arrives-over-time",
        status="unknown",
    ),
    _answers("stream-one-piece", "a stream of one piece", "stream-arrives-over-time", status="unknown"),
    _answers("stream-cut", "a stream cut half-way", "stream-is-complete"),
    _answers("stream-cut-cleanly", "a stream ended half-way in an orderly way", "stream-is-complete"),
    _answers("stream-no-done", "a stream without its terminal marker", "stream-is-complete"),
    _answers("stream-role-only", "a stream without text", "stream-is-complete"),
    _answers("stream-error-event", "an error inside a stream", "stream-is-complete"),
    _answers("stream-error-field", "an error inside a stream, as old builds send it", "stream-is-complete"),
    _answers("stream-stalls", "a stream that stands still", "stream-is-complete"),
    _answers("stream-never-starts", "a stream that never starts", "stream-is-complete", status="unknown"),
    _answers("stream-is-json", "one whole answer instead of a stream", "stream-is-complete"),
    _answers("stream-no-finish", "a stream without a reason for its end", "stream-is-complete"),
    _answers("stream-no-usage", "a stream without usage", "stream-is-complete"),
    _answers("stream-many-ids", "a stream put together from several", "stream-is-complete"),
    _answers("stream-garbage", "a stream with an event that is not JSON", "stream-is-complete"),
    _answers("stream-reset", "a stream reset half-way", "stream-is-complete"),
    _answers("stream-broken-chunks", "a stream in broken chunks", "stream-is-complete"),
    Liar("key-ignored", "no key is needed", "api_response", "server.key-is-required", key=True),
    Liar("any-key-accepted", "any key will do", "api_response", "server.key-is-required", key=True),
    Liar("chat-without-key", "chat needs no key", "api_response", "server.key-is-required", key=True),
    Liar("props-without-key", "/props needs no key", "api_response", "server.key-is-required", key=True),
    _answers("counters-stand-still", "counts no generated token", "counters-agree"),
    _answers("prompt-counter-stands-still", "counts no token of a prompt", "counters-agree"),
    _answers("counters-count-double", "counts each generated token twice", "counters-agree"),
    Liar("embeddings-constant", "one vector for every text", "api_response", "server.embeddings-answer"),
    Liar("embeddings-zero", "vectors of zeros", "api_response", "server.embeddings-answer"),
    Liar("embeddings-not-numbers", "vectors without numbers", "api_response", "server.embeddings-answer"),
    Liar("embeddings-cut-short", "half of each vector", "api_response", "server.embedding-width-agrees"),
    Liar(
        "ranks-only-backwards",
        "ranks the irrelevant document first, and does nothing else",
        "api_response",
        "server.rerank-answers",
        flags=("--reranking",),
    ),
    Liar(
        "no-inference-at-all", "neither chat nor embeddings", "api_response", "server.chat-answers", "unknown"
    ),
)
"""Lies that the server's answers and sockets show."""

COMMAND_LIARS = (
    Liar(
        "other-address",
        "listens on another address",
        "api_response",
        "lifecycle.becomes-ready",
        level="command",
    ),
    Liar(
        "gpu-asked-weights-on-cpu",
        "lists a GPU, and keeps the weights on the CPU",
        "model_load",
        "load.weights-on-expected-device",
        level="command",
        flags=("-ngl", "99"),
    ),
    Liar(
        "gpu-claimed-weights-on-cpu",
        "prints 31/31 layers offloaded, and keeps the weights on the CPU",
        "model_load",
        "load.weights-on-expected-device",
        level="command",
        flags=("-ngl", "99"),
    ),
)
"""Lies that only the load log or the process shows; the whole command is needed."""

HONEST_BUT_UNRULY = ("ignores-sigterm", "floods-its-log", "leaves-a-child")
"""Servers that answer well and are hard to stop, of which nothing may be left."""


def _completion(name: str, about: str, check: str) -> Liar:
    return Liar(
        name, about, "generated_output", f"generation.{check}", program="llama-completion", level="command"
    )


COMPLETION_LIARS = (
    _completion("echo", "prints the prompt and nothing else", "raw-text-is-usable"),
    _completion("silent", "ends well without a word", "raw-text-is-usable"),
    _completion("whitespace", "prints white space", "raw-text-is-usable"),
    _completion("repeated", "prints one token again and again", "raw-text-is-usable"),
    _completion("replacement", "prints bytes that are no text", "raw-text-is-usable"),
    _completion("control", "prints control characters", "raw-text-is-usable"),
    _completion("waits-for-input", "waits for input that never comes", "ends-by-itself"),
    _completion("hangs-after-text", "prints its text and stays", "ends-by-itself"),
    _completion("floods-stdout", "prints without end", "ends-by-itself"),
    _completion("floods-stderr", "logs without end", "ends-by-itself"),
    _completion("ignores-sigterm", "stays, and ignores SIGTERM", "ends-by-itself"),
    _completion("crashes", "prints its text and crashes", "ends-by-itself"),
    _completion("fails", "prints its text and fails", "ends-by-itself"),
    _completion("ignores-limit", "generates far more than asked", "token-limit-is-honoured"),
    Liar(
        "claims-gpu",
        "prints 31/31 layers offloaded, and keeps the weights on the CPU",
        "model_load",
        "load.weights-on-expected-device",
        program="llama-completion",
        level="command",
    ),
    Liar(
        "leaves-a-grandchild",
        "leaves a process of its own behind, in a session of its own",
        "generated_output",
        "",
        program="llama-completion",
        level="command",
    ),
)
"""Completion programs that lie; `leaves-a-grandchild` answers well, and nothing of it may be left."""

LIARS = (
    *SERVER_LIARS,
    *CROWD_LIARS,
    *SURFACE_LIARS,
    *TWISTED_LIARS,
    *ROUTER_LIARS,
    *SLEEP_LIARS,
    *COMMAND_LIARS,
    *COMPLETION_LIARS,
)


def install(folder: Path, program: Program, *lies: str, extra: tuple[str, ...] = ()) -> Path:
    """Write an executable of the program's name that runs the fake with lies; return its path."""
    module = "llama_server" if program == "llama-server" else "llama_completion"
    first = [argument for lie in lies for argument in ("--lie", lie)] + list(extra)
    path = folder / program
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.fakes.{module} import main\nsys.exit(main({first!r} + sys.argv[1:]))\n",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path
