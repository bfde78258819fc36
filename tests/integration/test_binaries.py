"""Programs that run, and programs that fail in every way an installation fails: real processes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamaops.facts import binary_probe
from llamaops.facts.binaries import BinaryFacts, collect_binaries, collect_binary, confirm_flags
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Unknown
from llamaops.system.machine import Machine
from tests.fakes import programs

linux = pytest.mark.skipif(not os.path.exists("/proc/self/exe"), reason="looks at processes through /proc")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Machine({"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}) as machine:
        yield machine


def value(fact: Fact[str]) -> str:
    assert isinstance(fact, Known), fact
    return fact.value


def collect(machine: Machine, path: Path) -> BinaryFacts:
    return collect_binary(machine, str(path), "llama-server")


def kinds(binary: BinaryFacts) -> set[str]:
    return {failure.kind for failure in binary.failures}


def test_an_honest_program_is_known_in_every_respect(tmp_path: Path, machine: Machine) -> None:
    path = programs.honest(tmp_path / "llama-server")
    binary = collect(machine, path)
    assert binary.runs.need()
    assert not binary.wrapper
    assert value(binary.executes) == str(path)
    assert value(binary.sha256) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert binary.size_bytes.need() == path.stat().st_size
    assert value(binary.version.commit) == "abcdef12"
    assert binary.capabilities.need().takes_value("--ctx-size")
    assert [(d.name, d.total_bytes, d.free_bytes) for d in binary.devices.need()] == [
        ("Fake0", 2048 << 20, 1024 << 20)
    ]
    assert binary.failures == ()
    assert {probe.arguments for probe in binary.probes} == {("--help",), ("--version",), ("--list-devices",)}
    evidence = {item.id for item in machine.evidence}
    assert binary.devices.source.evidence in evidence
    assert binary.version.text.source.evidence in evidence


WRAPPERS = {
    "exec": '#!/bin/sh\nexec "{target}" "$@"\n',
    "child": '#!/bin/sh\n"{target}" "$@"\nexit $?\n',
    "clean environment": '#!/bin/sh\nexec env -i "{target}" "$@"\n',
    "by name": '#!/bin/sh\nPATH="$(dirname "{target}"):$PATH"\nname=llama; exec "$name-server" "$@"\n',
    "own session": '#!/bin/sh\nsetsid --wait "{target}" "$@"\n',
    "background": '#!/bin/sh\n"{target}" "$@" &\nwait\n',
    "through a pipe": '#!/bin/sh\n"{target}" "$@" | cat\n',
    "variables": '#!/bin/sh\nD="$(dirname "{target}")"\nset -e\n"$D"/llama-server "$@" 2>&2\nexit\n',
}


@linux
@pytest.mark.parametrize("text", WRAPPERS.values(), ids=WRAPPERS.keys())
def test_identity_goes_through_shell_wrappers(text: str, tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server")
    wrapper = programs.script(tmp_path / "bin" / "llama-server", text.format(target=target))
    binary = collect(machine, wrapper)
    assert binary.wrapper
    assert value(binary.executes) == str(target)
    assert value(binary.sha256) == hashlib.sha256(target.read_bytes()).hexdigest()
    assert value(binary.sha256) != hashlib.sha256(wrapper.read_bytes()).hexdigest()


@linux
@pytest.mark.parametrize(
    "body",
    [
        "import os, sys\nos.execv({target!r}, [{target!r}, *sys.argv[1:]])",
        "import subprocess, sys\nsys.exit(subprocess.call([{target!r}, *sys.argv[1:]]))",
    ],
    ids=["execv", "subprocess"],
)
def test_identity_goes_through_python_launchers(body: str, tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server")
    launcher = programs.python_launcher(tmp_path / "llama-server", body.format(target=str(target)))
    binary = collect(machine, launcher)
    assert binary.wrapper
    assert value(binary.executes) == str(target)


@linux
def test_identity_goes_through_wrapper_of_wrapper_and_links(tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server-0.9")
    inner = programs.script(tmp_path / "inner", f'#!/bin/sh\n{target} "$@"\n')
    outer = programs.script(tmp_path / "outer", f'#!/bin/sh\n{inner} "$@"\n')
    (tmp_path / "one").symlink_to(outer)
    link = tmp_path / "llama-server"
    link.symlink_to("one")
    binary = collect(machine, link)
    assert binary.real_path == str(outer)
    assert value(binary.executes) == str(target)


def test_a_link_to_the_program_is_no_wrapper(tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server")
    (tmp_path / "two").symlink_to(target)
    link = tmp_path / "llama-server"
    link.symlink_to("two")
    binary = collect(machine, link)
    assert not binary.wrapper
    assert value(binary.executes) == str(target)


def test_a_launcher_that_keeps_the_output_back_stays_unknown(tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server", fillers=1)
    text = f'#!/bin/sh\nif out=$({target} "$@" 2>&1); then echo "$out"; fi\n'
    binary = collect(machine, programs.script(tmp_path / "llama-server", text))
    assert isinstance(binary.executes, Unknown)
    assert isinstance(binary.sha256, Unknown)


def test_a_script_that_runs_nothing_we_can_see_stays_unknown(tmp_path: Path, machine: Machine) -> None:
    text = (
        "#!/bin/sh\ncase $1 in --version) echo 'version: 5 (abc)' >&2;;"
        " *) echo '  -c N, --ctx-size N  size';; esac\n"
    )
    binary = collect(machine, programs.script(tmp_path / "llama-server", text))
    assert isinstance(binary.executes, Unknown)
    assert isinstance(binary.sha256, Unknown)
    assert isinstance(binary.libraries, Unknown)
    assert binary.version.build.need() == 5


def test_a_missing_library_is_named_with_who_needs_it(tmp_path: Path, machine: Machine) -> None:
    path = programs.with_library(tmp_path / "llama-server", "libggml-fake.so.3")
    assert collect(machine, path).missing_libraries.need() == ()
    (tmp_path / "libggml-fake.so.3").unlink()
    binary = collect(machine, path)
    assert not binary.runs.need()
    assert kinds(binary) == {"missing_library"}
    (missing,) = binary.missing_libraries.need()
    assert missing.name == "libggml-fake.so.3"
    assert missing.needed_by == str(path)
    assert missing.package is not None
    assert isinstance(binary.capabilities, Unknown)
    assert "libggml-fake.so.3" in binary.capabilities.detail


def test_own_libraries_are_found_with_their_digests(tmp_path: Path, machine: Machine) -> None:
    path = programs.with_library(tmp_path / "llama-server", "libggml-fake.so.3")
    (tmp_path / "libggml-other.so").write_bytes((tmp_path / "libggml-fake.so.3").read_bytes())
    binary = collect(machine, path)
    libraries = {library.name: library for library in binary.libraries.need()}
    assert libraries["libggml-fake.so.3"].how == "linked"
    assert libraries["libggml-other.so"].how == "plugin"
    digest = hashlib.sha256((tmp_path / "libggml-fake.so.3").read_bytes()).hexdigest()
    assert value(libraries["libggml-fake.so.3"].sha256) == digest
    assert [(backend.name, backend.how) for backend in binary.backends.need()] == [
        ("fake", "linked"),
        ("other", "plugin"),
    ]


def test_an_illegal_instruction_is_a_failure_with_its_name(tmp_path: Path, machine: Machine) -> None:
    source = "int main(void) { __builtin_trap(); }" if os.uname().machine == "x86_64" else (
        "#include <signal.h>\nint main(void) { raise(SIGILL); return 0; }"
    )  # fmt: skip
    path = programs.compile_c(source, tmp_path / "llama-server")
    binary = collect(machine, path)
    assert not binary.runs.need()
    assert kinds(binary) == {"illegal_instruction"}
    wrapper = programs.script(tmp_path / "wrapped", f'#!/bin/sh\n"{path}" "$@"\nexit $?\n')
    assert kinds(collect(machine, wrapper)) == {"illegal_instruction"}


@pytest.fixture
def short_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(wall_s=0.5, grace_s=0.2, total_bytes=1 << 20)
    monkeypatch.setattr(binary_probe, "PROBE_BOUNDS", bounds)


@pytest.mark.usefixtures("short_bounds")
def test_a_hang_is_bounded_and_named(tmp_path: Path, machine: Machine) -> None:
    path = programs.script(tmp_path / "llama-server", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    binary = collect(machine, path)
    assert kinds(binary) == {"timed_out"}
    assert isinstance(binary.version.text, Unknown)
    assert binary.version.text.why == "timed_out"
    assert isinstance(binary.devices, Unknown)
    assert binary.devices.why == "timed_out"


@pytest.mark.usefixtures("short_bounds")
def test_a_hang_of_the_device_list_leaves_the_rest_known(tmp_path: Path, machine: Machine) -> None:
    target = programs.honest(tmp_path / "real" / "llama-server")
    text = f'#!/bin/sh\n[ "$1" = --list-devices ] && exec sleep 60\nexec {target} "$@"\n'
    binary = collect(machine, programs.script(tmp_path / "llama-server", text))
    assert binary.runs.need()
    assert value(binary.version.semver) == "0.9.1"
    assert isinstance(binary.devices, Unknown)
    assert [failure.probe for failure in binary.failures] == ["--list-devices"]


@pytest.mark.usefixtures("short_bounds")
def test_a_flood_is_stopped(tmp_path: Path, machine: Machine) -> None:
    path = programs.script(tmp_path / "llama-server", "#!/bin/sh\nexec yes ggml\n")
    assert "flooded" in kinds(collect(machine, path))


def test_a_file_that_may_not_be_executed(tmp_path: Path, machine: Machine) -> None:
    path = programs.honest(tmp_path / "llama-server")
    path.chmod(stat.S_IRUSR)
    binary = collect(machine, path)
    assert kinds(binary) == {"not_executable"}
    assert value(binary.executes) == str(path)


def test_a_program_for_another_machine(tmp_path: Path, machine: Machine) -> None:
    path = programs.honest(tmp_path / "llama-server")
    content = bytearray(path.read_bytes())
    content[18:20] = (21).to_bytes(2, "little")
    path.write_bytes(content)
    binary = collect(machine, path)
    assert kinds(binary) == {"wrong_architecture"}
    assert binary.elf.need().machine == "powerpc64"


@pytest.mark.parametrize("content", [b"<html>404</html>\n", b"", b"\x7fELF", b"version https://git-lfs\n"])
def test_a_file_that_is_no_program(content: bytes, tmp_path: Path, machine: Machine) -> None:
    path = tmp_path / "llama-server"
    path.write_bytes(content)
    path.chmod(0o755)
    binary = collect(machine, path)
    assert not binary.runs.need()
    assert kinds(binary) == {"wrong_architecture"}


def test_a_wrapper_without_its_target_and_a_script_without_its_interpreter(
    tmp_path: Path, machine: Machine
) -> None:
    gone = programs.script(tmp_path / "llama-server", '#!/bin/sh\nexec /nowhere/llama-server "$@"\n')
    assert kinds(collect(machine, gone)) == {"not_found"}
    orphan = programs.script(tmp_path / "llama-cli", "#!/nowhere/sh\n")
    assert kinds(collect(machine, orphan)) == {"bad_interpreter"}
    assert kinds(collect(machine, tmp_path / "absent")) == {"not_found"}


def test_a_broken_configuration_file_is_named(tmp_path: Path, machine: Machine) -> None:
    path = programs.script(tmp_path / "llama-server", "#!/bin/sh\necho stoi >&2\nexit 1\n")
    assert kinds(collect(machine, path)) == {"config_file"}


def test_an_unknown_program_named_server_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    folder = tmp_path / "bin"
    programs.script(folder / "server", f"#!/bin/sh\ntouch {mark}\n")
    programs.script(folder / "main", f"#!/bin/sh\ntouch {mark}\n")
    with Machine({"PATH": str(folder)}) as machine:
        facts = collect_binaries(machine, bin_dir=None)
    assert facts.found.need() == ()
    assert facts.not_run == (str(folder / "main"), str(folder / "server"))
    assert not mark.exists()


def test_a_program_named_server_that_speaks_of_gguf_gets_help_first(tmp_path: Path) -> None:
    log = tmp_path / "arguments"
    folder = tmp_path / "bin"
    programs.script(
        folder / "server", f"#!/bin/sh\n# converts gguf\necho \"$@\" >>{log}\necho 'a game server'\n"
    )
    with Machine({"PATH": str(folder)}) as machine:
        facts = collect_binaries(machine, bin_dir=None)
    assert log.read_text() == "--help\n"
    assert facts.found.need() == ()


def test_an_old_server_is_found_by_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    text = (
        "#!/bin/sh\n# gguf\ncase $1 in --help) printf 'usage: ./server [options]\\n\\noptions:\\n"
        "  -c N, --ctx-size N    size of the prompt context (default: 512)\\n';;\n"
        "--version) echo 'version: 2000 (d2f650cb)' >&2;;\n"
        '*) echo "error: unknown argument: $1" >&2; exit 1;;esac\n'
    )
    programs.script(folder / "server", text)
    with Machine({"PATH": str(folder)}) as machine:
        (binary,) = collect_binaries(machine, bin_dir=None).found.need()
    assert binary.role == "llama-server"
    assert binary.version.build.need() == 2000
    assert isinstance(binary.devices, Unknown)
    assert binary.devices.why == "unsupported"
    assert binary.failures == ()


def test_one_program_of_a_set_is_asked_for_the_devices(tmp_path: Path, machine: Machine) -> None:
    first = programs.with_library(tmp_path / "llama-server", "libggml-fake.so.3")
    (tmp_path / "llama-cli").write_bytes(first.read_bytes())
    (tmp_path / "llama-cli").chmod(0o755)
    facts = collect_binaries(machine, bin_dir=str(tmp_path))
    found = {binary.role: binary for binary in facts.found.need()}
    asked = [probe for b in found.values() for probe in b.probes if probe.arguments == ("--list-devices",)]
    assert len(asked) == 1
    assert found["llama-cli"].devices.need() == found["llama-server"].devices.need()


def test_the_program_itself_confirms_flags(tmp_path: Path, machine: Machine) -> None:
    text = (
        '#!/bin/sh\nfor x in "$@"; do case $x in\n'
        "--gone) echo 'error: invalid argument: --gone' >&2; exit 1;;\n"
        "--version) echo 'version: 5 (abc)' >&2; exit 0;; esac; done\n"
    )
    path = str(programs.script(tmp_path / "llama-server", text))
    assert confirm_flags(machine, path, ["-c", "512"]).need()
    assert not confirm_flags(machine, path, ["--gone"]).need()
    old = "#!/bin/sh\necho 'error: unknown argument: --version' >&2\nexit 1\n"
    fact = confirm_flags(machine, str(programs.script(tmp_path / "llama-bench", old)), ["-p", "1"])
    assert isinstance(fact, Unknown)
    assert fact.why == "unsupported"
