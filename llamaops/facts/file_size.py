"""The size of a file as a fact."""

from __future__ import annotations

import stat

from llamaops.facts.observe import unknown_from_os_error
from llamaops.schema.fact import Fact, Known, Source, Unknown
from llamaops.system.ports import System


def file_size(system: System, path: str) -> Fact[int]:
    """Return the size of a regular file.

    Units: bytes.
    """
    source = Source(kind="file", name=path)
    try:
        status = system.stat(path)
    except OSError as error:
        return unknown_from_os_error(source, error)
    if not stat.S_ISREG(status.st_mode):
        return Unknown(why="failed", detail=f"{path}: not a regular file", source=source)
    return Known(value=status.st_size, source=source)
