"""The one stage between what was seen and whatever leaves the process.

`Redactor` replaces, in this order of precedence: the values that the tool was told (`given`), in every
encoding; secrets known by their form (`shapes`) or by their place (`places`); and what identifies people,
machines and addresses (`network`). Equal values get equal placeholders, so that a reader can correlate.
Only this module makes a `Redacted`, and only a `Redacted` is rendered or stored.
"""

# ruff: noqa: PLR2004, SIM905 - lengths of what is looked for; words read better one after the other
# ruff: noqa: ANN401 - plain data, as JSON has it

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from llamaops.record import names
from llamaops.record.hosts import ORDINARY_HOSTS
from llamaops.record.identifiers import find_identifiers
from llamaops.record.offsets import Rewrite, rewrite
from llamaops.record.people import ORDINARY_USERS
from llamaops.record.places import find_places
from llamaops.record.published_words import PUBLISHED_WORDS
from llamaops.record.secrets import Secrets
from llamaops.record.shapes import find_shapes
from llamaops.record.spans import HOME, HOST, SECRET, USER, Span, merged
from llamaops.record.values import is_no_value, looks_secret, names_a_file
from llamaops.record.writable import are_writable, writable
from llamaops.schema.removal import Removal

if TYPE_CHECKING:  # imported where there are values: most runs are given none
    from llamaops.record.given import GivenValues

GIVEN = "given-value"
_BETWEEN = "\n\0\n"  # between the strings of a record that are searched together
_MOST_REMEMBERED = 20_000
_MOST_LEARNED = 256
_MOST_SEARCHED = 16 << 20  # characters of strings whose search is remembered
_TERMINAL_WIDTHS = frozenset((80, 100, 120, 132, 160))


class Redacted:
    """A record that may leave the process; made by `redact` and nowhere else."""

    __slots__ = ("record", "removed")

    def __init__(self, record: dict[str, Any], removed: tuple[Removal, ...]) -> None:
        self.record = record
        self.removed = removed


def _prepared(values: tuple[str, ...]) -> GivenValues | None:
    if not values:
        return None
    from llamaops.record.given import GivenValues

    return GivenValues(values)


def redact(record: dict[str, Any], redactor: Redactor) -> Redacted:
    """Return the record without secrets and identifiers, and the account of what was removed.

    Args:
        record: Plain data, as `msgspec.to_builtins` makes it; not changed. Its member `removed`, if it
            has one, is set to the account.
        redactor: The redactor of the run, so that placeholders agree with the journal's.
    """
    redactor.reset_account()
    clean = redactor.clean(record)
    removed = redactor.removed
    if isinstance(clean, dict) and "removed" in clean:
        clean["removed"] = [{"rule": item.rule, "place": item.place, "count": item.count} for item in removed]
    return Redacted(clean, removed)


class Redactor:
    """Replaces secrets and identifiers by placeholders, the same for the same value."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self._secrets = secrets or Secrets()
        self._given = _prepared(self._secrets.values)
        self._numbers: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}
        self._learned: dict[str, str] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._searched: dict[str, bool] = {}
        self._searched_size = 0

    # ---------------------------------------------------------------------------------------- text

    def text(self, text: str, place: str = "") -> str:
        """Return the text with every secret and identifier replaced.

        Args:
            text: Any text; a second time changes nothing.
            place: Where it stands, as a JSON pointer, for the account.
        """
        return self._replaced(text, self.spans(text), place)

    def head(self, text: str, at: int) -> tuple[str, str]:
        """Return the beginning of a text redacted, and the rest as it is.

        Args:
            text: A text that goes on.
            at: Where to cut; moved when it would cut what has to go.
        """
        spans = self.spans(text)
        for span in spans:
            if span.start < at < span.end:
                at = span.start or span.end
        return self._replaced(text[:at], [span for span in spans if span.end <= at], ""), text[at:]

    def spans(self, text: str) -> list[Span]:
        """Return the parts of a text that have to go, in order, none overlapping."""
        if len(text) < 3:
            return []
        found = [*self._given_spans(text), *self._own_spans(text)]
        found += _pattern_spans(text)
        self._learn(found)
        for value, kind in self._learned.items():
            if value in text:
                found += [Span(at, at + len(value), kind, "seen-before", value) for at in _words(text, value)]
        return merged(found)

    def forget(self) -> None:
        """Forget what earlier texts taught: what follows has nothing to do with them."""
        self._learned.clear()

    @property
    def given(self) -> tuple[str, ...]:
        """Return the values that the redactor was told, for whoever has to know where one might be cut."""
        return self._secrets.values

    @property
    def removed(self) -> tuple[Removal, ...]:
        """Return what was replaced so far: rule, place and count."""
        return tuple(
            Removal(rule=rule, place=place, count=count) for (place, rule), count in self._counts.items()
        )

    def reset_account(self) -> None:
        """Begin a new account of removals; placeholders stay as they are."""
        self._counts.clear()

    def _given_spans(self, text: str) -> Iterator[Span]:
        if self._given is None:
            return
        from llamaops.record.given import encoded

        data = encoded(text)
        hits = self._given.find(data)
        if not hits:
            return
        place = _character_places(text, data)
        for start, end, value in hits:
            yield Span(place(start), place(end), SECRET, GIVEN, value)

    def _own_spans(self, text: str) -> Iterator[Span]:
        """Yield our own home, user and host names."""
        own = self._secrets
        if own.home and own.home in text:
            yield from (
                Span(at, at + len(own.home), HOME, "own-home", own.home) for at in _words(text, own.home)
            )
        for user in own.users:
            if user in text and len(user) >= 3 and _tells(user, ORDINARY_USERS):
                yield from (Span(at, at + len(user), USER, "own-user", user) for at in _words(text, user))
        if own.hosts:
            lower = text.lower()
            for host in own.hosts:
                if host.lower() in lower and len(host) >= 3 and _tells(host, ORDINARY_HOSTS):
                    yield from (
                        Span(at, at + len(host), HOST, "own-host", host) for at in _words(lower, host.lower())
                    )

    def _learn(self, spans: list[Span]) -> None:
        """Remember what a place gave away, since the next line may say it without the place."""
        for span in spans:
            if len(self._learned) >= _MOST_LEARNED:
                return
            if (
                span.kind == SECRET
                and span.rule != GIVEN
                and len(span.value) < 512
                and looks_secret(span.value)
            ):
                self._learned.setdefault(span.value, SECRET)
            elif span.kind == HOST and span.rule in ("host-name", "host-place", "named-host", "user-at-host"):
                short = span.value.split(".")[0]
                if len(short) >= 5 and any(c.isdigit() or c == "-" for c in short):
                    self._learned.setdefault(short, HOST)

    # -------------------------------------------------------------------------------- placeholders

    def _replaced(self, text: str, spans: list[Span], place: str) -> str:
        if not spans:
            return text
        # A text that was redacted before has placeholders of its own, which ours must not be taken for.
        there = set(_placeholders().findall(text)) if "<" in text else set()
        parts, at = [], 0
        for span in spans:
            key = (place, span.rule)
            self._counts[key] = self._counts.get(key, 0) + 1
            parts += [text[at : span.start], self._placeholder(span, there)]
            at = span.end
        return "".join([*parts, text[at:]])

    def _placeholder(self, span: Span, there: set[str]) -> str:
        if span.kind == HOME:
            return self._label(HOME, 0)
        value = span.value.split(".")[0].lower() if span.kind == HOST else span.value
        key = (span.kind, value)
        number = self._numbers.get(key)
        if number is None:
            number = self._last.get(span.kind, 0) + 1
            while f"<{span.kind}-{number}>" in there:
                number += 1
            self._last[span.kind] = number
            if len(self._numbers) < _MOST_REMEMBERED:
                self._numbers[key] = number
        return self._label(span.kind, number)

    def _label(self, kind: str, number: int) -> str:
        """Return a placeholder that holds no given value: `secret` may be somebody's password."""
        end = f"-{number}" if number else ""
        for label in (
            f"<{kind}{end}>",
            f"<removed{end}>",
            f"<gone{end}>",
            f"<{number}>",
            "[\u2026]",
            "\u2588\u2588",
        ):
            if not any(value in label for value in self._secrets.values):
                return label
        return "\u2591"

    # -------------------------------------------------------------------------------------- records

    def clean(self, data: Any) -> Any:
        """Return plain data redacted, keys included, as a copy that can be written as UTF-8."""
        strings: dict[str, None] = {}
        _gather(data, strings)
        walked = self._walk(data, None, self._suspects(strings), told=False)
        # Afterwards: a secret of that kind would not be recognised in its escaped form.
        return walked if are_writable(strings) else writable(walked)

    def _suspects(self, strings: Collection[str]) -> set[str]:
        """Return the strings with something to replace.

        A record repeats what its journal had. Each string is searched once, with the others that are new;
        of those that were found clean before, only what was learned since can be a part.
        """
        known = self._searched
        seen = [string for string in strings if string in known]
        fresh = [string for string in strings if string not in known]
        before = {string for string in seen if known[string]}
        found = self._search_together(fresh)
        self._remember(fresh, found)
        found |= before
        if self._learned:
            whole = _BETWEEN.join(seen)
            for value in [value for value in self._learned if value in whole]:
                found.update(string for string in seen if value in string)
        return found

    def _remember(self, strings: list[str], found: set[str]) -> None:
        self._searched_size += sum(map(len, strings))
        if self._searched_size > _MOST_SEARCHED:
            self._searched_size = 0
            self._searched.clear()
            return
        for string in strings:
            self._searched[string] = string in found

    def _search_together(self, strings: list[str]) -> set[str]:
        """Return the strings with something to replace, found in one search over all of them."""
        starts, at = [], 0
        for string in strings:
            starts.append(at)
            at += len(string) + len(_BETWEEN)
        whole = _BETWEEN.join(strings)
        found: set[str] = set()
        for span in self.spans(whole):
            first = max(0, bisect_right(starts, span.start) - 1)
            last = bisect_right(starts, span.end)
            found.update(strings[first:last])
        return found

    def _walk(self, data: Any, path: _Path, suspects: set[str], *, told: bool) -> Any:
        if isinstance(data, str):
            if told and not is_no_value(data) and not names_a_file(data):
                return self._replaced(
                    data, [Span(0, len(data), SECRET, "named-secret", data)], _pointer(path)
                )
            return self.text(data, _pointer(path)) if data in suspects else data
        if isinstance(data, dict):
            return self._walk_dict(data, path, suspects, told=told)
        if isinstance(data, list | tuple):
            return [
                self._walk(item, (path, index), suspects, told=told or _is_argument(data, index))
                for index, item in enumerate(data)
            ]
        return data

    def _walk_dict(
        self, data: dict[Any, Any], path: _Path, suspects: set[str], *, told: bool
    ) -> dict[Any, Any]:
        named = data.get("name")
        pair = isinstance(named, str) and names.meaning(named) == names.STRONG
        result: dict[Any, Any] = {}
        for key, value in data.items():
            tells = isinstance(key, str) and names.meaning(key) == names.STRONG
            inner = tells or (key == "value" and (told or pair))
            clean_key = self.text(key, _pointer(path)) if isinstance(key, str) and key in suspects else key
            while clean_key in result:
                clean_key = f"{clean_key}+"
            result[clean_key] = self._walk(value, (path, key), suspects, told=inner)
        if (
            {"id", "sha256", "text"} <= data.keys()
            and result["text"] != data["text"]
            and self._lost_a_secret(_pointer((path, "text")))
        ):
            result["sha256"] = None
        return result

    def _lost_a_secret(self, place: str) -> bool:
        return any(where == place and rule not in _IDENTIFYING_RULES for where, rule in self._counts)


_Path = tuple[Any, str | int] | None  # the path of what holds an item, and the item's key or index


def _pointer(path: _Path) -> str:
    """Return a path as a JSON pointer; made only where something is replaced."""
    parts = []
    while path is not None:
        path, key = path
        parts.append(str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in reversed(parts))


_IDENTIFYING_RULES = frozenset(
    """own-home own-user own-host e-mail user-at-host home-folder ip-address mac-address host-name host-place
    user-place url-user named-host named-user named-device gpu-uuid""".split()
)


def _tells(name: str, ordinary: frozenset[str]) -> bool:
    """Whether a name of ours is one that a reader would recognise, and no word of a record itself."""
    return name.lower() not in ordinary and name not in PUBLISHED_WORDS


def _is_argument(data: list[Any] | tuple[Any, ...], index: int) -> bool:
    """Say whether an item of a list is the argument of a flag with a telling name."""
    before = data[index - 1] if index else None
    return (
        isinstance(before, str)
        and before.startswith("-")
        and "=" not in before
        and names.meaning(before) == names.STRONG
    )


def _gather(data: Any, into: dict[str, None]) -> None:
    """Gather the strings of plain data, keys included, each once and in order."""
    if isinstance(data, str):
        into[data] = None
    elif isinstance(data, dict):
        for key, value in data.items():
            if isinstance(key, str):
                into[key] = None
            _gather(value, into)
    elif isinstance(data, list | tuple):
        for item in data:
            _gather(item, into)


def _words(text: str, value: str) -> Iterator[int]:
    """Yield where a value stands as a word of its own."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = text[at - 1 : at] if at else "", text[end : end + 1]
        escaped = at >= 2 and text[at - 2] == "\\" and before in "nrt"
        if (not before.isalnum() or not value[0].isalnum() or escaped) and not (
            after.isalnum() or after == "_"
        ):
            yield at
        at = text.find(value, at + 1)


def _character_places(text: str, data: bytes) -> Any:
    """Return a function from places in the bytes to places in the text."""
    if len(data) == len(text):
        return int
    from llamaops.record.given import encoded

    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(encoded(character)))
    return lambda at: max(0, bisect_right(starts, at) - 1)


def _pattern_spans(text: str) -> list[Span]:
    """Return what form or place gives away, colour codes and the ends of a terminal's lines left out."""
    steps: list[Rewrite[str]] = []
    if "\x1b" in text:
        steps.append(rewrite(_colour(), lambda _match: "", text))
    bare = steps[-1].text if steps else text
    if "\n" in bare and (wraps := _wraps(bare)):
        steps.append(rewrite(_line_end(), lambda match: "" if match.start() in wraps else match[0], bare))
    shown = steps[-1].text if steps else text
    found = [*find_shapes(shown), *find_places(shown), *find_identifiers(shown)]
    for step in reversed(steps):
        found = [
            span._replace(start=start, end=end)
            for span in found
            for start, end in (step.back(span.start, span.end),)
        ]
    return found


def _wraps(text: str) -> set[int]:
    """Return the places of those ends of lines at which a terminal would have wrapped a longer one."""
    found = set()
    at, end = 0, text.find("\n")
    while end >= 0:
        if end - at in _TERMINAL_WIDTHS and not _starts_anew().match(text, end + 1):
            found.add(end)
        at, end = end + 1, text.find("\n", end + 1)
    return found


@cache
def _placeholders() -> re.Pattern[str]:
    return re.compile(r"<[a-z]{1,16}-\d{1,9}>")


@cache
def _colour() -> re.Pattern[str]:
    return re.compile(
        r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>])"
    )


@cache
def _line_end() -> re.Pattern[str]:
    return re.compile("\n")


@cache
def _starts_anew() -> re.Pattern[str]:
    """Return the pattern of a line that is no continuation: a time, an empty line, a heading, a member."""
    return re.compile(
        r"\s|$|\d{1,4}\.\d\d\.\d{3}\.\d{3} |\d{4}-\d\d-\d\d|\[|\$ |[a-z]+_[a-z_]{1,40}: "
        r"|[A-Z][\w-]{1,40}: |[A-Z_]{3,40}=|[-={}|#]{2,}"
    )
