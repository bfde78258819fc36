"""A stand-in for `server` of March 2024: its help, its log, and answers in the forms of that time.

    python -m tests.fakes.old_server --port 8080 -m model.gguf --alias NAME ...

It answers as the recorded build does (tests/data/engines/2024-03), and is as easily harmed: a completion
without n_predict never ends, and a prompt of token numbers ends it. `--lie` spoils it as it does the fake of
today, and `--lie cut-stream` ends its streams in the middle, in an orderly way.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.fakes.lesser_endpoints import _words
from tests.fakes.llama_server import Handler, Server, State
from tests.fakes.server_console import Options
from tests.fakes.server_lies import behaviour_from

FOLDER = Path(__file__).resolve().parent.parent / "data" / "engines" / "2024-03"
ABSENT = (
    "lora_adapters", "apply_template", "v1_responses", "v1_messages", "v1_messages_count_tokens", "v1_rerank",
    "tools", "cors_proxy", "models",
)  # fmt: skip
UNKNOWN = ("--version", "--list-devices", "--seed", "--no-ui", "--no-webui", "--offline", "--verbosity")
OPEN = frozenset({"/v1/models", "/props", "/slots", "/tokenize", "/detokenize", "/metrics"})


class OldHandler(Handler):
    """One connection; what it does not override is as in a build of today."""

    cut = False

    def _health(self) -> None:
        busy = len(self.state.work.taken)
        idle = max(0, self.state.options.slots - busy)
        status = "ok" if idle else "no slot available"
        self._json({"slots_idle": idle, "slots_processing": busy, "status": status})

    def _allowed(self, path: str) -> bool:
        return path in OPEN or super()._allowed(path)

    def _error(self, status: int, message: str, kind: str) -> None:
        status = 500 if message == "parse error" else status
        del kind
        self._send(status, message.encode(), "text/plain; charset=utf-8")

    def _at_props(self, _request: object) -> None:
        settings = {"n_ctx": self.state.options.slot_context, "model": self.state.name, "seed": -1}
        self._json(
            {
                "assistant_name": "", "user_name": "", "default_generation_settings": settings,
                "total_slots": self.state.options.slots,
            }
        )  # fmt: skip

    def _at_slots(self, _request: object) -> None:
        shown = []
        for number in range(self.state.options.slots):
            done = self.state.work.taken.get(number)
            counts = {"has_next_token": done is not None, "n_decoded": done or 0, "n_remain": -1}
            shown.append(
                {
                    "id": number, "id_task": -1, "state": int(done is not None), "next_token": counts,
                    "n_ctx": self.state.options.slot_context, "prompt": "somebody's words", "grammar": "",
                }
            )  # fmt: skip
        self._json(shown)

    def _at_completion(self, request: dict[str, Any]) -> None:
        if isinstance(request.get("prompt"), list):
            os._exit(134)  # type must be string, but is array
        if "n_predict" not in request:
            time.sleep(3600)
        count = int(request["n_predict"])
        self._json(
            {
                "content": _words(count), "generation_settings": {}, "id_slot": 0, "model": self.state.name,
                "prompt": request.get("prompt"), "stop": True, "stopped_limit": True,
                "tokens_evaluated": 4, "tokens_predicted": count, "truncated": False,
            }
        )  # fmt: skip

    _at_v1_completions = _at_completion

    def _stream(
        self,
        head: dict[str, object],
        pieces: list[str],
        finish: str | None,
        usage: dict[str, int],
        request: dict[str, Any],
    ) -> None:
        """Send pieces with an id each, and a last one with the reason; no usage and no terminal marker."""
        del usage, request
        with self.state.work.slot() as slot:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            shown = pieces[: len(pieces) // 2] if self.cut else pieces
            for number, piece in enumerate(shown):
                content = piece if number else piece.removeprefix(" ")
                self._piece(head, {"content": content}, None)
                time.sleep(self.state.options.token_s)
                self.state.work.token(slot)
            if not self.cut:
                self._piece(head, {}, finish)
            self._chunk(b"")

    def _piece(self, head: dict[str, object], delta: dict[str, object], reason: str | None) -> None:
        choice = {"delta": delta, "finish_reason": reason, "index": 0}
        item = {
            "choices": [choice], "created": int(time.time()), "id": f"chatcmpl-{secrets.token_hex(16)}",
            "model": head["model"], "object": "chat.completion.chunk",
        }  # fmt: skip
        self._chunk(f"data: {json.dumps(item)}\n\n".encode())


for _name in ABSENT:
    setattr(OldHandler, f"_at_{_name}", None)


def lines_of_its_own(options: Options) -> list[str]:
    """Return what goes to standard output, which a pipe gets late."""
    shared = {"level": "INFO", "tid": "140152303845376", "timestamp": 1710000000}
    rows: list[dict[str, object]] = [
        {"build": 1, "commit": "c2101a2", "function": "main", "line": 2634, "msg": "build info"},
        {"function": "initialize", "msg": "initializing slots", "n_slots": options.slots},
    ]
    for number in range(options.slots):
        slot = {"id_slot": number, "msg": "new slot", "n_ctx_slot": options.slot_context}
        rows.append({"function": "initialize", **slot})
    address = {"hostname": options.host, "port": str(options.port), "n_threads_http": "4"}
    rows += [
        {"function": "main", "msg": "model loaded"},
        {"function": "main", "msg": "HTTP server listening", **address},
    ]
    return [json.dumps({**row, **shared}) for row in rows]


def library_lines(options: Options) -> str:
    """Return the recorded lines of the library, which come at once, with this run's file and context."""
    text = (FOLDER / "server.log.stderr.txt").read_text(encoding="utf-8")
    text = text.replace("/models/SmolLM2-135M-Instruct.Q4_1.gguf", options.model)
    return text.replace("n_ctx      = 1024", f"n_ctx      = {options.context}")


def main(argv: list[str]) -> int:
    """Run the fake until a signal ends it."""
    usage = (FOLDER / "server.help.stdout.txt").read_text(encoding="utf-8")
    if "--help" in argv:
        sys.stdout.write(usage)
        return 0
    unknown = next((word for word in argv if word in UNKNOWN), None)
    if unknown is not None:
        sys.stderr.write(f"error: unknown argument: {unknown}\n")
        sys.stdout.write(usage)
        return 1
    options = Options([word for word in argv if word != "--log-disable"])
    cut = "cut-stream" in options.lies
    lies = [name for name in options.lies if name != "cut-stream"]
    state = State(options, behaviour_from(lies or ["honest"]))
    handler = type("BoundHandler", (OldHandler,), {"state": state, "cut": cut})
    server = Server((options.host, options.port), handler)
    options.port = server.server_address[1]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    print("\n".join(lines_of_its_own(options)))  # not flushed: what SIGTERM ends never writes it
    sys.stderr.write(library_lines(options))
    sys.stderr.flush()
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever(poll_interval=0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
