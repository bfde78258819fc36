from __future__ import annotations

import pytest

from llamaops.facts.libraries import Loader, backend_name
from llamaops.facts.library_packages import Family, package_of, parse_family
from tests.fakes.elf_files import make_elf
from tests.fakes.system import FakeSystem

SYSTEM = {"/lib/x86_64-linux-gnu/libc.so.6": make_elf(), "/lib/x86_64-linux-gnu/libstdc++.so.6": make_elf()}


def follow(files: dict[str, bytes | str], **fields: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    system = FakeSystem(files={**SYSTEM, **files}, **fields)  # type: ignore[arg-type]  # environ and links
    linked = Loader(system).follow("/opt/bin/llama-server")
    return {name: path for name, (path, _header) in linked.own.items()}, linked.missing


def test_libraries_beside_the_program_are_followed_to_theirs() -> None:
    own, missing = follow(
        {
            "/opt/bin/llama-server": make_elf(needed=["libllama.so.0", "libc.so.6"], runpath="$ORIGIN"),
            "/opt/bin/libllama.so.0": make_elf(
                needed=["libggml.so.0", "libgomp.so.1"], runpath="${ORIGIN}/../lib"
            ),
            "/opt/lib/libggml.so.0": make_elf(needed=["libstdc++.so.6"]),
        }
    )
    assert own == {"libllama.so.0": "/opt/bin/libllama.so.0", "libggml.so.0": "/opt/lib/libggml.so.0"}
    assert missing == {"libgomp.so.1": "/opt/bin/libllama.so.0"}


def test_a_runpath_is_not_inherited_and_an_rpath_is() -> None:
    inner = make_elf(needed=["libggml.so.0"])
    files = {"/opt/bin/libllama.so.0": inner, "/opt/bin/libggml.so.0": make_elf()}
    _own, missing = follow(
        {"/opt/bin/llama-server": make_elf(needed=["libllama.so.0"], runpath="$ORIGIN"), **files}
    )
    assert missing == {"libggml.so.0": "/opt/bin/libllama.so.0"}
    _own, missing = follow(
        {"/opt/bin/llama-server": make_elf(needed=["libllama.so.0"], rpath="$ORIGIN"), **files}
    )
    assert missing == {}


def test_the_order_is_rpath_then_environment_then_runpath() -> None:
    files = {
        "/env/libllama.so.0": make_elf(),
        "/opt/bin/libllama.so.0": make_elf(),
    }
    program = make_elf(needed=["libllama.so.0"], runpath="$ORIGIN")
    own, _missing = follow({"/opt/bin/llama-server": program, **files}, environ={"LD_LIBRARY_PATH": "/env"})
    assert own["libllama.so.0"] == "/env/libllama.so.0"
    program = make_elf(needed=["libllama.so.0"], rpath="$ORIGIN")
    own, _missing = follow({"/opt/bin/llama-server": program, **files}, environ={"LD_LIBRARY_PATH": "/env"})
    assert own["libllama.so.0"] == "/opt/bin/libllama.so.0"


def test_configured_folders_and_links_are_used() -> None:
    own, missing = follow(
        {
            "/opt/bin/llama-server": make_elf(needed=["libllama.so.0"]),
            "/etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
            "/etc/ld.so.conf.d/llama.conf": "# ours\n/srv/llama/lib\n",
            "/srv/llama/lib/libllama.so.0.9.0": make_elf(),
        },
        links={"/srv/llama/lib/libllama.so.0": "/srv/llama/lib/libllama.so.0.9.0"},
    )
    assert own == {"libllama.so.0": "/srv/llama/lib/libllama.so.0.9.0"}
    assert missing == {}


def test_a_static_program_and_a_file_that_is_none_need_nothing() -> None:
    assert follow({"/opt/bin/llama-server": make_elf(interpreter=None)}) == ({}, {})
    assert follow({"/opt/bin/llama-server": "#!/bin/sh\n"}) == ({}, {})


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("libggml-cpu-zen4.so", "cpu-zen4"), ("libggml-vulkan.so.0.20.0", "vulkan"),
        ("libggml-base.so.0", None), ("libggml.so.0", None), ("libllama.so", None),
        ("libggml-metal.dylib", "metal"),
    ],
)  # fmt: skip
def test_the_back_end_of_a_file_name(file: str, name: str | None) -> None:
    assert backend_name(file) == name


@pytest.mark.parametrize(
    ("library", "family", "says"),
    [
        ("libgomp.so.1", "debian", "package libgomp1"),
        ("libgomp.so.1", "arch", "package gcc-libs"),
        ("libstdc++.so.6", "alpine", "package libstdc++"),
        ("libssl.so.3", "fedora", "package openssl-libs"),
        ("libgomp.so.1", "other", None),
        ("libcuda.so.1", "debian", "NVIDIA driver"),
        ("libcudart.so.12", "debian", "CUDA 12"),
        ("libcublas.so.11", "other", "CUDA 11"),
        ("libamdhip64.so.6", "debian", "ROCm"),
        ("libllama.so", "debian", "llama.cpp itself"),
        ("libggml-base.so.0", "debian", "llama.cpp itself"),
        ("libsomething.so.1", "debian", None),
    ],
)
def test_what_provides_a_library(library: str, family: Family, says: str | None) -> None:
    found = package_of(library, family)
    assert found is None if says is None else says in (found or "")


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("ID=debian\n", "debian"),
        ('ID="linuxmint"\nID_LIKE="ubuntu debian"\n', "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=alpine\n", "alpine"),
        ('NAME="Some ID=debian"\nID=void\n', "other"),
        ("", "other"),
    ],
)
def test_the_family_of_a_distribution(text: str, family: str) -> None:
    assert parse_family(text) == family
