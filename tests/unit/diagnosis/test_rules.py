"""Every rule holds of its own examples, and of none that it must not match."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.diagnosis import build
from llamaops.diagnosis.candidates import candidates
from llamaops.diagnosis.parts import Part
from llamaops.diagnosis.rule import Rule, RuleSet, rule_set
from llamaops.diagnosis.scan import scan
from llamaops.diagnosis.situation import situation_of
from llamaops.diagnosis.source import Example, Examples, read_source

SOURCE = read_source()


def parts_of(example: Example) -> list[Part]:
    if isinstance(example, str):
        return [Part("log", "log", example)]
    return [Part(item["kind"], f"part {n}", item["text"]) for n, item in enumerate(example)]


def holds(rule: Rule, example: Example) -> bool:
    rules = RuleSet(SOURCE.rules.digest, SOURCE.rules.signals, (rule,))
    scans = [scan(index, part, rules.signals) for index, part in enumerate(parts_of(example))]
    return bool(candidates(rules, situation_of(scans)))


PAIRS = [
    pytest.param(rule, examples, id=f"{rule.slug}-{number}")
    for number, (rule, examples) in enumerate(zip(SOURCE.rules.rules, SOURCE.examples, strict=True))
]


@pytest.mark.parametrize(("rule", "examples"), PAIRS)
def test_rule_holds_of_its_examples_only(rule: Rule, examples: Examples) -> None:
    assert rule.slug == examples.slug
    for example in examples.match:
        assert holds(rule, example), f"must match: {example}"
    for example in examples.no_match:
        assert not holds(rule, example), f"must not match: {example}"


def test_compact_form_is_up_to_date() -> None:
    assert build.TARGET.read_bytes() == build.compact(), "run: python -m llamaops.diagnosis.build"
    assert msgspec.json.encode(rule_set()) + b"\n" == build.TARGET.read_bytes()
