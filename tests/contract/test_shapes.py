"""Published types are frozen, keyword-only, refuse unknown keys, and say what each field means."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import msgspec
import pytest

import llamaops
from llamaops.record.export import field_texts, schema_of
from llamaops.record.groups import Facts, StoredRecord
from llamaops.schema.shape import Shape

FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "manager", "core"}


def modules() -> list[str]:
    return [
        module.name
        for module in pkgutil.walk_packages(llamaops.__path__, "llamaops.")
        if module.name != "llamaops.__main__"
    ]


def shapes() -> list[type[Shape]]:
    for name in modules():
        importlib.import_module(name)
    found: list[type[Shape]] = []
    pending: list[type[Shape]] = [Shape]
    while pending:
        for kind in pending.pop().__subclasses__():
            if kind.__module__.startswith("llamaops."):
                found.append(kind)
                pending.append(kind)
    return found


@pytest.mark.parametrize("kind", shapes(), ids=lambda kind: kind.__qualname__)
def test_a_published_type_is_frozen_and_keyword_only(kind: type[Shape]) -> None:
    config = kind.__struct_config__
    assert config.frozen
    assert kind.__match_args__ == ()  # keyword-only leaves nothing to match by position


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown"):
        msgspec.convert({"settings": None, "surprise": 1}, Facts)


def test_every_field_has_a_string_under_it() -> None:
    texts = field_texts()
    missing = [
        f"{kind.__qualname__}.{field}"
        for kind in shapes()
        for field in kind.__struct_fields__
        if kind.__name__ != "Settings"
        and not kind.__name__.startswith("_")
        and not any(field in texts.get(base.__name__, {}) for base in kind.__mro__)
    ]
    assert missing == []


def test_the_schema_describes_the_fields_of_a_finding() -> None:
    schema = schema_of(StoredRecord)
    assert "description" in schema["$defs"]["Finding"]["properties"]["remedy"]


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert not [name for name in modules() if name.rsplit(".", 1)[1] in FORBIDDEN_NAMES]


def test_every_package_says_what_it_is_for() -> None:
    root = Path(llamaops.__path__[0])
    for file in root.rglob("*.py"):
        assert ast.get_docstring(ast.parse(file.read_text())), f"{file} has no docstring"
