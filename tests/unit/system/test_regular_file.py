"""A file that is open for reads at offsets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llamaops.system.files import RegularFile


def test_reads_at_offsets_and_less_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    with RegularFile(str(path)) as file:
        assert file.size_bytes == 10
        assert file.read_at(3, 4) == b"3456"
        assert file.read_at(8, 100) == b"89"
        assert file.read_at(10**15, 4) == b""


def test_a_file_that_shrinks_gives_less_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(1 << 20))
    with RegularFile(str(path)) as file:
        os.truncate(path, 100)
        assert file.read_at(0, 1 << 20) == bytes(100)


def test_a_closed_file_has_no_descriptor_left(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    before = set(os.listdir("/proc/self/fd"))
    with RegularFile(str(path)) as file:
        file.read_at(0, 1)
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.timeout(5)
def test_what_is_not_a_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), "/dev/null"):
        with pytest.raises(OSError, match="Not a regular file"):
            RegularFile(path)
    with pytest.raises(IsADirectoryError):
        RegularFile(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        RegularFile(str(tmp_path / "nowhere"))
