"""What the child makes of templates: right ones, wrong ones, and ones that mean harm."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from llamaops.system import template_child as child

CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(autouse=True)
def _no_callbacks_of_others() -> Iterator[None]:
    """Take hypothesis' callback off the garbage collector: the child's alarm may ring inside of it."""
    others = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = others


def study(source: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    head, *lines = child.study(source, "<s>", "</s>")
    return head, {line["conversation"]: line for line in lines if "outcome" in line}


def test_a_plain_template() -> None:
    head, found = study(CHATML)
    assert head == {"compiles": True, "variables": [], "constructs": []}
    assert (
        found["user"]["text"] == "<|im_start|>user\nUSERWORD good morning<|im_end|>\n<|im_start|>assistant\n"
    )
    assert found["parts"]["outcome"] == "failed"
    assert set(found) == set(child.CONVERSATIONS)


def test_the_functions_that_templates_expect() -> None:
    source = (
        "{{ bos_token }}{% generation %}{{ {'b': 'ü', 'a': [1]}|tojson }}{% endgeneration %}"
        "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
        "{{ strftime_now('%d %b %Y') }}{% if tools %}{{ raise_exception('no tools') }}{% endif %}"
        "{{ mystery }}"
    )
    head, found = study(source)
    assert head["variables"] == ["mystery"]
    assert found["user"]["text"] == '<s>{"b": "ü", "a": [1]}0101 Jan 2026'
    assert found["tools"] == {"conversation": "tools", "outcome": "refused", "detail": "no tools"}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{% for %}", "Expected"),
        ("{{ x|nosuchfilter }}", "nosuchfilter"),
        ("{% nosuchtag %}", "nosuchtag"),
        ("{% if a %}", "Unexpected end of template"),
        ("{{ " + "(" * 2000 + ")" * 2000 + " }}", ""),
    ],
)
def test_a_template_that_does_not_compile(source: str, says: str) -> None:
    head, found = study(source)
    assert head["compiles"] is False
    assert says in head["detail"]
    assert found == {}


@pytest.mark.parametrize(
    ("source", "kind", "severe"),
    [
        ("{{ ''.__class__.__mro__ }}", "private-attribute", True),
        ("{{ ''['__class__'] }}", "private-attribute", True),
        ("{{ '{0.__class__}'.format(1) }}", "private-attribute", True),
        ("{% include 'x' %}", "another-file", True),
        ("{% import 'x' as y %}", "another-file", True),
        ("{% extends 'x' %}", "another-file", True),
        ("{% for i in range(10000000) %}{% endfor %}", "large-loop", True),
        ("{{ 9 ** 9 }}", "power", True),
        ("{{ 'a' * 100000000 }}", "repetition", True),
        ("{{ lipsum() }}", "odd-name", False),
        ("a\u200bb", "hidden-characters", False),
        ("{% if 'transfer money' in messages[0]['content'] %}x{% endif %}", "looks-for-words", False),
        ("{% for a in b %}" * 5 + "{% endfor %}" * 5, "nested-loops", False),
    ],
)
def test_what_has_no_business_in_a_template(source: str, kind: str, severe: bool) -> None:
    head, _found = study(source)
    assert (kind, severe) in {(one["kind"], one["severe"]) for one in head["constructs"]}


@pytest.mark.parametrize(
    "source",
    [
        "{% if '</think>' in messages[0]['content'] %}x{% endif %}",
        "{% if 'image' in messages[0]['content'] %}x{% endif %}",
        "{% for i in range(3) %}{{ 2 * 3 }}{% endfor %}",
    ],
)
def test_what_templates_do_is_not_odd(source: str) -> None:
    assert study(source)[0]["constructs"] == []


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "too_slow"),
        ("{% for i in range(99999) %}{{ 'a' * 99999 }}{% endfor %}", "too_long"),
        ("{{ ''.__class__.__mro__ }}", "failed"),
        ("{{ messages.append(1) }}", "failed"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "failed"),
    ],
)
def test_harm_is_bounded(source: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Short only where the time itself is the subject: on a busy machine the others would run out of it.
    monkeypatch.setattr(child, "CONVERSATION_S", 0.3 if outcome == "too_slow" else 30.0)
    monkeypatch.setattr(child, "CONVERSATIONS", {"user": child.CONVERSATIONS["user"]})
    _head, found = study(source)
    assert found["user"]["outcome"] == outcome
    assert len(found["user"]["detail"]) <= child.SHOWN_DETAIL
