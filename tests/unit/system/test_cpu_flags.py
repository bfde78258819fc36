from __future__ import annotations

import pytest

from llamaops.system.cpu_flags import CPUINFO, cpu_flags
from tests.fakes.processors import GENOA, GRAVITON
from tests.fakes.system import FakeSystem


def test_the_flags_are_whole_words_of_the_line() -> None:
    flags = cpu_flags(FakeSystem(files={CPUINFO: GENOA}))
    assert flags is not None
    assert {"avx512f", "avx512_vnni", "avx512vbmi", "fma"} <= flags
    assert "avx_vnni" not in flags
    assert "AuthenticAMD" not in flags


def test_a_line_that_only_begins_alike_does_not_count() -> None:
    text = "vmx flags\t: ept\nflags\t\t: fpu avx2\n"
    assert cpu_flags(FakeSystem(files={CPUINFO: text})) == frozenset({"fpu", "avx2"})


@pytest.mark.parametrize("content", [GRAVITON, "", "nonsense", PermissionError(13, "Permission denied")])
def test_where_nothing_is_said_nothing_is_known(content: str | OSError) -> None:
    assert cpu_flags(FakeSystem(files={CPUINFO: content})) is None


def test_only_the_first_processor_is_read() -> None:
    reads: list[int] = []

    class Counting(FakeSystem):
        def read_bytes(self, path: str, *, limit_bytes: int, offset: int = 0) -> bytes:
            reads.append(limit_bytes)
            return super().read_bytes(path, limit_bytes=limit_bytes, offset=offset)

    assert cpu_flags(Counting(files={CPUINFO: GENOA * 300})) is not None
    assert sum(reads) <= 16 * 1024
