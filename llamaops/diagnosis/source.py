"""Rule files: YAML to rules, with every mistake reported at its place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from llamaops.diagnosis import engine, expression
from llamaops.diagnosis.needles import needles_of
from llamaops.diagnosis.rule import KINDS, Condition, Next, Rule, RuleSet, Signal

RULES_FOLDER = Path(__file__).with_name("rules")
_KEYS = {
    "slug", "boundary", "severity", "match", "needs", "unless", "shows", "facts", "says", "next", "tier",
    "sure", "why", "over", "since", "until", "recovers", "rules_out", "do_not_conclude", "explanation",
    "examples",
}  # fmt: skip
_REQUIRED = ("slug", "boundary", "severity", "match", "says", "next", "examples")
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

Example = str | list[dict[str, str]]


class Examples(msgspec.Struct, frozen=True):
    """Situations that a rule must and must not match."""

    slug: str
    place: str
    match: tuple[Example, ...]
    no_match: tuple[Example, ...]


class RuleErrors(ValueError):  # noqa: N818 - many at once
    """Every mistake in the rule files, each with its place."""


class Source(msgspec.Struct, frozen=True):
    """The rules as written."""

    rules: RuleSet
    examples: tuple[Examples, ...]


def read_source(folder: Path = RULES_FOLDER) -> Source:
    """Read and validate every rule file.

    Raises: RuleErrors with all mistakes.
    """
    return parse_source({path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.yaml"))})


def digest_of(texts: Mapping[str, str]) -> str:
    """Return the digest by which the compact form knows its source."""
    joined = "\0".join(f"{name}\0{text}" for name, text in sorted(texts.items()))
    return hashlib.sha256(joined.encode()).hexdigest()


def parse_source(texts: Mapping[str, str]) -> Source:
    """Parse rule files given by area.

    Raises: RuleErrors with all mistakes.
    """
    reader = _Reader()
    for area, text in texts.items():
        reader.area(area, text)
    reader.check_references()
    if reader.errors:
        raise RuleErrors("\n".join(reader.errors))
    rules = RuleSet(digest=digest_of(texts), signals=reader.finished(), rules=tuple(reader.rules))
    return Source(rules, tuple(reader.examples))


class _Reader:
    def __init__(self) -> None:
        self.errors: list[str] = []
        self.rules: list[Rule] = []
        self.signals: list[Signal] = []
        self.examples: list[Examples] = []
        self._index: dict[str, int] = {}
        self._kinds: list[set[str]] = []
        self._place = ""

    def area(self, area: str, text: str) -> None:
        import yaml

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            tree = yaml.compose(text, Loader=loader)
            items = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
        except yaml.YAMLError as error:
            self.errors.append(f"rules/{area}.yaml: {error}".replace("\n", " "))
            return
        if not isinstance(items, list):
            self.errors.append(f"rules/{area}.yaml: a list of rules is expected")
            return
        nodes = tree.value if tree is not None else []
        for item, node in zip(items, nodes, strict=True):
            self._place = f"rules/{area}.yaml:{node.start_mark.line + 1}"
            try:
                self._rule(area, item)
            except (ValueError, TypeError, KeyError) as error:
                self._error(f"{error}")

    def finished(self) -> tuple[Signal, ...]:
        """Return the signals, each with the kinds of parts that it is looked for in."""
        explaining = {index for rule in self.rules for index in _lines_of(rule.match)}
        return tuple(
            msgspec.structs.replace(signal, kinds=tuple(sorted(kinds)), explains=index in explaining)
            for index, (signal, kinds) in enumerate(zip(self.signals, self._kinds, strict=True))
        )

    def check_references(self) -> None:
        slugs = {rule.slug for rule in self.rules}
        for rule in self.rules:
            for slug in rule.over:
                if slug not in slugs:
                    self.errors.append(f"rules/{rule.area}.yaml: {rule.slug}: over names no rule: {slug}")

    def _error(self, text: str) -> None:
        self.errors.append(f"{self._place}: {text}")

    def _rule(self, area: str, item: Any) -> None:  # noqa: ANN401 - whatever the file holds
        if not isinstance(item, dict):
            raise TypeError("a rule is a mapping")
        for key in sorted(set(item) - _KEYS):
            self._error(f"unknown key {key}")
        missing = [key for key in _REQUIRED if key not in item]
        if missing:
            raise ValueError(f"missing: {', '.join(missing)}")
        if not _SLUG.fullmatch(str(item["slug"])):
            self._error(f"not a slug: {item['slug']}")
        plain = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in item.items()
            if key in _KEYS and key not in {"match", "needs", "unless", "shows", "examples", "next"}
        }
        for text in plain.get("facts", ()):
            expression.parse(text)
        rule = msgspec.convert(
            {
                **plain,
                "area": area,
                "match": self._any(item["match"]),
                "needs": tuple(self._condition(c) for c in item.get("needs", ())),
                "unless": tuple(self._condition(c) for c in item.get("unless", ())),
                "shows": tuple(self._condition(c) for c in item.get("shows", ())),
                "next": msgspec.convert(_next(item["next"]), Next),
            },
            Rule,
        )
        self.rules.append(rule)
        self._examples(rule.slug, item["examples"])

    def _examples(self, slug: str, given: Any) -> None:  # noqa: ANN401
        match, not_ = given.get("match") or [], given.get("not") or []
        if not match or not not_:
            self._error(f"{slug}: examples need at least one under match and one under not")
        self.examples.append(Examples(slug, self._place, tuple(match), tuple(not_)))

    def _any(self, given: Any) -> Condition:  # noqa: ANN401
        if isinstance(given, list):
            if len(given) == 1:
                return self._condition(given[0])
            return Condition("any", of=tuple(self._condition(c) for c in given))
        return self._condition(given)

    def _condition(self, given: Any) -> Condition:  # noqa: ANN401
        if isinstance(given, str):
            return self._line(given, ())
        if not isinstance(given, dict) or len(given) != 1:
            raise TypeError(f"a condition is a pattern or one key with a value: {given!r}")
        [(key, value)] = given.items()
        if key == "fact":
            expression.parse(value)
            return Condition("fact", fact=value)
        if key in {"any", "all"}:
            return Condition(key, of=tuple(self._condition(c) for c in value))
        if key == "not":
            return Condition("not", of=(self._any(value),))
        kinds = tuple(part.strip() for part in str(key).split("|"))
        wrong = [kind for kind in kinds if kind not in KINDS]
        if wrong:
            raise ValueError(f"unknown kind of part: {', '.join(wrong)}")
        if isinstance(value, list):
            return Condition("any", of=tuple(self._line(text, kinds) for text in value))
        return self._line(value, kinds)

    def _line(self, regex: str, kinds: Sequence[str]) -> Condition:
        known = self._index.get(regex)
        if known is not None:
            self._kinds[known] = self._kinds[known] | set(kinds) if kinds and self._kinds[known] else set()
        if regex not in self._index or ({"log", "text"} & set(kinds or ("log",)) and self._small(regex)):
            self._index[regex] = len(self.signals)
            self._kinds.append(set(kinds))
            self.signals.append(_signal(regex, small=bool(kinds) and not {"log", "text"} & set(kinds)))
        return Condition("line", signal=self._index[regex], kinds=tuple(kinds))

    def _small(self, regex: str) -> bool:
        return not self.signals[self._index[regex]].needles


def _lines_of(condition: Condition) -> Iterator[int]:
    if condition.op == "line":
        yield condition.signal
    for inner in condition.of:
        yield from _lines_of(inner)


def _next(given: Any) -> Any:  # noqa: ANN401
    return {"do": given} if isinstance(given, str) else given


def _signal(regex: str, *, small: bool) -> Signal:
    """Make a signal; one for small parts only, which are read line by line, needs no substring."""
    fold = regex.startswith("(?i)")
    try:
        re.compile(regex)
        needles = needles_of(regex)
    except re.error as error:
        raise ValueError(f"pattern {regex!r}: {error}") from error
    except ValueError as error:
        if not small:
            raise ValueError(f"pattern {regex!r}: {error}") from error
        needles = ()
    module = engine.re2()
    if module is not None:
        try:
            engine.search(regex, "")
        except module.error as error:
            raise ValueError(f"pattern {regex!r}: {error}") from error
    for word in (r"(?=", r"(?!", r"(?<=", r"(?<!", r"\1", r"\2"):
        if word in regex:
            raise ValueError(f"pattern {regex!r}: {word} needs backtracking")
    return Signal(regex, tuple(sorted({n.lower() for n in needles})) if fold else needles, fold)
