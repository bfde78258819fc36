"""A machine made of mappings; a request that a test did not foresee fails the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from llamaops.schema.bounds import Bounds
from llamaops.schema.evidence import Evidence
from llamaops.system.process import Completed, End, Exited, NotStarted, Stream
from llamaops.system.watch import Program, Watched


@dataclass
class FakeClock:
    """Time that moves when told, or when somebody sleeps."""

    seconds: float = 0.0

    def now_utc(self) -> datetime:
        return datetime.fromtimestamp(1_700_000_000 + self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def completed(
    argv: Sequence[str],
    *,
    stdout: str = "",
    stderr: str = "",
    end: End | None = None,
    elapsed_s: float = 0.01,
) -> Completed:
    out, err = Stream(1 << 20), Stream(1 << 20)
    out.feed(stdout.encode())
    err.feed(stderr.encode())
    return Completed(tuple(argv), end or Exited(0), out, err, elapsed_s)


@dataclass
class FakeOpenFile:
    """A file that is open for reads at offsets; `failing_from` is an offset from which reads fail."""

    data: bytes
    size: int | None = None
    failing_from: int | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.data) if self.size is None else self.size

    def read_at(self, offset: int, length: int) -> bytes:
        if self.failing_from is not None and offset + length > self.failing_from:
            raise OSError(5, "Input/output error")
        return self.data[offset : offset + length]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        pass


@dataclass
class FakeSystem:
    """Files and commands from mappings.

    `files` maps a path to text, bytes, or an OSError to raise. A folder exists when a file lies in it,
    or when it is in `folders`. `commands` maps an argv tuple to a Completed or a function of the argv.
    """

    files: Mapping[str, str | bytes | OSError] = field(default_factory=dict)
    commands: Mapping[tuple[str, ...], Completed | Callable[[Sequence[str]], Completed]] = field(
        default_factory=dict
    )
    environ: Mapping[str, str] = field(default_factory=dict)
    folders: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    on_path: Mapping[str, str] = field(default_factory=dict)
    unreadable: Sequence[str] = ()
    machine: str = "x86_64"
    sysname: str = "Linux"
    release: str = "6.1.0"
    confstrs: Mapping[str, str] = field(default_factory=dict)
    stats: Mapping[str, os.stat_result] = field(default_factory=dict)
    """Overrides of what `stat` says about a path, for owners, modes and device nodes."""
    programs: Mapping[tuple[str, ...], Sequence[Program]] = field(default_factory=dict)
    """What `watch` sees running, by argv."""
    clock: FakeClock = field(default_factory=FakeClock)
    kept: dict[str, Evidence] = field(default_factory=dict)
    disk: tuple[int, int] = (4096, 1 << 20)
    """Block size and free blocks."""

    def _file(self, path: str) -> str | bytes:
        content = self.files.get(self.realpath(path))
        if content is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        if isinstance(content, OSError):
            raise content
        return content

    def read_bytes(self, path: str, *, limit_bytes: int, offset: int = 0) -> bytes:
        content = self._file(path)
        data = content.encode() if isinstance(content, str) else content
        return data[offset : offset + limit_bytes]

    def read_text(self, path: str, *, limit_bytes: int) -> str:
        return self.read_bytes(path, limit_bytes=limit_bytes).decode("utf-8", "replace")

    def open_regular(self, path: str) -> FakeOpenFile:
        content = self._file(path)
        return FakeOpenFile(content.encode() if isinstance(content, str) else content)

    def list_dir(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        names = {
            other[len(prefix) :].split("/", 1)[0]
            for other in [*self.files, *self.folders, *self.links]
            if other.startswith(prefix)
        }
        if not names and path not in self.folders:
            raise FileNotFoundError(2, "No such file or directory", path)
        return sorted(names)

    def stat(self, path: str) -> os.stat_result:
        real = self.realpath(path)
        if real in self.stats:
            return self.stats[real]
        if real in self.files:
            content = self._file(real)
            size = len(content.encode() if isinstance(content, str) else content)
            return os.stat_result((0o100755, 1, 1, 1, 0, 0, size, 0, 0, 0))
        self.list_dir(real)
        return os.stat_result((0o040755, 1, 1, 1, 0, 0, 0, 0, 0, 0))

    def statvfs(self, path: str) -> os.statvfs_result:
        block, free = self.disk
        return os.statvfs_result((block, block, free * 2, free, free, 0, 0, 0, 0, 255))

    def realpath(self, path: str) -> str:
        seen = 0
        while path in self.links and seen < 40:
            path, seen = self.links[path], seen + 1
        return path

    def access(self, path: str, mode: int) -> bool:
        return path not in self.unreadable and (self.realpath(path) in self.files)

    def which(self, name: str) -> str | None:
        return self.on_path.get(name)

    def uname(self) -> os.uname_result:
        return os.uname_result((self.sysname, "testhost", self.release, "#1 SMP", self.machine))

    def confstr(self, name: str) -> str:
        if name not in self.confstrs:
            raise OSError(38, "Function not implemented")
        return self.confstrs[name]

    def run(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Completed:
        answer = self.commands.get(tuple(argv))
        if answer is None:
            return completed(argv, end=NotStarted(f"{argv[0]}: No such file or directory", 2))
        return answer if isinstance(answer, Completed) else answer(argv)

    def watch(self, argv: Sequence[str], *, bounds: Bounds, env: Mapping[str, str] | None = None) -> Watched:
        return Watched(self.run(argv, bounds=bounds, env=env), tuple(self.programs.get(tuple(argv), ())))

    def keep(self, evidence: Evidence) -> str:
        self.kept[evidence.id] = evidence
        return evidence.id
