"""The checks of templates, on what the child really says of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.gguf_file import GgufFacts, facts_of
from llamaops.facts.gguf_probe import look
from llamaops.facts.templates import TemplatesFacts, collect_templates
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Unknown
from llamaops.schema.finding import Finding
from llamaops.system import template_child as child
from llamaops.system.process import Completed, NotStarted
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeSystem, completed
from tests.unit.system.test_template_child import CHATML

PATH = "/m/tiny.gguf"
FILE = "/m/own.jinja"
TOKENS = [*g.TOKENS[:5], "<|im_start|>", "<|im_end|>", "x"]


@dataclass
class ChildSystem(FakeSystem):
    """A machine whose only program is the child, run here; `cut` drops lines from its end."""

    cut: int = 0
    silent: bool = False
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, bounds: Bounds, env: object = None) -> Completed:
        self.asked.append(tuple(argv))
        assert argv[:2] == [sys.executable, "-I"]
        assert argv[2].endswith("template_child.py")
        path, offset, length, bos, eos = argv[3:]
        if self.silent:
            return completed(argv, end=NotStarted("no", 2))
        data = self.read_bytes(path, limit_bytes=int(length), offset=int(offset))
        lines = [json.dumps(line) for line in child.study(data.decode("utf-8", "replace"), bos, eos)]
        return completed(argv, stdout="\n".join(lines[: len(lines) - self.cut]) + "\n")


def judge(
    template: str | None,
    *,
    file: str | None = None,
    tokens: Sequence[str] = TOKENS,
    cut: int = 0,
    silent: bool = False,
) -> dict[str, Finding]:
    model = g.FakeGguf().with_key("tokenizer.ggml.tokens", g.Array(g.STRING, tokens))
    model = model.without_key("tokenizer.chat_template")
    if template is not None:
        model = model.with_key("tokenizer.chat_template", template)
    files: dict[str, str | bytes | OSError] = {PATH: model.to_bytes()}
    if file is not None:
        files[FILE] = file
    system = ChildSystem(files=files, cut=cut, silent=silent)
    probe = look(system, PATH)
    facts = collect_templates(system, probe, [FILE] if file is not None else [])
    groups: dict[type, object] = {TemplatesFacts: facts, GgufFacts: facts_of(probe)}
    found = (run_check(check, groups) for check in all_checks(["template"]))
    return {
        finding.check.removeprefix("model.template-"): finding for finding in found if finding is not None
    }


def test_a_plain_template_passes_everything() -> None:
    found = judge(CHATML)
    assert {finding.status for finding in found.values()} == {"passed"}
    assert {finding.check for finding in found.values()} == {
        "model.template-compiles",
        "model.template-renders-a-conversation",
        "model.template-supports-chat",
        "model.template-is-harmless",
        "model.template-is-plain",
        "model.template-ends-turns",
    }
    assert "system messages, several turns" in found["supports-chat"].summary
    assert "not tools" in found["supports-chat"].summary


def test_without_a_template_there_is_nothing_to_judge() -> None:
    assert judge(None) == {}


def test_a_file_comes_before_the_models_own() -> None:
    found = judge("{% broken", file=CHATML)
    assert found["renders-a-conversation"].status == "passed"
    assert found["compiles"].status == "failed"
    assert judge(CHATML, file="{% broken")["compiles"].status == "failed"


@pytest.mark.parametrize(
    ("template", "check", "status", "says"),
    [
        ("{% for %}", "compiles", "failed", "line 1"),
        ("{{ raise_exception('never') }}", "renders-a-conversation", "failed", "refused, never"),
        ("{{ messages[5].content.x }}", "renders-a-conversation", "failed", "failed"),
        ("{{ functions[0].name.x }}", "supports-chat", "unknown", "no conversation"),
        ("{{ messages[-1]['content'] }}", "supports-chat", "failed", "dropped without a word"),
        ("{{ ''.__class__ }}" + CHATML, "is-harmless", "failed", "private-attribute (__class__)"),
        ("{{ lipsum }}" + CHATML, "is-plain", "failed", "random text"),
    ],
)
def test_a_template_with_a_fault(template: str, check: str, status: str, says: str) -> None:
    finding = judge(template)[check]
    assert finding.status == status
    assert says in finding.summary


def test_variables_that_only_a_client_gives_are_no_fault() -> None:
    assert "renders-a-conversation" not in judge("{{ functions[0].name.x }}")


def test_a_system_message_that_is_refused_is_told() -> None:
    source = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}" + CHATML
    finding = judge(source)["supports-chat"]
    assert finding.status == "passed"
    assert "not system messages" in finding.summary


@pytest.mark.parametrize(
    ("tokens", "template", "status", "says"),
    [
        (TOKENS, CHATML, "passed", "<|im_end|>"),
        (g.TOKENS, CHATML, "failed", "no token of the vocabulary"),
        ([*TOKENS[:-1], "<|stop|>"], CHATML.replace("<|im_end|>", "<|stop|>"), "failed", "ends a generation"),
        (TOKENS, CHATML.replace("<|im_end|>", "</s>"), "passed", "</s>"),
        (TOKENS, CHATML.replace("<|im_end|>", ""), None, ""),
    ],
)
def test_the_end_of_a_turn(tokens: Sequence[str], template: str, status: str | None, says: str) -> None:
    finding = judge(template, tokens=tokens).get("ends-turns")
    assert (finding and finding.status) == status
    assert finding is None or says in finding.summary


def test_a_child_that_does_not_end_names_the_conversation() -> None:
    found = judge(CHATML, cut=1)
    assert found["renders-a-conversation"].status == "failed"
    assert "reasoning: not ended" in found["renders-a-conversation"].summary


def test_a_child_that_says_nothing_is_no_verdict() -> None:
    found = judge(CHATML, silent=True)
    assert found["compiles"].status == "unknown"
    assert "passed" not in {one.status for one in found.values() if one.severity == "required"}


def test_a_file_that_is_not_there_is_no_verdict() -> None:
    system = ChildSystem(files={PATH: g.FakeGguf().to_bytes()})
    facts = collect_templates(system, look(system, PATH), ["/m/none.jinja"])
    (first, second) = facts.templates.need()
    assert first.origin == "file"
    assert isinstance(first.compiles, Unknown)
    assert second.compiles.need() is True
