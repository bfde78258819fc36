from __future__ import annotations

import pytest

from llamaops.errors import FetchError
from llamaops.system import fetch
from llamaops.system.catalogue import catalogue
from tests.fakes.system import FakeSystem

GLIBC = "CS_GNU_LIBC_VERSION"
ENGINE = catalogue()["engine-b10068"]


def quiet(_step: str, _done: int, _total: int | None) -> None:
    pass


@pytest.mark.parametrize(
    ("machine", "confstrs", "why"),
    [
        ("x86_64", {GLIBC: "glibc 2.35"}, None),
        ("x86_64", {GLIBC: "glibc 2.100"}, None),
        ("x86_64", {GLIBC: "glibc 2.31"}, "2.35 or newer, and this system has 2.31"),
        ("x86_64", {}, "this system has another C library"),
        ("aarch64", {GLIBC: "glibc 2.39"}, "for Linux x86_64, and this is Linux aarch64"),
    ],
)
def test_the_platform_is_judged(machine: str, confstrs: dict[str, str], why: str | None) -> None:
    assert ENGINE.needs is not None
    found = fetch.why_unsupported(ENGINE.needs, FakeSystem(machine=machine, confstrs=confstrs))
    assert found is None if why is None else found is not None and why in found


def test_elsewhere_it_says_what_to_install_instead_and_makes_nothing(tmp_path: object) -> None:
    with pytest.raises(FetchError, match=r"does not run here.*brew install llama.cpp.*--bin-dir"):
        fetch.install(ENGINE, f"{tmp_path}/cache", FakeSystem(machine="arm64"), quiet)
    assert fetch.found(ENGINE, f"{tmp_path}/cache") is None
