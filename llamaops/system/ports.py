"""What collectors may ask of the machine; `machine.Machine` is the real one, tests pass a fake."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence
from llamaops.system.clock import Clock
from llamaops.system.process import Completed
from llamaops.system.watch import Watched


class OpenFile(Protocol):
    """A regular file that is open for reads at offsets; a context manager that closes it."""

    @property
    def size_bytes(self) -> int:
        """Return its length when it was opened."""
        ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Return at most `length` bytes from `offset`; fewer only at the end of the file."""
        ...

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        ...


class System(Protocol):
    """The machine, as collectors see it. Paths are strings; nothing here judges.

    Raises: OSError from everything that reads a file, for `observe` to translate.
    """

    @property
    def clock(self) -> Clock:
        """Return the clock."""
        ...

    @property
    def environ(self) -> Mapping[str, str]:
        """Return llamaops' own environment; never to be recorded as it is."""
        ...

    def read_bytes(self, path: str, *, limit_bytes: int, offset: int = 0) -> bytes:
        """Read at most `limit_bytes` from `offset`; does not block on a FIFO or device."""
        ...

    def read_text(self, path: str, *, limit_bytes: int) -> str:
        """Read at most `limit_bytes`, invalid UTF-8 replaced."""
        ...

    def open_regular(self, path: str) -> OpenFile:
        """Open a regular file for reads at offsets; OSError for a folder, FIFO, socket or device."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        ...

    def stat(self, path: str) -> os.stat_result:
        """Return the status of what a path leads to."""
        ...

    def statvfs(self, path: str) -> os.statvfs_result:
        """Return the status of the file system a path lies on."""
        ...

    def realpath(self, path: str) -> str:
        """Return the path with every symbolic link resolved."""
        ...

    def access(self, path: str, mode: int) -> bool:
        """Say whether we may read, write or execute (os.R_OK, os.W_OK, os.X_OK)."""
        ...

    def which(self, name: str) -> str | None:
        """Return where PATH finds an executable."""
        ...

    def uname(self) -> os.uname_result:
        """Return the kernel's name, release and architecture."""
        ...

    def confstr(self, name: str) -> str:
        """Return a configuration string of the C library, such as CS_GNU_LIBC_VERSION."""
        ...

    def run(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Completed:
        """Run a bounded child with the scrubbed environment (`environment.child_environment`) or `env`."""
        ...

    def watch(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Watched:
        """Run a bounded child as `run` does and say which programs were seen running."""
        ...

    def keep(self, evidence: Evidence) -> str:
        """Keep raw output for the record and return its id, for `Source.evidence`."""
        ...
