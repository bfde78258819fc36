"""Read fields of a decoded JSON answer without trusting their types. Pure."""

from __future__ import annotations

import math

from llamaops.errors import ParseError

Json = dict[str, object]

LARGEST = 2**63
"""No count of a server is larger; msgspec would refuse to write it."""


def as_object(value: object, what: str) -> Json:
    """Return a JSON object. Raises: ParseError."""
    if isinstance(value, dict):
        return value
    raise ParseError(f"{what} is not a JSON object but {kind_of(value)}")


def as_list(value: object, what: str) -> list[object]:
    """Return a JSON array. Raises: ParseError."""
    if isinstance(value, list):
        return value
    raise ParseError(f"{what} is not a JSON array but {kind_of(value)}")


def text(item: Json, name: str) -> str | None:
    """Return a text field, None where it is absent or null. Raises: ParseError for another type."""
    value = item.get(name)
    if value is None or isinstance(value, str):
        return value
    raise ParseError(f"{name} is not text but {kind_of(value)}")


def whole(item: Json, name: str) -> int | None:
    """Return a field that counts something, None where it is absent or null. Raises: ParseError."""
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < LARGEST:
        raise ParseError(f"{name} is not a whole number but {kind_of(value)}")
    return value


def number(item: Json, name: str) -> float | None:
    """Return a finite number, None where it is absent or null. Raises: ParseError."""
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ParseError(f"{name} is not a number but {kind_of(value)}")
    return float(value)


def flag(item: Json, name: str) -> bool | None:
    """Return a boolean, None where it is absent or null. Raises: ParseError."""
    value = item.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise ParseError(f"{name} is not a boolean but {kind_of(value)}")


def texts(item: Json, name: str) -> tuple[str, ...]:
    """Return an array of texts, empty where it is absent or null. Raises: ParseError."""
    value = item.get(name)
    if value is None:
        return ()
    entries = as_list(value, name)
    if not all(isinstance(entry, str) for entry in entries):
        raise ParseError(f"{name} holds something else than text")
    return tuple(str(entry) for entry in entries)


def kind_of(value: object) -> str:
    """Name a JSON value's kind; never the value, which is the server's."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number out of range or of another kind"
        case str():
            return "text"
        case list():
            return "an array"
        case _:
            return "an object"
