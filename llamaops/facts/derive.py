"""Facts out of one read: several values of one file or answer, each with the same source."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from llamaops.errors import ParseError
from llamaops.facts.observe import observe
from llamaops.schema.bounds import KIB
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System

R = TypeVar("R")
T = TypeVar("T")
S = TypeVar("S", bound=Shape)


def read_fact(
    system: System, path: str, parse: Callable[[str], T], *, limit_bytes: int = 64 * KIB
) -> Fact[T]:
    """Read a text file and record what `parse` makes of it."""
    return observe(
        Source(kind="file", name=path),
        read=lambda: system.read_text(path, limit_bytes=limit_bytes),
        parse=parse,
    )


def read_int(system: System, path: str) -> Fact[int]:
    """Read a file that holds one decimal number."""
    return read_fact(system, path, parse_int)


def parse_int(text: str) -> int:
    """Parse one decimal number.

    Raises: ParseError.
    """
    try:
        return int(text.strip())
    except ValueError:
        raise ParseError(f"not a number: {text.strip()[:40]!r}") from None


def derive(fact: Fact[R], parse: Callable[[R], T]) -> Fact[T]:
    """Record what `parse` makes of a known fact; an unknown one stays as it is."""
    if isinstance(fact, Unknown):
        return fact
    value = fact.value
    return observe(fact.source, read=lambda: value, parse=parse)


def pick(fact: Fact[dict[str, T]], key: str) -> Fact[T]:
    """Record one entry of a known mapping; a missing key is absent."""
    return derive(fact, lambda values: required(values, key))


def required(values: Mapping[str, T], key: str) -> T:
    """Return one entry.

    Raises: FileNotFoundError, which `observe` records as absent.
    """
    if key not in values:
        raise FileNotFoundError(errno.ENOENT, f"it has no {key}")
    return values[key]


def absent(detail: str, source: Source) -> Unknown:
    """Record that something was looked for in the right place and is not there."""
    return Unknown(why="absent", detail=detail, source=source)


def computed(value: T, formula: str) -> Known[T]:
    """Record a value computed from other facts."""
    return Known(value=value, source=Source(kind="computed", name=formula))


def all_unknown(shape: type[S], unknown: Unknown) -> S:
    """Return a group with the same unknown in every field."""
    fields: dict[str, Any] = dict.fromkeys(shape.__struct_fields__, unknown)
    return cast("Callable[..., S]", shape)(**fields)
