from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.host import collect_host
from llamaops.facts.host_memory import parse_choice, parse_meminfo
from llamaops.schema.fact import Known, Unknown
from tests.fakes import hosts


def test_units() -> None:
    table = parse_meminfo("MemTotal: 10 kB\nHugePages_Total: 7\nOdd\n")
    assert table == {"MemTotal": 10240, "HugePages_Total": 7}


def test_without_a_total_it_is_another_file() -> None:
    with pytest.raises(ParseError):
        parse_meminfo("<html></html>")


@pytest.mark.parametrize(("text", "mode"), [("[always] madvise never", "always"), ("a b [never]\n", "never")])
def test_choice(text: str, mode: str) -> None:
    assert parse_choice(text) == mode


def test_choice_without_brackets() -> None:
    with pytest.raises(ParseError):
        parse_choice("always madvise never")


def test_an_old_kernel_without_memavailable_gives_no_figure() -> None:
    files = {**hosts.bare_metal().files, "/proc/meminfo": "MemTotal: 10 kB\nMemFree: 5 kB\n"}
    memory = collect_host(hosts.fake(files)).memory
    assert memory.total_bytes.need() == 10240
    assert isinstance(memory.effective_available_bytes, Unknown)


def test_a_limit_that_cannot_be_read_takes_the_host_figure_away() -> None:
    files = {**hosts.docker().files, "/sys/fs/cgroup/memory.max": PermissionError(13, "Permission denied")}
    memory = collect_host(hosts.fake(files)).memory
    assert isinstance(memory.available_bytes, Known)
    assert isinstance(memory.effective_available_bytes, Unknown)
    assert memory.effective_available_bytes.why == "refused"


def test_the_table_is_kept_and_named_by_every_figure() -> None:
    system = hosts.bare_metal()
    memory = collect_host(system).memory
    assert memory.total_bytes.source.evidence in system.kept
    assert memory.total_bytes.source == memory.swap_free_bytes.source
