"""The one way to record a fact: a source, a read, a parse."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from llamaops.errors import ParseError
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why

R = TypeVar("R")
T = TypeVar("T")

_WHY_OF_ERRNO: dict[int, Why] = {
    errno.ENOENT: "absent",
    errno.ENOTDIR: "absent",
    errno.ENODEV: "absent",
    errno.EACCES: "refused",
    errno.EPERM: "refused",
    errno.ETIMEDOUT: "timed_out",
    errno.ENOSYS: "unsupported",
    errno.EOPNOTSUPP: "unsupported",
}


def observe(source: Source, *, read: Callable[[], R], parse: Callable[[R], T]) -> Fact[T]:
    """Record what `parse` makes of what `read` returns.

    Raises: whatever is neither OSError nor ParseError; a defect of ours must not become a fact.
    """
    try:
        value = parse(read())
    except OSError as error:
        return unknown_from_os_error(source, error)
    except ParseError as error:
        return Unknown(why="unparsed", detail=f"{source.name}: {error}", source=source)
    return Known(value=value, source=source)


def unknown_from_os_error(source: Source, error: OSError) -> Unknown:
    """Translate an operating system error into the reason a fact is unknown."""
    why = _WHY_OF_ERRNO.get(error.errno or 0, "failed")
    what = error.strerror or str(error) or type(error).__name__
    return Unknown(why=why, detail=f"{source.name}: {what}", source=source)
