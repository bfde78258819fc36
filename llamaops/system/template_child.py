"""Compile a chat template and render fixed conversations with it; a program of its own.

It prints one JSON line for the template and one before and after each conversation, so that what does not
return is known by name. It bounds itself in memory and time, and whoever starts it bounds it again. Run as

    python -I template_child.py FILE OFFSET LENGTH BOS EOS

The environment is that of transformers and of llama.cpp: the immutable sandbox, blocks trimmed, loop
controls, `tojson`, `raise_exception`, `strftime_now`, and the `generation` block. Dates stand still, so that
a template's output has one fingerprint.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

MEMORY_BYTES = 1 << 30
CPU_S = 30
CONVERSATION_S = 2.0
OUTPUT_BYTES = 1 << 20
SHOWN_CHARACTERS = 16_384
LONGEST_BYTES = 1 << 20
LARGE_RANGE = 10_000
LARGE_REPEAT = 100_000
DEEP_LOOPS = 5
MOST_CONSTRUCTS = 32
SHOWN_DETAIL = 120

SYSTEM = "SYSTEMWORD be brief"
USER = "USERWORD good morning"
ANSWER = "ANSWERWORD good evening"
AGAIN = "AGAINWORD how late is it"
THOUGHT = "THOUGHTWORD it is late"
RESULT = "RESULTWORD 17 degrees"
ARGUMENTS = {"city": "CITYWORD"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "toolword_weather",
            "description": "Tell the weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "A city"}},
                "required": ["city"],
            },
        },
    }
]
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "toolword_weather", "arguments": ARGUMENTS},
}


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a message of a conversation."""
    return {"role": role, "content": content, **more}


_ASKED = [message("user", USER)]
_ANSWERED = [*_ASKED, message("assistant", ANSWER), message("user", AGAIN)]
_CALLED = [*_ASKED, message("assistant", "", tool_calls=[CALL])]
_TOLD = [*_CALLED, message("tool", RESULT, tool_call_id="call00001", name="toolword_weather")]
CONVERSATIONS: dict[str, dict[str, Any]] = {
    "user": {"messages": _ASKED},
    "user-no-prompt": {"messages": _ASKED, "add_generation_prompt": False},
    "system": {"messages": [message("system", SYSTEM), *_ASKED]},
    "multi-turn": {"messages": _ANSWERED},
    "two-users": {"messages": [*_ASKED, message("user", AGAIN)]},
    "parts": {"messages": [message("user", [{"type": "text", "text": USER}])]},
    "tools": {"messages": _ASKED, "tools": TOOLS},
    "tool-call": {
        "messages": [*_TOLD, message("assistant", ANSWER), message("user", AGAIN)],
        "tools": TOOLS,
    },
    "thinking-on": {"messages": _ASKED, "enable_thinking": True},
    "thinking-off": {"messages": _ASKED, "enable_thinking": False},
    "reasoning": {
        "messages": [
            *_ASKED,
            message("assistant", ANSWER, reasoning_content=THOUGHT, thinking=THOUGHT),
            message("user", AGAIN),
        ]
    },
}
GIVEN = {
    "messages", "tools", "documents", "add_generation_prompt", "enable_thinking", "bos_token", "eos_token",
    "raise_exception", "strftime_now", "namespace", "range", "dict", "cycler", "joiner", "lipsum",
}  # fmt: skip
PRIVATE_WORDS = (
    "__class__", "__globals__", "__init__", "__subclasses__", "__builtins__", "__mro__", "__import__",
)  # fmt: skip
PART_KEYS = {"text", "parts", "blocks", "type", "image", "image_url", "video", "audio", "value"}
ODD_GLOBALS = {"lipsum": "random text", "self": "the template itself"}
HIDDEN = {
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A),
    0xFEFF, *range(0xE0000, 0xE0080),
}  # fmt: skip


class RefusedError(Exception):
    """The template refuses a conversation in its own words."""


class TooLongError(Exception):
    """The template gave more than we take."""


class TooSlowError(Exception):
    """The template took longer than we wait."""


def environment() -> Any:  # noqa: ANN401 - jinja2 is imported here only
    """Return the environment that chat templates expect."""
    from datetime import UTC, datetime

    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The block that marks what the assistant says; its content is rendered as it is."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

        def parse(self, parser: Any) -> Any:  # noqa: ANN401
            """Return the statements inside."""
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def to_json(
        value: Any,  # noqa: ANN401
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def refuse(text: object = "") -> None:
        raise RefusedError(str(text))

    def now(form: str) -> str:
        return datetime(2026, 1, 1, 12, tzinfo=UTC).strftime(form)

    found = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    found.filters["tojson"] = to_json
    found.globals["raise_exception"] = refuse
    found.globals["strftime_now"] = now
    return found


class Oddities:
    """What has no business in a chat template, with its line; `severe` where it can do harm."""

    def __init__(self, tree: Any, source: str) -> None:  # noqa: ANN401
        self.found: list[dict[str, Any]] = []
        self._tree = tree
        self._files_and_attributes()
        self._work()
        self._names(source)

    def _add(self, kind: str, node: Any, detail: str, *, severe: bool) -> None:  # noqa: ANN401
        if len(self.found) < MOST_CONSTRUCTS:
            line = getattr(node, "lineno", 0)
            self.found.append({"kind": kind, "line": line, "detail": detail[:SHOWN_DETAIL], "severe": severe})

    def _files_and_attributes(self) -> None:
        from jinja2 import nodes

        for node in self._tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
            self._add("another-file", node, type(node).__name__.lower(), severe=True)
        for node in self._tree.find_all((nodes.Getattr, nodes.Getitem)):
            name = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", "")
            if isinstance(name, str) and name.startswith("_"):
                self._add("private-attribute", node, name, severe=True)
        for node in self._tree.find_all(nodes.Const):
            if isinstance(node.value, str) and any(word in node.value for word in PRIVATE_WORDS):
                self._add("private-attribute", node, node.value, severe=True)

    def _work(self) -> None:
        """Look for what takes all time or memory."""
        from jinja2 import nodes

        for node in self._tree.find_all(nodes.Call):
            sizes = [abs(size) for one in node.args if isinstance(size := getattr(one, "value", 0), int)]
            if getattr(node.node, "name", "") == "range" and max(sizes, default=0) >= LARGE_RANGE:
                self._add("large-loop", node, f"range of {max(sizes)}", severe=True)
        for node in self._tree.find_all(nodes.Pow):
            self._add("power", node, "a power can take all memory", severe=True)
        for node in self._tree.find_all(nodes.Mul):
            sizes = [
                one.value for one in (node.left, node.right) if isinstance(getattr(one, "value", ""), int)
            ]
            if max(sizes, default=0) >= LARGE_REPEAT:
                self._add("repetition", node, f"something times {max(sizes)}", severe=True)
        if _depth(self._tree, nodes.For) >= DEEP_LOOPS:
            self._add("nested-loops", self._tree, f"{DEEP_LOOPS} loops or more in each other", severe=False)

    def _names(self, source: str) -> None:
        from jinja2 import nodes

        for node in self._tree.find_all(nodes.Name):
            if node.name in ODD_GLOBALS and node.ctx == "load":
                self._add("odd-name", node, f"{node.name}: {ODD_GLOBALS[node.name]}", severe=False)
        for node in self._tree.find_all(nodes.Compare):
            self._comparison(node)
        hidden = sorted({f"U+{ord(one):04X}" for one in source if ord(one) in HIDDEN})
        if hidden:
            self._add("hidden-characters", self._tree, ", ".join(hidden), severe=False)

    def _comparison(self, node: Any) -> None:  # noqa: ANN401
        """Tell of a search for plain words in what is said: a trigger, unless it is a marker."""
        word = getattr(node.expr, "value", None)
        plain = isinstance(word, str) and word not in PART_KEYS and word.replace(" ", "").isalnum()
        for operand in node.ops if plain else ():
            text = repr(operand.expr)
            if operand.op in {"in", "notin"} and ("'content'" in text and "Name(name='content'" not in text):
                self._add("looks-for-words", node, f"{word!r} in what is said", severe=False)


def _depth(node: Any, kind: Any) -> int:  # noqa: ANN401
    inner = max((_depth(child, kind) for child in node.iter_child_nodes()), default=0)
    return inner + isinstance(node, kind)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def render(template: Any, variables: dict[str, Any], bos: str, eos: str) -> dict[str, Any]:  # noqa: ANN401
    """Render one conversation within bounds and say how it ended."""
    values = {"add_generation_prompt": True, "bos_token": bos, "eos_token": eos, **variables}
    parts: list[str] = []
    length = 0
    try:
        with _limited(CONVERSATION_S):
            for part in template.generate(**json.loads(json.dumps(values))):
                length += len(part)
                if length > OUTPUT_BYTES:
                    raise TooLongError  # noqa: TRY301 - one way out
                parts.append(part)
    except RefusedError as error:
        return {"outcome": "refused", "detail": str(error)[:SHOWN_DETAIL]}
    except TooLongError:
        return {"outcome": "too_long", "detail": f"more than {OUTPUT_BYTES} characters"}
    except TooSlowError:
        return {"outcome": "too_slow", "detail": f"more than {CONVERSATION_S:g} s"}
    except (Exception, MemoryError) as error:  # noqa: BLE001 - whatever a template raises is its outcome
        return {"outcome": "failed", "detail": f"{type(error).__name__}: {error}"[:SHOWN_DETAIL]}
    text = "".join(parts)
    data = text.encode("utf-8", "replace")
    digest = hashlib.sha256(data).hexdigest()
    shown = (
        text
        if len(text) <= SHOWN_CHARACTERS
        else text[: SHOWN_CHARACTERS // 2] + text[-SHOWN_CHARACTERS // 2 :]
    )
    return {"outcome": "rendered", "bytes": len(data), "sha256": digest, "text": shown}


def _explained(error: BaseException) -> str:
    if isinstance(error, TooSlowError):
        return f"compiling it takes more than {CONVERSATION_S:g} s"
    said = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
    return str(said)[:SHOWN_DETAIL]


def study(source: str, bos: str, eos: str) -> Iterator[dict[str, Any]]:
    """Yield what comes of a template: whether it compiles, what is in it, and each conversation."""
    from jinja2 import meta

    names: list[str] = []
    odd: list[dict[str, Any]] = []
    try:
        with _limited(CONVERSATION_S):
            env = environment()
            tree = env.parse(source)
            odd = Oddities(tree, source).found  # first: what follows computes constants, however large
            names = sorted(meta.find_undeclared_variables(tree) - GIVEN)[:MOST_CONSTRUCTS]
            template = env.from_string(source)
    except (Exception, MemoryError) as error:  # noqa: BLE001 - a template may break the parser too
        why = {"detail": _explained(error), "line": getattr(error, "lineno", None)}
        yield {"compiles": False, "variables": names, "constructs": odd, **why}
        return
    yield {"compiles": True, "variables": names, "constructs": odd}
    for name, variables in CONVERSATIONS.items():
        yield {"conversation": name}
        yield {"conversation": name, **render(template, variables, bos, eos)}


def _bound_ourselves() -> None:
    import resource

    for kind, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_S)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def main(argv: list[str]) -> int:
    """Study the template that lies at a place of a file."""
    path, offset, length, bos, eos = argv
    _bound_ourselves()
    with open(path, "rb") as file:
        file.seek(int(offset))
        data = file.read(min(int(length), LONGEST_BYTES))
    for line in study(data.decode("utf-8", "replace"), bos, eos):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
