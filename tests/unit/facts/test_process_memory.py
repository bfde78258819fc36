"""The memory of a process, from what Linux tells of it."""

from __future__ import annotations

import os

import pytest

from llamaops.facts.process_memory import collect_process_memory
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine
from tests.fakes.system import FakeSystem

STATUS = """Name:\tllama-server
VmPeak:\t  985432 kB
VmHWM:\t  375400 kB
VmRSS:\t  375400 kB
RssAnon:\t  217912 kB
RssFile:\t  157488 kB
RssShmem:\t       0 kB
"""


def observed(text: str) -> object:
    return collect_process_memory(FakeSystem(files={"/proc/7/status": text.encode()}), 7)


def test_the_counts_are_kibibytes() -> None:
    fact = observed(STATUS)
    assert isinstance(fact, Known)
    assert (fact.value.resident_bytes, fact.value.own_bytes) == (375400 * 1024, 217912 * 1024)
    assert fact.value.file_bytes == 157488 * 1024
    assert fact.source.name == "/proc/7/status"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Name:\tzombie\n",
        STATUS.replace("RssAnon", "RssOther"),
        STATUS.replace(" kB", " MB"),
        "VmRSS:\tx kB",
    ],
)
def test_what_does_not_tell_is_unknown(text: str) -> None:
    fact = observed(text)
    assert isinstance(fact, Unknown)
    assert fact.why == "unparsed"


def test_a_process_that_is_gone_is_unknown() -> None:
    fact = collect_process_memory(FakeSystem(files={}), 7)
    assert isinstance(fact, Unknown)
    assert fact.why == "absent"


def test_this_process_holds_something() -> None:
    with Machine() as machine:
        fact = collect_process_memory(machine, os.getpid())
    if isinstance(fact, Known):  # on Linux
        assert fact.value.own_bytes + fact.value.file_bytes <= fact.value.resident_bytes
        assert fact.value.own_bytes > 1 << 20
