from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.host_os import collect_linux_os, parse_os_release, parse_uptime
from llamaops.schema.fact import Unknown
from tests.fakes import hosts
from tests.fakes.system import FakeSystem


def test_quotes_comments_and_blanks() -> None:
    text = "# comment\nNAME='Arch Linux'\nID=arch\n\nHOME_URL=\"https://x/?a=b\"\n"
    assert parse_os_release(text) == {"NAME": "Arch Linux", "ID": "arch", "HOME_URL": "https://x/?a=b"}


def test_a_rolling_distribution_has_no_version() -> None:
    found = collect_linux_os(hosts.fake({"/etc/os-release": "NAME=Arch\nID=arch\n"}))
    assert found.name.need() == "Arch"
    assert isinstance(found.version, Unknown)
    assert found.version.why == "absent"


def test_the_second_place_of_os_release() -> None:
    found = collect_linux_os(hosts.fake({"/usr/lib/os-release": "ID=nixos\n"}))
    assert found.id.need() == "nixos"


def test_musl_is_known_by_its_loader() -> None:
    assert collect_linux_os(FakeSystem(files={"/lib/ld-musl-x86_64.so.1": ""})).libc.need() == "musl"
    unknown = collect_linux_os(FakeSystem(files={"/lib/other.so": ""})).libc
    assert isinstance(unknown, Unknown)


@pytest.mark.parametrize("text", ["", "soon"])
def test_uptime_in_another_form(text: str) -> None:
    with pytest.raises(ParseError):
        parse_uptime(text)
