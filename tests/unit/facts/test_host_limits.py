from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.host_limits import Limit, collect_limits, parse_limits
from llamaops.schema.fact import Unknown
from tests.fakes import hosts


def test_names_with_blanks_and_lines_without_a_unit() -> None:
    limits = parse_limits(hosts.LIMITS)
    assert limits["Max open files"] == Limit(soft=1024, hard=1048576)
    assert limits["Max address space"] == Limit(soft=None, hard=None)
    assert limits["Max nice priority"] == Limit(soft=0, hard=0)


@pytest.mark.parametrize("text", ["", "Limit  Soft Limit\n", "x\ny\n"])
def test_other_text(text: str) -> None:
    with pytest.raises(ParseError):
        parse_limits(text)


@pytest.mark.parametrize(
    ("capabilities", "links", "may"),
    [
        ("0000000000004000", hosts.FIRST_NAMESPACES, True),
        ("0000000000003fff", hosts.FIRST_NAMESPACES, False),
        # A root of its own user namespace: the kernel asks the first namespace.
        ("000001ffffffffff", {"/proc/self/ns/user": "/proc/1/ns/user:[4026532999]"}, False),
    ],
)
def test_the_capability_that_lifts_the_limit(capabilities: str, links: dict[str, str], may: bool) -> None:
    system = hosts.fake(hosts.common_files(capabilities=capabilities), links=links)
    assert collect_limits(system).may_lock_any_memory.need() is may


def test_no_proc() -> None:
    fact = collect_limits(hosts.nothing()).memlock_bytes
    assert isinstance(fact, Unknown)
    assert fact.why == "absent"
