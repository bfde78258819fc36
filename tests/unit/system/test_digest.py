"""Digests: computed side by side, remembered for unchanged files, and never for changing ones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from llamaops.system import digest as module
from llamaops.system.digest import Digest, Digester

OLD_S = 1_600_000_000


def file(folder: Path, name: str = "a", data: bytes = b"weights" * 100_000) -> str:
    path = folder / name
    path.write_bytes(data)
    os.utime(path, (OLD_S, OLD_S))
    return str(path)


def digester(folder: Path, *, remembered: bool = True, **more: object) -> Digester:
    return Digester({"LLAMAOPS_CACHE": str(folder / "cache")}, remembered=remembered, **more)  # type: ignore[arg-type]  # `progress` only


def one(folder: Path, path: str, *, remembered: bool = True) -> Digest:
    (found,) = digester(folder, remembered=remembered).digest_all([path])
    assert isinstance(found, Digest)
    return found


def test_it_is_the_digest_of_the_whole_file(tmp_path: Path) -> None:
    for size in (0, 1, module.BUFFER_BYTES - 1, module.BUFFER_BYTES, 3 * module.BUFFER_BYTES + 5):
        data = os.urandom(size)
        found = one(tmp_path, file(tmp_path, f"f{size}", data))
        assert (found.sha256, found.size_bytes) == (hashlib.sha256(data).hexdigest(), size)
        assert found.computed_now


def test_an_unchanged_file_is_remembered_and_says_so(tmp_path: Path) -> None:
    path = file(tmp_path)
    first, second = one(tmp_path, path), one(tmp_path, path)
    assert (first.computed_now, second.computed_now) == (True, False)
    assert second.sha256 == first.sha256
    assert second.computed_at == first.computed_at
    assert one(tmp_path, path, remembered=False).computed_now


@pytest.mark.parametrize("change", ["time", "size", "inode"])
def test_a_changed_file_is_computed_anew(tmp_path: Path, change: str) -> None:
    path = file(tmp_path)
    one(tmp_path, path)
    if change == "time":
        os.utime(path, (OLD_S, OLD_S + 1))
    elif change == "size":
        Path(path).write_bytes(b"weights" * 100_001)
        os.utime(path, (OLD_S, OLD_S))
    else:
        other = file(tmp_path, "b")
        os.replace(other, path)
    assert one(tmp_path, path).computed_now


def test_a_file_that_was_written_a_moment_ago_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.write_bytes(b"x")
    one(tmp_path, str(path))
    assert one(tmp_path, str(path)).computed_now


def test_a_damaged_memory_is_no_memory(tmp_path: Path) -> None:
    path = file(tmp_path)
    one(tmp_path, path)
    for entry in (tmp_path / "cache" / "digests").iterdir():
        entry.write_bytes(b'{"sha256": "00"}')
    assert one(tmp_path, path).computed_now


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"in the way")
    assert one(tmp_path, file(tmp_path)).computed_now


def test_several_files_keep_their_order_and_their_errors(tmp_path: Path) -> None:
    paths = [file(tmp_path, "a", b"a"), str(tmp_path / "none"), str(tmp_path), file(tmp_path, "b", b"b")]
    found = digester(tmp_path).digest_all(paths)
    assert [type(item) for item in found] == [Digest, FileNotFoundError, IsADirectoryError, Digest]
    assert isinstance(found[3], Digest)
    assert found[3].sha256 == hashlib.sha256(b"b").hexdigest()


def test_a_file_that_changes_meanwhile_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path)
    monkeypatch.setattr(module, "TOLD_BYTES", 1)

    def change(_done: int, _all: int) -> None:
        os.utime(path, (OLD_S + 9, OLD_S + 9))

    (found,) = digester(tmp_path, progress=change).digest_all([path])
    assert isinstance(found, module.FileChangedError)


def test_progress_ends_with_all_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_BYTES", module.BUFFER_BYTES)
    told: list[tuple[int, int]] = []
    digester(tmp_path, progress=lambda done, all_: told.append((done, all_))).digest_all(
        [file(tmp_path), file(tmp_path, "b")]
    )
    assert told[-1] == (1_400_000, 1_400_000)
    assert len(told) > 4


def test_an_interrupt_stops_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOLD_BYTES", 1)

    def interrupt(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        digester(tmp_path, progress=interrupt).digest_all([file(tmp_path)])
