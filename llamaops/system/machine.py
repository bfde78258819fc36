"""The real machine behind `ports.System`."""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence
from llamaops.system.clock import Clock, RealClock
from llamaops.system.environment import child_environment
from llamaops.system.files import RegularFile, read_limited

if TYPE_CHECKING:
    from llamaops.system.process import Completed
    from llamaops.system.watch import Watched


class Machine:
    """The machine that llamaops runs on; a context manager that removes its scratch folder."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._clock = RealClock()
        self._scratch: str | None = None
        self._scratch_lock = allocate_lock()
        self._evidence: dict[str, Evidence] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Remove the scratch folder."""
        if self._scratch is not None:
            import shutil

            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    @property
    def clock(self) -> Clock:
        """Return the clock."""
        return self._clock

    @property
    def environ(self) -> Mapping[str, str]:
        """Return llamaops' own environment; never to be recorded as it is."""
        return self._environ

    @property
    def scratch(self) -> str:
        """Return a private folder that lives as long as the machine object."""
        with self._scratch_lock:  # probes run side by side
            if self._scratch is None:
                import tempfile

                self._scratch = tempfile.mkdtemp(prefix="llamaops-")
            return self._scratch

    def child_environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the scrubbed environment that children get."""
        config_home = os.path.join(self.scratch, "config")
        os.makedirs(config_home, mode=0o700, exist_ok=True)
        return child_environment(self._environ, config_home=config_home, extra=extra)

    def read_bytes(self, path: str, *, limit_bytes: int, offset: int = 0) -> bytes:
        """Read at most `limit_bytes` from `offset`."""
        return read_limited(path, limit_bytes=limit_bytes, offset=offset)

    def read_text(self, path: str, *, limit_bytes: int) -> str:
        """Read at most `limit_bytes`, invalid UTF-8 replaced."""
        return read_limited(path, limit_bytes=limit_bytes).decode("utf-8", "replace")

    def open_regular(self, path: str) -> RegularFile:
        """Open a regular file for reads at offsets; OSError for anything else."""
        return RegularFile(path)

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(path))

    def stat(self, path: str) -> os.stat_result:
        """Return the status of what a path leads to."""
        return os.stat(path)

    def statvfs(self, path: str) -> os.statvfs_result:
        """Return the status of the file system a path lies on."""
        return os.statvfs(path)

    def realpath(self, path: str) -> str:
        """Return the path with every symbolic link resolved."""
        return os.path.realpath(path)

    def access(self, path: str, mode: int) -> bool:
        """Say whether we may read, write or execute."""
        return os.access(path, mode)

    def which(self, name: str) -> str | None:
        """Return where PATH finds an executable."""
        import shutil

        return shutil.which(name, path=self._environ.get("PATH", ""))

    def uname(self) -> os.uname_result:
        """Return the kernel's name, release and architecture."""
        return os.uname()

    def confstr(self, name: str) -> str:
        """Return a configuration string of the C library; OSError where it has none of that name."""
        try:
            value = os.confstr(name)
        except (AttributeError, ValueError) as error:
            raise OSError(errno.ENOSYS, f"this C library has no {name}") from error
        if value is None:
            raise OSError(errno.ENOSYS, f"{name} is not set")
        return value

    def run(
        self,
        argv: Sequence[str],
        *,
        bounds: Bounds,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        """Run a bounded child with the scrubbed environment, or with `env` as it is; here, or in `cwd`."""
        from llamaops.system import process

        chosen = self.child_environment() if env is None else env
        return process.run(argv, bounds=bounds, env=chosen, cwd=cwd)

    def watch(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Watched:
        """Run a bounded child as `run` does and say which programs were seen running."""
        from llamaops.system import watch

        return watch.watch(argv, bounds=bounds, env=self.child_environment() if env is None else env)

    def keep(self, evidence: Evidence) -> str:
        """Keep raw output for the record and return its id."""
        self._evidence[evidence.id] = evidence
        return evidence.id

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return everything kept so far, in the order it was kept."""
        return tuple(self._evidence.values())
