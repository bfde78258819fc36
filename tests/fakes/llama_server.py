"""A program that answers as llama-server does, honestly or with a lie; standard library only.

    python -m tests.fakes.llama_server --lie chat-echo --port 8080 -m model.gguf --alias NAME ...

It takes llama-server's flags, and prints its --version, --help, --list-devices and load log, so that it
can stand in for the binary (see `liars.install`). Its model knows three answers and has a token for each
word. `--token-ms` sets its pace, `--figures` the figures of its model as JSON.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import itertools
import json
import os
import re
import secrets
import signal
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fakes.lesser_endpoints import TEMPLATE, LesserEndpoints, made_to_measure
from tests.fakes.router import Router, Sleep
from tests.fakes.server_console import Options, describe, load_log
from tests.fakes.server_lies import REPLACEMENT, Behaviour, behaviour_from
from tests.fakes.twists import twisted, twisted_pieces

ANSWERS = {
    "sea": "The sea is wide and never still, and its colour changes with the light of each hour. At night "
    "one hears it breathe on the stones below the old harbour wall, long after every boat came home.",
    "days": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday are the seven days of a week, "
    "and in most offices two of them are free.",
}
DEFAULT_ANSWER = "I am a small model that knows little, but this much I can say about your question today."


def tokens_of(text: str) -> list[str]:
    """Cut a text into words with the space before them."""
    return re.findall(r"\s*\S+", text)


def _said(piece: str, number: int, crowd: str) -> str:
    """Return what a piece says; the first has no space before it."""
    if crowd == "one-empty":
        return ""
    return piece if number else piece.removeprefix(" ")


class State:
    """What the running fake remembers."""

    def __init__(self, options: Options, lie: Behaviour) -> None:
        self.options = options
        self.lie = lie
        self.healthy_answers = 0
        self.chats = 0
        self.prompt_tokens = 0
        self.generated = 0
        self.fixed_id = secrets.token_hex(8)
        self.work = Slots(options, lie)
        self.crowded = 0
        self.cut: dict[tuple[int, ...], str] = {}
        self.accent = ""
        self.sleep = Sleep(options, lie)
        self.router = None if "--models" not in options.values else Router(options, lie, State.of_one)

    @classmethod
    def of_one(cls, options: Options, lie: Behaviour) -> State:
        """Return the state of one model behind a router."""
        alone = copy.copy(options)
        alone.values = {name: value for name, value in options.values.items() if name != "--models"}
        return cls(alone, lie)

    @property
    def name(self) -> str:
        return self.lie.alias or self.options.aliases[0]


class Slots:
    """Who is at work: a request takes a slot or waits, as the lie has it."""

    def __init__(self, options: Options, lie: Behaviour) -> None:
        self.lie = lie
        self.count = options.slots
        self.taken: dict[int, int] = {}
        """Tokens generated, by number of the slot."""
        self.waiting = 0
        self.gathering = False
        self.busy_decodes = self.decodes = 0
        self.changed = threading.Condition()

    def _limit(self) -> int:
        limits = {"serial": 1, "half": max(1, self.count // 2), "twice": self.count * 2}
        return limits.get(self.lie.batching, self.count)

    def _may_start(self) -> bool:
        if self.lie.batching == "no-join" and self.taken and not self.gathering:
            return False
        return len(self.taken) < self._limit()

    @contextlib.contextmanager
    def slot(self, limit: int | None = None) -> Iterator[int]:
        """Wait for a slot and hold it."""
        with self.changed:
            self.waiting += 1
            while not self._may_start() or (limit is not None and len(self.taken) >= limit):
                self.changed.wait()
            self.waiting -= 1
            number = next(n for n in range(10_000) if n not in self.taken)
            self.taken[number] = 0
        try:
            yield number
        finally:
            with self.changed:
                del self.taken[number]
                # Without continuous batching those that wait start together, once nobody works.
                if self.lie.batching == "no-join" and not self.taken and self.waiting:
                    self.gathering = True
                    threading.Timer(0.02, self._stop_gathering).start()
                self.changed.notify_all()

    def _stop_gathering(self) -> None:
        with self.changed:
            self.gathering = False

    def token(self, number: int) -> None:
        """Note that a slot has generated a token; those at work generate theirs in the same decode."""
        with self.changed:
            self.taken[number] += 1
            self.busy_decodes += 1
            self.decodes += number == min(self.taken)


class Handler(LesserEndpoints, BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "llama.cpp"
    sys_version = ""
    state: State

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass

    def version_string(self) -> str:
        return "llama.cpp"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.state = type(self).state
        lie = self.state.lie
        if self.state.sleep.meet(self, path):
            return
        if lie.everything_ok:
            self._json({"status": "ok"})
        elif path in {"/health", "/v1/health"}:
            self._health()
        elif not self._allowed(path):
            self._error(401, "Invalid API Key", "authentication_error")
        else:
            try:
                request = json.loads(body or b"{}")
            except ValueError:
                if lie.surface == "bad-json":
                    self._json({"choices": [{"message": {"role": "assistant", "content": "fine"}}]})
                else:
                    self._error(400, "parse error", "invalid_request_error")
                return
            if self.state.router is not None and self.state.router.answer(self, path, query, request):
                return
            route = getattr(self, "_at" + re.sub(r"\W", "_", path), None)
            if route is not None:
                route(request)
            elif lie.surface == "any-path":
                self._json({"status": "ok"})
            else:
                self._error(404, "File Not Found", "not_found_error")

    def _allowed(self, path: str) -> bool:
        key, lie = self.state.options.key, self.state.lie
        sent = (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip()
        sent = sent or self.headers.get("X-Api-Key") or ""
        if key is None or path in {"/v1/models", "/models"} or lie.key == "ignored":
            return True
        if lie.key == "any":
            return bool(sent)
        if (lie.key, path) in {("chat-open", "/v1/chat/completions"), ("props-open", "/props")}:
            return True
        return sent == key

    # ------------------------------------------------------------------ light endpoints

    def _health(self) -> None:
        lie, state = self.state.lie, self.state
        if lie.health == "never" or (lie.health == "until-chat" and state.chats):
            self._error(503, "Loading model", "unavailable_error")
        elif lie.health == "html":
            self._send(200, b"<!doctype html><title>Welcome</title>", "text/html")
        elif lie.health == "error":
            self._json({"error": {"message": "no backend", "type": "server_error", "code": 500}})
        elif lie.health == "unknown-status":
            self._json({"status": "degraded"})
        else:
            state.healthy_answers += 1
            self._json({"status": "ok"})
            if lie.die_after_health and state.healthy_answers >= lie.die_after_health:
                self.wfile.flush()
                os._exit(1)

    def _at_v1_models(self, _request: object) -> None:
        options, lie = self.state.options, self.state.lie
        if lie.models == "html":
            self._send(200, b"<html><body>It works!</body></html>", "text/html")
            return
        if lie.models == "types":
            self._json({"object": "list", "data": {"id": 7}})
            return
        meta = {
            **options.figures,
            "n_ctx": lie.context or options.slot_context,
            "ftype": "Q4_1",
            **lie.figures,
        }
        aliases = [lie.alias] if lie.alias else options.aliases
        item = {
            "id": self.state.name, "aliases": aliases, "tags": [], "object": "model",
            "created": int(time.time()), "owned_by": "llamacpp", "meta": meta,
        }  # fmt: skip
        self._json({"object": "list", "data": [] if lie.models == "empty" else [item]})

    _at_models = _at_v1_models

    def _at_props(self, _request: object) -> None:
        options, lie = self.state.options, self.state.lie
        self._json(
            {
                "default_generation_settings": {"params": {}, "n_ctx": lie.context or options.slot_context},
                "total_slots": lie.slots or options.slots,
                "model_alias": self.state.name,
                "model_path": lie.model_path or options.model,
                "chat_template": TEMPLATE,
                "chat_template_caps": {"supports_tools": True},
                "build_info": lie.build or options.build,
                "endpoint_slots": "--no-slots" not in options.flags,
                "endpoint_props": lie.surface == "props",
                "endpoint_metrics": "--metrics" in options.flags,
                "is_sleeping": self.state.sleep.says,
            }
        )

    def _at_slots(self, _request: object) -> None:
        options, lie = self.state.options, self.state.lie
        if "--no-slots" in options.flags:
            self._error(501, "This server does not support slots endpoint.", "not_supported_error")
            return
        count = lie.slots or options.slots
        context = lie.context or options.slot_context
        slot = {"n_ctx": context, "speculative": False, "prompt": "somebody's words"}
        taken = dict(self.state.work.taken)
        shown = []
        for number in range(count):
            busy = number in taken
            shown.append({"id": number, **slot, "is_processing": busy})
            if busy:
                counts = {"has_next_token": True, "n_remain": 9, "n_decoded": taken[number]}
                shown[-1].update(id_task=number, next_token=[counts])
        self._json(shown)

    def _at_metrics(self, _request: object) -> None:
        if "--metrics" not in self.state.options.flags or self.state.lie.surface == "metrics-off":
            self._error(501, "This server does not support metrics endpoint.", "not_supported_error")
            return
        times = {"stuck": 0, "doubled": 2}.get(self.state.lie.counters, 1)
        values = {
            "prompt_tokens_total": 0
            if self.state.lie.counters == "prompts-stuck"
            else self.state.prompt_tokens,
            "tokens_predicted_total": self.state.generated * times,
            "n_decode_total": self.state.work.decodes,
        }
        if self.state.lie.counters == "random":
            values["tokens_predicted_total"] *= 40
        work = self.state.work
        gauges = {
            "requests_processing": len(work.taken),
            "requests_deferred": work.waiting,
            "n_busy_slots_per_decode": work.busy_decodes / work.decodes if work.decodes else 0,
        }
        lines = [f"# TYPE llamacpp:{k} counter\nllamacpp:{k} {v}" for k, v in values.items()]
        lines += [f"# TYPE llamacpp:{k} gauge\nllamacpp:{k} {v}" for k, v in gauges.items()]
        self._send(200, ("\n".join(lines) + "\n").encode(), "text/plain; version=0.0.4")

    def _at_tokenize(self, request: dict[str, Any]) -> None:
        if self.state.lie.surface == "tokenize-html" and str(request.get("content")).startswith("The sea"):
            self._send(200, b"<html>", "text/html")
            return
        content = str(request.get("content", ""))
        count = len(tokens_of(content))
        tokens = [100 + len(self.state.cut), *range(201, 200 + count)][:count]
        self.state.cut[tuple(tokens)] = content
        self._json({"tokens": tokens})

    def _at_v1_embeddings(self, request: dict[str, Any]) -> None:
        lie = self.state.lie
        if "--embeddings" not in self.state.options.flags and lie.embeddings == "ok":
            self._error(501, "This server does not support embeddings.", "not_supported_error")
            return
        if lie.embeddings == "500":
            self._error(500, "internal", "server_error")
            return
        inputs = request.get("input", [])
        texts = inputs if isinstance(inputs, list) else [inputs]
        width = int(self.state.options.figures["n_embd"]) // (2 if lie.embeddings == "narrow" else 1)
        vectors: list[list[object]] = []
        for text in texts:
            seed = sum(map(ord, text))
            vectors.append([((seed * (at + 3)) % 101) / 101 - 0.5 for at in range(width)])
        if lie.embeddings == "constant":
            vectors = [[0.5] * width for _ in texts]
        elif lie.embeddings == "zero":
            vectors = [[0.0] * width for _ in texts]
        elif lie.embeddings == "nan":
            vectors = [[None] * width for _ in texts]
        data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        self._json({"object": "list", "data": data, "usage": {"prompt_tokens": 9, "total_tokens": 9}})

    # ------------------------------------------------------------------ the model

    def _pieces(self, prompt: str, limit: int, *, on_and_on: bool = False) -> list[str]:
        """Return the tokens of an answer, lies included."""
        lie = self.state.lie
        fixed = {
            "empty": "", "null": "", "whitespace": " \n \n ", "repeated": " the" * 60,
            "phrase": " of the" * 40, "replacement": REPLACEMENT * 30, "control": "\x00\x01\x02" * 9,
            "punctuation": " ... !! ??" * 5, "markup": "<|im_end|> <|im_start|> </s>", "echo": prompt,
            "said-echo": f"You said: {prompt}", "canned": ANSWERS["sea"],
        }  # fmt: skip
        text = fixed.get(lie.content)
        if text is None:
            key = next((word for word in ANSWERS if word in prompt), None)
            text = self.state.accent + (ANSWERS[key] if key else DEFAULT_ANSWER)
        pieces = tokens_of(text) if text.strip() else ([text] if text else [])
        if on_and_on and pieces:
            pieces = [f" {pieces[at % len(pieces)].strip()}{at // len(pieces) or ''}" for at in range(limit)]
        if lie.over_limit:
            return [f"{piece} and" for piece in pieces] * 40
        return pieces[:limit]

    def _at_v1_chat_completions(self, request: dict[str, Any]) -> None:
        state, lie = self.state, self.state.lie
        state.chats += 1
        if lie.chat != "ok":
            self._bad_chat()
            return
        prompt = str(request["messages"][-1]["content"])
        limit = int(request.get("max_tokens") or 64)
        if lie.surface == "unknown-field" and "llamaops_no_such" in request:
            self._error(500, "unexpected field", "server_error")
            return
        if lie.surface == "huge" and limit >= 10**9:
            self._error(500, "bad allocation", "server_error")
            return
        if made_to_measure(self, request, prompt):
            return
        on_and_on = bool(request.get("ignore_eos"))
        pieces = self._pieces(prompt, limit, on_and_on=on_and_on)
        if on_and_on and lie.crowd == "swapped":
            prompt = "One answer for everybody."
        if on_and_on and lie.crowd == "over-limit":
            pieces += pieces
        finish: str | None = "length" if len(pieces) >= limit else "stop"
        if lie.finish != "auto":
            finish = lie.finish
        usage = self._usage(prompt, pieces, limit)
        state.prompt_tokens += usage["prompt_tokens"]
        state.generated += len(pieces)
        one_id = lie.fixed_id or (on_and_on and lie.crowd == "same-id")
        head = {
            "created": 1_700_000_000 if lie.fixed_id else int(time.time()),
            "id": f"chatcmpl-{state.fixed_id if one_id else secrets.token_hex(8)}",
            "model": lie.chat_model or state.name,
            "system_fingerprint": state.options.build,
        }
        if request.get("stream"):
            self._stream(head, pieces, finish, usage, request)
            return
        with state.work.slot():
            time.sleep(min(len(pieces), 64) * state.options.token_s)
        message: dict[str, object] = {"role": "assistant", "content": "".join(pieces).removeprefix(" ")}
        if lie.content == "null":
            message["content"] = None
        choice = {"index": 0, "message": message, "finish_reason": finish}
        if finish is None:
            del choice["finish_reason"]
        answer = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        if lie.usage == "missing":
            del answer["usage"]
        if lie.timings:
            answer["timings"] = self._timings(pieces)
        self._json(answer)

    def _timings(self, pieces: list[str]) -> dict[str, object]:
        seconds = max(len(pieces) - 1, 0) * self.state.options.token_s
        seconds /= 1000 if self.state.lie.fast_timings else 1
        return {"prompt_n": 20, "predicted_n": len(pieces), "predicted_ms": seconds * 1000}

    def _usage(self, prompt: str, pieces: list[str], limit: int) -> dict[str, int]:
        lie = self.state.lie
        prompt_tokens, generated = len(tokens_of(prompt)) + 20, len(pieces)
        if lie.hides_over_limit:
            generated = limit
        if lie.usage == "zero":
            generated = 0
        elif lie.usage == "small":
            generated = 1
        elif lie.usage == "less":
            generated = generated * 2 // 3
        elif lie.usage == "large":
            generated = limit * 10
        if lie.usage == "prompt":
            prompt_tokens = 1
        total = prompt_tokens + generated + (7 if lie.usage == "sum" else 0)
        return {"prompt_tokens": prompt_tokens, "completion_tokens": generated, "total_tokens": total}

    # ------------------------------------------------------------------ streams

    def _stream(
        self,
        head: dict[str, object],
        pieces: list[str],
        finish: str | None,
        usage: dict[str, int],
        request: dict[str, Any],
    ) -> None:
        lie = self.state.lie
        if lie.stream == "json":
            self._json({**head, "choices": [{"message": {"role": "assistant", "content": "".join(pieces)}}]})
            return
        if lie.stream == "hang":
            time.sleep(3600)
        crowd = self._crowd(request)
        if crowd == "busy-503":
            self._error(503, "no slot available", "unavailable_error")
            return
        slot: int | None = None
        with contextlib.ExitStack() as stack:
            if lie.batching != "serial-first":
                slot = stack.enter_context(self.state.work.slot())
            self._events(head, pieces, finish, usage, request, (stack, slot, crowd))

    def _crowd(self, request: dict[str, Any]) -> str:
        """Return what is to become of this one of several requests at once."""
        kind = self.state.lie.crowd
        if kind == "ok" or not (request.get("ignore_eos") and request.get("stream")):
            return ""
        self.state.crowded += 1
        alone = kind in {"one-fails", "one-empty", "one-hangs", "one-cut", "busy-503", "over-limit"}
        return "" if alone and self.state.crowded != 2 else kind

    def _events(
        self,
        head: dict[str, object],
        pieces: list[str],
        finish: str | None,
        usage: dict[str, int],
        request: dict[str, Any],
        work: tuple[contextlib.ExitStack, int | None, str],
    ) -> None:
        lie, pace = self.state.lie, self.state.options.token_s
        stack, slot, crowd = work
        head = {**head, "object": "chat.completion.chunk"}
        if lie.stream_model:
            head["model"] = lie.stream_model
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        buffered: list[bytes] = []
        numbers = itertools.count()

        def event(item: dict[str, object] | str) -> None:
            items = [item] if isinstance(item, str) else twisted_pieces(lie.twist, next(numbers), item)
            for each in items:
                send(each)

        def send(item: dict[str, object] | str) -> None:
            if isinstance(item, dict) and lie.stream == "ids":
                item = {**item, "id": f"chatcmpl-{secrets.token_hex(8)}"}
            text = item if isinstance(item, str) else json.dumps({**head, **item})
            data = f"data: {text}\n\n".encode()
            if lie.stream in {"at-once", "lumps"}:
                buffered.append(data)
            else:
                self._chunk(data)

        def choice(delta: dict[str, object], reason: str | None = None) -> dict[str, object]:
            return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        event(choice({"role": "assistant", "content": None}))
        for number, piece in enumerate(self._shown(pieces)):
            event(choice({"content": _said(piece, number, crowd)}))
            time.sleep(pace)
            if slot is None:
                slot = stack.enter_context(self.state.work.slot(1))
            self.state.work.token(slot)
            if number == 3 and self._fails_in_a_crowd(crowd, event):
                return
            if number == len(pieces) // 2 and self._breaks_off(event):
                return
            if lie.stream == "lumps" and number % (len(pieces) // 2 + 1) == len(pieces) // 2:
                self._chunk(b"".join(buffered))
                buffered.clear()
        if lie.stream != "no-finish":
            event(choice({}, finish))
        if request.get("stream_options", {}).get("include_usage") and lie.stream != "no-usage":
            event(self._last(usage, pieces))
        if lie.stream != "no-done":
            event("[DONE]")
        if buffered:
            self._chunk(b"".join(buffered))
        self._chunk(b"")

    def _last(self, usage: dict[str, int], pieces: list[str]) -> dict[str, object]:
        last: dict[str, object] = {"choices": []}
        if self.state.lie.usage != "missing":
            last["usage"] = usage
        if self.state.lie.timings:
            last["timings"] = self._timings(pieces)
        return last

    def _fails_in_a_crowd(self, crowd: str, event: Any) -> bool:
        """Do what becomes of one of several requests; true ends it."""
        if crowd in {"all-fail", "one-fails"}:
            message = "Context size has been exceeded."
            event(json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}}))
            self._chunk(b"")
        elif crowd == "one-hangs":
            time.sleep(3600)
        elif crowd == "one-cut":
            self.close_connection = True
        return crowd in {"all-fail", "one-fails", "one-cut"}

    def _shown(self, pieces: list[str]) -> list[str]:
        """Return the pieces of text that are streamed."""
        if self.state.lie.stream == "one-piece":
            time.sleep(len(pieces) * self.state.options.token_s)
            return ["".join(pieces)]
        return [] if self.state.lie.stream == "role-only" else pieces

    def _breaks_off(self, event: Any) -> bool:
        """Do in the middle of a stream what the lie says; true ends it."""
        lie = self.state.lie
        if lie.stream == "stall":
            time.sleep(3600)
        if lie.stream == "error-event":
            event(json.dumps({"error": {"code": 500, "message": "compute error", "type": "server_error"}}))
        if lie.stream == "error-field":
            self._chunk(b'error: {"code":500,"message":"compute error"}\n\n')
        if lie.stream == "garbage":
            event("{ this is not JSON")
            return False
        if lie.stream == "chunks":
            self.wfile.write(b"zz\r\nnot a chunk\r\n")
        if lie.stream in {"cut-clean", "error-event", "error-field"}:
            self._chunk(b"")
        self.close_connection = True
        if lie.stream == "reset":
            self.connection.setsockopt(
                1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00"
            )  # SO_LINGER: reset on close
        return lie.stream in {"cut", "cut-clean", "error-event", "error-field", "chunks", "reset"}

    def _chunk(self, data: bytes) -> None:
        keeps = self.state.lie.features == "keeps-slot"
        with contextlib.suppress(OSError) if keeps else contextlib.nullcontext():
            self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
            self.wfile.flush()

    # ------------------------------------------------------------------ hostile answers

    def _bad_chat(self) -> None:
        kind = self.state.lie.chat
        plain = {
            "500": (500, "Compute error.", "server_error"),
            "501": (501, "This server does not support completions.", "not_supported_error"),
            "404": (404, "File Not Found", "not_found_error"),
        }
        self.close_connection = True
        if kind in plain:
            self._error(*plain[kind])
        elif kind == "error-200":
            self._json({"error": {"code": 500, "message": "out of memory", "type": "server_error"}})
        elif kind == "html":
            self._send(200, b"<!doctype html><title>502 Bad Gateway</title>", "text/html")
        elif kind == "types":
            self._json({"choices": [{"message": {"role": "assistant", "content": 7}, "finish_reason": 1}]})
        elif kind == "no-choices":
            self._json({"object": "chat.completion", "choices": []})
        elif kind == "redirect":
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:9/v1/chat/completions")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif kind == "gzip":
            bomb = gzip.compress(b"0" * (32 << 20))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(bomb)))
            self.end_headers()
            self.wfile.write(bomb)
        else:
            self._raw_chat(kind)

    def _raw_chat(self, kind: str) -> None:
        if kind == "die":
            os._exit(139)
        if kind == "hang":
            time.sleep(3600)
        start = b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\n"
        if kind == "giant-header":
            self.wfile.write(start + b"X-Filler: " + b"a" * (8 << 20) + b"\r\n\r\n")
        elif kind == "infinite":
            self.wfile.write(start + b"Content-Type: application/json\r\n\r\n" + b'{"choices": "')
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"a" * 65536)
        elif kind == "drip":
            with contextlib.suppress(OSError):
                for byte in start + b"X-Slow: " + b"a" * 3600:
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.2)
        elif kind == "short-body":
            self.wfile.write(start + b"Content-Length: 5000\r\n\r\n" + b'{"choices": [')
        elif kind == "chunks":
            self.wfile.write(start + b"Transfer-Encoding: chunked\r\n\r\nnot-a-size\r\n{}\r\n")
        # bare-close: nothing at all

    # ------------------------------------------------------------------ sending

    def _json(self, value: object, status: int = 200) -> None:
        body = twisted(self.state.lie.twist, self.path, status, value)
        self._send(status, body, "application/json; charset=utf-8")

    def _error(self, status: int, message: str, kind: str) -> None:
        self._json({"error": {"code": status, "message": message, "type": kind}}, status)

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin") or "")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(socketserver.ThreadingTCPServer):
    """Listens; each connection has a thread."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 32

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that has gone is no news


def _flood(lie: Behaviour) -> None:
    while lie.floods_log:
        sys.stderr.write("0.00.300.000 I srv  update_slots: all slots are idle " + "x" * 2000 + "\n")


def main(argv: list[str]) -> int:
    """Run the fake until a signal ends it."""
    options = Options(argv)
    lie = behaviour_from(options.lies or ["honest"])
    described = describe(options, lie, argv)
    if described is not None:
        return described
    state = State(options, lie)
    handler = type("BoundHandler", (Handler,), {"state": state})
    try:
        server = Server((lie.listen or options.host, options.port), handler)
    except OSError:
        where = f"hostname: {options.host}, port: {options.port}"
        print(f"0.00.030.000 E srv         start: couldn't bind HTTP server socket, {where}", file=sys.stderr)
        return 1
    options.port = server.server_address[1]
    if lie.also_listen:
        other = Server((lie.also_listen, 0), handler)
        threading.Thread(target=other.serve_forever, daemon=True).start()
    if lie.forks and os.fork() == 0:
        os.setsid()
        time.sleep(120)
        os._exit(0)
    if lie.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("\n".join(load_log(options, lie)), file=sys.stderr, flush=True)
    if lie.floods_log:
        threading.Thread(target=_flood, args=(lie,), daemon=True).start()
    server.serve_forever(poll_interval=0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
