"""Pages about diagnoses, made from the rules: what `explain` prints and what the documentation shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from llamaops.diagnosis.rule import Condition, Rule, rule_set

_FIELD = re.compile(r"\{(\w+)(?:\|[^{}]*)?\}")


def page(rules: Sequence[Rule]) -> str:
    """Return the page of one slug, in Markdown."""
    return "\n".join(_page(rules)) + "\n"


def table(slugs: Mapping[str, Sequence[Rule]]) -> str:
    """Return the table of all slugs, in Markdown."""
    lines = ["| diagnosis | boundary | severity | cause |", "| --- | --- | --- | --- |"]
    for slug, rules in sorted(slugs.items()):
        first = rules[0]
        says = _shown(first.says).replace("|", "\\|")
        lines.append(f"| `{slug}` | {first.boundary} | {first.severity} | {says} |")
    return "\n".join(lines) + "\n"


def _page(rules: Sequence[Rule]) -> Iterator[str]:
    first = rules[0]
    yield f"# {first.slug}"
    yield ""
    yield f"Boundary: {first.boundary}. Severity: {first.severity}. Sure: {first.sure}."
    for rule in rules:
        yield ""
        yield _shown(rule.says)
        if rule.explanation:
            yield ""
            yield rule.explanation
        yield ""
        yield "Seen by any of:"
        yield from (f"- `{text}`" for text in _patterns(rule.match))
        if rule.needs:
            yield "Together with each of:"
            yield from (f"- {' or '.join(f'`{t}`' for t in _patterns(c))}" for c in rule.needs)
        if rule.shows:
            yield "Shown with it, where they are there:"
            yield from (f"- {' or '.join(f'`{t}`' for t in _patterns(c))}" for c in rule.shows)
        if rule.facts:
            yield f"Where: {'; '.join(rule.facts)}"
        if rule.unless:
            yield "Unless:"
            yield from (f"- {' or '.join(f'`{t}`' for t in _patterns(c))}" for c in rule.unless)
    yield ""
    yield f"Next: {_shown(first.next.do)}"
    if first.next.run:
        yield f"Run: `{_shown(first.next.run)}`" + (" (changes state)" if first.next.changes_state else "")
    yield from (f"Rules out: {text}." for text in first.rules_out)
    yield from (f"Do not conclude: {text}." for text in first.do_not_conclude)
    if first.over:
        yield f"Explains: {', '.join(first.over)}."


def _patterns(condition: Condition) -> Iterator[str]:
    if condition.op == "line":
        where = f" (in {', '.join(condition.kinds)})" if condition.kinds else ""
        yield rule_set().signals[condition.signal].regex + where
    elif condition.op == "fact":
        yield condition.fact
    else:
        prefix = "not " if condition.op == "not" else ""
        for inner in condition.of:
            yield from (prefix + text for text in _patterns(inner))


def _shown(text: str) -> str:
    return _FIELD.sub(lambda m: f"<{m[1]}>", text)
