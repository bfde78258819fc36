from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.facts.binaries import collect_binaries, collect_binary, confirm_flags
from llamaops.facts.discovery import role_of
from llamaops.schema.fact import Known, Unknown
from llamaops.system.process import Completed, Exited, Signalled, StoppedAtBound
from llamaops.system.watch import Program
from tests.fakes.elf_files import make_elf
from tests.fakes.system import FakeSystem, completed

DATA = Path(__file__).parents[2] / "data" / "engines"
HELP = (DATA / "b11669/llama-server.help.stdout.txt").read_text()
VERSION = "version: 0.7.0 (build 11669, commit 1a2b3c4d)\nbuilt with GNU 16.2.0 for Linux x86_64\n"
SERVER = "/opt/llama/llama-server"


def answers(path: str, **changed: Completed) -> dict[tuple[str, ...], Completed]:
    found = {
        "help": completed((path, "--help"), stdout=HELP),
        "version": completed((path, "--version"), stderr=VERSION),
        "list_devices": completed((path, "--list-devices"), stdout="Available devices:\n  (none)\n"),
        **changed,
    }
    return {answer.argv: answer for answer in found.values()}


def test_one_program() -> None:
    system = FakeSystem(files={SERVER: make_elf(), "/etc/llama.cpp/config.ini": ""}, commands=answers(SERVER))
    binary = collect_binary(system, SERVER, "llama-server")
    assert len(binary.capabilities.need().options) == 258
    assert binary.version.build.need() == 11669
    assert binary.devices.need() == ()
    assert binary.runs.need()
    assert binary.inherited.config_files == ("/etc/llama.cpp/config.ini",)
    assert set(system.kept) >= {binary.devices.source.evidence, binary.capabilities.source.evidence}
    assert system.kept[binary.version.text.source.evidence or ""].text == VERSION
    assert isinstance(binary.backends, Unknown)  # no library of its own: nothing is claimed


def test_programs_come_from_every_place_each_once() -> None:
    folders = ("/given", "/usr/bin", "/home/me/llama.cpp/build/bin")
    paths = [f"{folder}/llama-server" for folder in folders]
    commands = {argv: answer for path in paths for argv, answer in answers(path).items()}
    system = FakeSystem(
        files={**{path: make_elf() for path in paths}, "/usr/bin/llama-server.1": "a manual"},
        links={"/usr/local/bin/llama-server": "/usr/bin/llama-server"},
        commands=commands,
        environ={"PATH": "/usr/bin:/usr/local/bin:relative::/usr/bin", "HOME": "/home/me"},
    )
    facts = collect_binaries(system, bin_dir="/given")
    assert [(b.path, b.found_by) for b in facts.found.need()] == [
        (paths[0], "bin_dir"),
        (paths[1], "PATH"),
        (paths[2], "build_folder"),
    ]
    assert facts.found.need()[1].also_at == ("/usr/local/bin/llama-server",)
    assert "relative" not in facts.searched
    assert facts.searched.count("/usr/bin") == 1


def test_no_program_is_an_empty_list_and_not_unknown() -> None:
    facts = collect_binaries(FakeSystem(environ={"PATH": "/usr/bin"}), bin_dir=None)
    assert facts.found.need() == ()
    assert "/usr/bin" in facts.searched


def test_quantize_answers_with_its_usage_text_and_is_not_broken() -> None:
    path = "/opt/llama/llama-quantize"
    usage = (DATA / "b11669/llama-quantize.help.stdout.txt").read_text()
    refused = [completed((path, flag), stdout=usage, end=Exited(1)) for flag in ("--help", "--version")]
    commands = {answer.argv: answer for answer in refused}
    system = FakeSystem(files={path: make_elf()}, commands=commands)
    binary = collect_binary(system, path, "llama-quantize")
    assert binary.runs.need()
    assert binary.failures == ()
    assert isinstance(binary.version.text, Unknown)
    assert binary.version.text.why == "unsupported"
    assert isinstance(binary.devices, Unknown)
    assert binary.devices.why == "unsupported"


def test_an_older_bench_without_version_is_not_broken() -> None:
    path = "/opt/llama/llama-bench"
    usage = (DATA / "b11669/llama-bench.help.stdout.txt").read_text()
    refused = completed(
        (path, "--version"), stderr="error: unknown argument: --version\n" + usage, end=Exited(1)
    )
    system = FakeSystem(
        files={path: make_elf()},
        commands=answers(path, help=completed((path, "--help"), stdout=usage), version=refused),
    )
    binary = collect_binary(system, path, "llama-bench")
    assert binary.runs.need()
    assert binary.failures == ()
    assert isinstance(binary.version.text, Unknown)
    assert binary.version.text.why == "unsupported"


def test_an_old_help_text_on_standard_error_is_read() -> None:
    text = "usage: rpc-server [options]\n\noptions:\n  -H HOST, --host HOST  address\n"
    path = "/opt/llama/rpc-server"
    system = FakeSystem(
        files={path: make_elf()}, commands={(path, "--help"): completed((path, "--help"), stderr=text)}
    )
    binary = collect_binary(system, path, "ggml-rpc-server")
    assert binary.capabilities.need().options[0].aliases == ("-H", "--host")
    assert [probe.arguments for probe in binary.probes] == [("--help",)]


def test_a_missing_library_joins_the_header_and_the_loader() -> None:
    said = (
        "llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object file\n"
    )
    failed: dict[tuple[str, ...], Completed] = {
        (SERVER, flag): completed((SERVER, flag), stderr=said, end=Exited(127))
        for flag in ("--help", "--version", "--list-devices")
    }
    system = FakeSystem(
        files={
            SERVER: make_elf(needed=["libgomp.so.1", "libstdc++.so.6"]),
            "/etc/os-release": "ID=debian\n",
        },
        commands=failed,
    )
    binary = collect_binary(system, SERVER, "llama-server")
    assert [(m.name, m.needed_by, m.package) for m in binary.missing_libraries.need()] == [
        ("libgomp.so.1", SERVER, "package libgomp1"),
        ("libstdc++.so.6", SERVER, "package libstdc++6"),
    ]
    assert not binary.runs.need()
    for fact in (binary.capabilities, binary.devices, binary.version.build):
        assert isinstance(fact, Unknown)
        assert fact.why == "failed"


def test_a_program_that_ran_misses_nothing_whatever_its_header_says() -> None:
    system = FakeSystem(files={SERVER: make_elf(needed=["libodd.so.1"])}, commands=answers(SERVER))
    assert collect_binary(system, SERVER, "llama-server").missing_libraries.need() == ()


@pytest.mark.parametrize(
    ("end", "why", "kind"),
    [
        (StoppedAtBound("wall_s", killed=True), "timed_out", "timed_out"),
        (Signalled(11), "failed", "crashed"),
        (Signalled(4), "failed", "illegal_instruction"),
    ],
)
def test_a_device_list_that_fails_leaves_the_rest(
    end: Signalled | StoppedAtBound, why: str, kind: str
) -> None:
    listed = completed((SERVER, "--list-devices"), stdout="Available devices:\n", end=end)
    system = FakeSystem(files={SERVER: make_elf()}, commands=answers(SERVER, list_devices=listed))
    binary = collect_binary(system, SERVER, "llama-server")
    assert binary.runs.need()
    assert isinstance(binary.devices, Unknown)
    assert binary.devices.why == why
    assert [failure.kind for failure in binary.failures] == [kind]


def test_mapped_libraries_are_what_was_loaded() -> None:
    wrapper = "/usr/bin/llama-server"
    plugin = "/usr/lib/ggml/libggml-cpu-zen4.so"
    system = FakeSystem(
        files={
            wrapper: "#!/bin/sh\n",
            SERVER: make_elf(),
            plugin: make_elf(soname="x"),
            "/usr/lib/ggml/libggml-vulkan.so": make_elf(),
        },
        commands=answers(wrapper),
        programs={(wrapper, "--help"): [Program(7, "/bin/dash", ()), Program(8, SERVER, (SERVER, plugin))]},
    )
    binary = collect_binary(system, wrapper, "llama-server")
    assert binary.wrapper
    assert isinstance(binary.executes, Known)
    assert binary.executes.value == SERVER
    assert [(b.name, b.how) for b in binary.backends.need()] == [("cpu-zen4", "mapped"), ("vulkan", "plugin")]
    assert binary.libraries.need()[0].build_id == "abcd" * 10


@pytest.mark.parametrize(
    ("stderr", "end", "expected"),
    [
        (VERSION, Exited(0), True),
        ("error: invalid argument: --no-such-flag\n", Exited(1), False),
        ('error while handling argument "-ngl": stoi\n\nusage:\n-ngl N\n', Exited(1), False),
        ("error: unknown argument: --version\n", Exited(1), None),
        ("", Signalled(11), None),
        ("", Exited(0), None),
    ],
)
def test_a_dry_parse(stderr: str, end: Exited | Signalled, expected: bool | None) -> None:
    argv = (SERVER, "-c", "512", "--version")
    system = FakeSystem(commands={argv: completed(argv, stderr=stderr, end=end)})
    fact = confirm_flags(system, SERVER, ["-c", "512"])
    assert (fact.value if isinstance(fact, Known) else None) is expected


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("llama-server", "llama-server"), ("llama-server-vulkan", "llama-server"), ("server", "llama-server"),
        ("main", "main"), ("llama", "llama"), ("llama-server.1", None), ("llama-serverless", None),
        ("serverd", None), ("libllama.so", None), ("ggml-rpc-server", "ggml-rpc-server"),
    ],
)  # fmt: skip
def test_the_role_of_a_name(name: str, role: str | None) -> None:
    assert role_of(name) == role
