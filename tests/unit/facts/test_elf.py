from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.elf import ElfFacts, parse_elf
from tests.fakes.elf_files import make_elf


def parse(data: bytes) -> ElfFacts:
    return parse_elf(lambda offset, length: data[offset : offset + length])


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("big_endian", [True, False])
def test_both_widths_and_orders(wide: bool, big_endian: bool) -> None:
    data = make_elf(
        needed=["libllama.so.0", "libc.so.6"],
        runpath="$ORIGIN:/opt/lib",
        soname="libx.so.1",
        wide=wide,
        big_endian=big_endian,
    )
    elf = parse(data)
    assert elf.bits == (64 if wide else 32)
    assert elf.machine == "x86_64"
    assert elf.needed == ("libllama.so.0", "libc.so.6")
    assert elf.runpath == ("$ORIGIN", "/opt/lib")
    assert elf.rpath == ()
    assert elf.soname == "libx.so.1"
    assert elf.interpreter == "/lib64/ld-linux-x86-64.so.2"
    assert elf.build_id == "abcd" * 10


def test_what_is_not_there_is_none() -> None:
    elf = parse(make_elf(interpreter=None, build_id=None, rpath="/a", machine=999))
    assert elf.interpreter is None
    assert elf.build_id is None
    assert elf.soname is None
    assert elf.rpath == ("/a",)
    assert elf.machine == "999"


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF", b"MZ" + bytes(100)])
def test_other_files_are_no_elf(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse(data)


def test_every_truncation_is_an_error_or_a_smaller_truth() -> None:
    whole = make_elf(needed=["libllama.so.0"])
    for length in range(len(whole)):
        try:
            elf = parse(whole[:length])
        except ParseError:
            continue
        assert set(elf.needed) <= {"libllama.so.0"}


def test_a_count_that_lies_does_not_take_long() -> None:
    data = bytearray(make_elf(needed=["liba.so"]))
    data[56:58] = b"\xff\xff"  # program headers
    with pytest.raises(ParseError):
        parse(bytes(data))
