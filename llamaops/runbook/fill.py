"""Inputs and what earlier steps gave, put into the texts of a runbook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from llamaops.errors import UsageError
from llamaops.runbook.document import Input, Runbook, Step, Value

NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_PLACE = re.compile(r"\$\{([^}]*)\}")
_WHOLE = re.compile(r"\$\{([^}]*)\}\Z")
OUTPUTS = ("url", "record")
"""What a step gives to later ones: the URL of a server that keeps serving, and its record's folder."""


class Values(msgspec.Struct, frozen=True):
    """The values of placeholders; None stands for an optional input that was left out."""

    inputs: Mapping[str, str | None]
    steps: Mapping[str, str] = {}
    """By `id.output`."""
    words: frozenset[str] = frozenset()
    """Names of inputs that are several arguments."""
    planned: bool = False
    """Whether what steps give is not known yet and is shown as it is written."""

    def of(self, name: str) -> str | None:
        """Return the value of a placeholder.

        Raises: UsageError for one that nothing gives.
        """
        if name in self.inputs:
            return self.inputs[name]
        if name.startswith("steps."):
            if self.planned:
                return "${" + name + "}"
            if (value := self.steps.get(name.removeprefix("steps."))) is not None:
                return value
        raise UsageError(f"${{{name}}} has no value", hint="the step that gives it was not run")

    def text(self, text: str) -> str:
        """Return a text with every placeholder filled; an input left out is empty."""
        return _PLACE.sub(lambda match: self.of(match[1]) or "", text)

    def item(self, text: str) -> str | None:
        """Return one argument, or None where it is nothing but an input that was left out."""
        whole = _WHOLE.match(text)
        return self.of(whole[1]) if whole else self.text(text)

    def items(self, texts: tuple[str, ...]) -> list[str]:
        """Return a list of arguments: without those left out, and several for an input of words."""
        found: list[str] = []
        for text in texts:
            whole, filled = _WHOLE.match(text), self.item(text)
            if filled is not None:
                found += filled.split() if whole and whole[1] in self.words else [filled]
        return found


def words_of(runbook: Runbook) -> frozenset[str]:
    """Return the names of the inputs that are several arguments."""
    return frozenset(name for name, declared in runbook.inputs.items() if declared.kind == "words")


def placeholders(text: str) -> list[str]:
    """Return the names in a text."""
    return _PLACE.findall(text)


def texts(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text of a step that may hold placeholders, with its place in the step."""
    for field in ("args", "flags", "argv"):
        yield from (((field, index), text) for index, text in enumerate(getattr(step, field)))
    for name, value in step.options.items():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                yield ("options", name), text
    for field in ("says", "cwd", "title"):
        if (text := getattr(step, field)) is not None:
            yield (field,), text
    if step.changes is not None:
        for field in ("target", "scope", "rollback"):
            yield ("changes", field), getattr(step.changes, field)
    for field in ("output", "absent"):
        yield from (
            (("expect", field, index), text) for index, text in enumerate(getattr(step.expect, field))
        )


def command(step: Step, values: Values) -> tuple[str, ...]:
    """Return the command line of a step: the program's, or that of llamaops without its own name."""
    if step.do == "command":
        return tuple(values.items(step.argv))
    if step.do == "manual":
        return ()
    words = [*step.do.split(), *values.items(step.args)]
    for name, value in step.options.items():
        words += _option(f"--{name.replace('_', '-')}", value, values)
    if step.do == "serve" and step.background:
        words.append("--verify")
    flags = values.items(step.flags)
    return (*words, "--", *flags) if flags else tuple(words)


def _option(flag: str, value: Value, values: Values) -> list[str]:
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, tuple):
        return [word for item in values.items(value) for word in (flag, item)]
    filled = values.item(value) if isinstance(value, str) else str(value)
    return [] if filled is None else [flag, filled]


def resolve_inputs(runbook: Runbook, given: Mapping[str, str]) -> dict[str, str | None]:
    """Return the value of every input; None for an optional one that was left out.

    Raises: UsageError with everything that is wrong.
    """
    problems = [f"there is no input {name}" for name in given if name not in runbook.inputs]
    found: dict[str, str | None] = {}
    for name, declared in runbook.inputs.items():
        default = None if declared.default is None else str(declared.default)
        value = given.get(name, default)
        if value is None:
            if not declared.optional:
                problems.append(f"--input {name}=… is needed: {declared.about}")
        elif problem := wrong_value(declared, value):
            problems.append(f"--input {name}: {problem}")
        found[name] = value
    if problems:
        raise UsageError("; ".join(problems))
    return found


def wrong_value(declared: Input, value: str) -> str | None:
    """Return what is wrong with a value, or None."""
    if not value.strip() or any(ord(character) < 32 for character in value):  # noqa: PLR2004 - control characters
        return "has to be one line that is not empty"
    if value.startswith("-") and declared.kind not in {"number", "words"}:
        return "must not begin with a dash: a program would take it for an option"
    if declared.pattern is not None and not _matches(declared.pattern, value):
        return f"has to be {declared.about}, not {value!r}"
    match declared.kind:
        case "number" if not re.fullmatch(r"[0-9]{1,9}", value):
            return f"has to be a whole number in plain digits, not {value!r}"
        case "choice" if value not in declared.choices:
            return f"has to be one of {', '.join(declared.choices)}, not {value!r}"
        case "url" if urlsplit(value).scheme not in {"http", "https"} or not urlsplit(value).hostname:
            return f"has to be an http or https URL, not {value!r}"
        case _:
            return None


def _matches(pattern: str, value: str) -> bool:
    """Whether the whole value matches; by RE2, since a pattern of somebody's own runbook must not hang."""
    import re2

    return re2.fullmatch(pattern, value) is not None


def wrong_pattern(pattern: str) -> str | None:
    """Return what is wrong with a pattern, or None."""
    import re2

    options = re2.Options()
    options.log_errors = False  # on standard error, beside our own one line
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        return f"is no regular expression of RE2: {said.decode() if isinstance(said, bytes) else said}"
    return None
