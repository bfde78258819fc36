"""The endpoints of the fake llama-server beside chat, and chat answers made to measure."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.llama_server import Handler

TEMPLATE = (
    "{% if tools %}{{ tools }}{% endif %}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
)
WORDS = " still and deep today with much more of it to come"


def _words(limit: int) -> str:
    return "".join(WORDS.split(" ")[0:1]) + " " + " ".join(WORDS.split()[:limit])


class LesserEndpoints:
    """Answers in the documented forms; the lie `surface` spoils one of them."""

    def _at_lora_adapters(self: Any, _request: object) -> None:
        self._json([])

    def _at_apply_template(self: Any, request: dict[str, Any]) -> None:
        content = request["messages"][-1]["content"]
        asked = "nothing" if self.state.lie.surface == "template" else content
        self._json({"prompt": f"<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n"})

    def _at_detokenize(self: Any, request: dict[str, Any]) -> None:
        text = self.state.cut.get(tuple(request["tokens"]), "?")
        self._json({"content": "another text" if self.state.lie.surface == "detokenize" else text})

    def _at_v1_completions(self: Any, request: dict[str, Any]) -> None:
        count = int(request["max_tokens"]) * (30 if self.state.lie.surface == "completions-long" else 1)
        usage = {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count}
        choice = {"text": _words(count), "index": 0, "logprobs": None, "finish_reason": "length"}
        self._json({"object": "text_completion", "choices": [choice], "usage": usage})

    def _at_completion(self: Any, request: dict[str, Any]) -> None:
        lie, context = self.state.lie, self.state.options.slot_context
        prompt = request.get("prompt", "")
        length = len(prompt) if isinstance(prompt, list) else len(str(prompt).split())
        limit = context // 2 if lie.features == "context-smaller" else context
        if length >= limit and lie.features != "context-truncates":
            if lie.features == "context-200":
                self._json({"content": "", "stop": True, "truncated": True, "tokens_evaluated": 0})
                return
            message = f"request ({length} tokens) exceeds the available context size ({context} tokens)"
            self._error(400, message, "exceed_context_size_error")
            return
        count = int(request.get("n_predict", 4))
        text = "" if lie.surface == "completion-empty" else _words(count)
        self._json(
            {
                "index": 0, "content": text, "tokens": [], "id_slot": 0, "stop": True, "stop_type": "limit",
                "tokens_predicted": count, "tokens_evaluated": length, "truncated": False,
            }
        )  # fmt: skip

    def _at_v1_responses(self: Any, request: dict[str, Any]) -> None:
        if self.state.lie.surface == "responses-500":
            self._error(500, "Compute error.", "server_error")
            return
        count = int(request["max_output_tokens"])
        content = [{"type": "output_text", "text": _words(count)}]
        output = [{"type": "message", "role": "assistant", "content": content}]
        usage = {"input_tokens": 9, "output_tokens": count, "total_tokens": 9 + count}
        shown = [] if self.state.lie.surface == "responses" else output
        self._json({"object": "response", "status": "completed", "output": shown, "usage": usage})

    def _at_v1_messages(self: Any, request: dict[str, Any]) -> None:
        count = int(request["max_tokens"])
        reason = None if self.state.lie.surface == "messages" else "max_tokens"
        self._json(
            {
                "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": reason,
                "stop_sequence": None,
                "content": [{"type": "text", "text": _words(count)}], "model": self.state.name,
                "usage": {"input_tokens": 9, "output_tokens": count},
            }
        )  # fmt: skip

    def _at_v1_messages_count_tokens(self: Any, _request: object) -> None:
        self._json({"input_tokens": 0 if self.state.lie.surface == "count" else 9})

    def _at_v1_rerank(self: Any, request: dict[str, Any]) -> None:
        if "--reranking" not in self.state.options.flags:
            message = "This server does not support reranking. Start it with `--reranking`"
            self._error(501, message, "not_supported_error")
            return
        scores = [-3.0, 4.0] if self.state.lie.surface == "rerank" else [4.0, -3.0]
        self._json({"results": [{"index": n, "relevance_score": s} for n, s in enumerate(scores)]})

    def _at_infill(self: Any, _request: object) -> None:
        self._error(501, "Infill is not supported by this model", "not_supported_error")

    def _at_slots_0(self: Any, _request: object) -> None:
        message = "This server does not support slots action. Start it with `--slot-save-path`"
        self._error(501, message, "not_supported_error")

    def _at_tools(self: Any, _request: object) -> None:
        if self.state.lie.surface == "tools":
            self._json([{"name": "run_shell_command"}])
        else:
            self._json({"error": {"message": "this feature is disabled", "type": "feature_disabled"}}, 403)

    def _at_cors_proxy(self: Any, _request: object) -> None:
        self._json({"error": {"message": "this feature is disabled", "type": "feature_disabled"}}, 403)


def made_to_measure(handler: Handler, request: dict[str, Any], prompt: str) -> bool:
    """Answer a request with a schema, a tool or a short grammar; false where it is an ordinary one."""
    lie, streamed = handler.state.lie.features, bool(request.get("stream"))
    if request.get("grammar"):
        _chat(handler, request, {"content": "ok"}, "stop", 2)
    elif request.get("response_format") and lie != "schema-ignored":
        count: object = "many" if lie == "schema-broken" else 2
        _chat(handler, request, {"content": json.dumps({"color": "red", "count": count})}, "stop", 12)
    elif request.get("tools") and not (lie == "tool-dropped" or (lie == "tool-stream" and streamed)):
        name = "run_command" if lie == "tool-unknown" else "get_weather"
        arguments = "{city" if lie == "tool-arguments" else json.dumps({"city": "Paris"})
        if lie == "tool-stream-cut" and streamed:
            arguments = arguments[:-3]
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
        _chat(handler, request, {"content": None, "tool_calls": [call]}, "tool_calls", 12)
    elif lie == "thinks" and not request.get("stream") and int(request.get("max_tokens") or 0) < 100:
        if (request.get("chat_template_kwargs") or {}).get("enable_thinking") is False:
            return False
        thought = "First I think of water, then of salt and of the harbour at night."
        _chat(
            handler, request, {"content": "", "reasoning_content": f"{thought} {prompt[:3]}"}, "length", None
        )
    else:
        return False
    return True


def _chat(
    handler: Handler, request: dict[str, Any], message: dict[str, object], finish: str, count: int | None
) -> None:
    """Send one chat answer, streamed in one piece where that was asked for."""
    count = int(request.get("max_tokens") or 1) if count is None else count
    usage = {"prompt_tokens": 30, "completion_tokens": count, "total_tokens": 30 + count}
    head = {"id": f"chatcmpl-{secrets.token_hex(8)}", "created": 1, "model": handler.state.name}
    handler.state.generated += count
    if request.get("stream"):
        item = {**head, "choices": [{"index": 0, "delta": message, "finish_reason": finish}]}
        handler._send(200, f"data: {json.dumps(item)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
        return
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    handler._json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
