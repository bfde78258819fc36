from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from llamaops.errors import FetchError
from llamaops.system import cache as store


def finished(folder: Path, content: bytes = b"content") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "program").write_bytes(content)
    return folder


def published(tmp_path: Path) -> Path:
    target = tmp_path / "cache" / "engines" / "one"
    store.publish(str(finished(tmp_path / "work")), str(target), "digest")
    return target


def test_the_cache_is_where_the_variable_says() -> None:
    assert store.cache_folder({"LLAMAOPS_CACHE": "/somewhere/else"}) == "/somewhere/else"


def test_without_the_variable_it_is_the_users_cache() -> None:
    folder = store.cache_folder({})
    assert folder.startswith(os.environ["HOME"])
    assert folder.endswith("/llamaops")


@pytest.mark.parametrize("cache", ["", "/somewhere/cache"])
def test_the_users_cache_is_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    import platformdirs

    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert store.cache_folder({"XDG_CACHE_HOME": cache}) == platformdirs.user_cache_dir(
        "llamaops", appauthor=False
    )


def test_a_published_folder_is_whole(tmp_path: Path) -> None:
    assert store.is_whole(str(published(tmp_path)), "digest")


def test_another_digest_is_not(tmp_path: Path) -> None:
    assert not store.is_whole(str(published(tmp_path)), "other")


@pytest.mark.parametrize("damage", ["shorter", "removed", "no stamp", "stamp cut", "stamp of another form"])
def test_damage_is_seen(tmp_path: Path, damage: str) -> None:
    target = published(tmp_path)
    stamp = target / store.STAMP
    match damage:
        case "shorter":
            (target / "bin" / "program").write_bytes(b"conten")
        case "removed":
            (target / "bin" / "program").unlink()
        case "no stamp":
            stamp.unlink()
        case "stamp cut":
            stamp.write_bytes(stamp.read_bytes()[:10])
        case _:
            stamp.write_text('{"sha256": "digest", "files": []}')
    assert not store.is_whole(str(target), "digest")


def test_publishing_over_a_whole_folder_keeps_it(tmp_path: Path) -> None:
    target = published(tmp_path)
    inode = target.stat().st_ino
    store.publish(str(finished(tmp_path / "second")), str(target), "digest")
    assert target.stat().st_ino == inode


def test_publishing_over_a_damaged_folder_replaces_it(tmp_path: Path) -> None:
    target = published(tmp_path)
    (target / "bin" / "program").write_bytes(b"")
    store.publish(str(finished(tmp_path / "second")), str(target), "digest")
    assert (target / "bin" / "program").read_bytes() == b"content"


def test_the_lock_is_exclusive_and_says_so(tmp_path: Path) -> None:
    with (
        store.locked(str(tmp_path), wait_s=0),
        pytest.raises(FetchError, match="another llamaops holds the cache"),
        store.locked(str(tmp_path), wait_s=0),
    ):
        pass
    with store.locked(str(tmp_path), wait_s=0):
        pass


def test_only_the_holder_of_the_lock_removes_leftovers(tmp_path: Path) -> None:
    left = tmp_path / f"{store.TEMPORARY}1-x"
    left.mkdir()
    descriptor = os.open(tmp_path / store.LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(FetchError), store.locked(str(tmp_path), wait_s=0):
        pass
    assert left.exists()
    os.close(descriptor)
    with store.locked(str(tmp_path), wait_s=0):
        assert not left.exists()


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / f"{store.TEMPORARY}1-x"
    other.mkdir()

    def no_locks(_descriptor: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with store.locked(str(tmp_path), wait_s=0):
        assert other.exists()  # it may be somebody's who works at this moment


def test_the_work_folder_is_private_and_goes_whatever_happens(tmp_path: Path) -> None:
    def interrupted() -> None:
        with store.work_folder(str(tmp_path)) as folder:
            assert Path(folder).stat().st_mode & 0o777 == 0o700
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk became full while the engine was stored in /cache; nothing half-done"),
        (errno.EDQUOT, "the disk became full"),
        (
            errno.EROFS,
            r"cannot store the engine in /cache: Read-only file system \(/cache/x\); set LLAMAOPS_CACHE",
        ),
    ],
)
def test_what_the_file_system_says_becomes_one_line(number: int, message: str) -> None:
    with pytest.raises(FetchError, match=message), store.explained("engine", "/cache"):
        raise OSError(number, os.strerror(number), "/cache/x")
