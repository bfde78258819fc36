from __future__ import annotations

import pytest

from llamaops.facts.program import choose, exec_target, identify, read_start
from llamaops.schema.fact import Known, Unknown
from llamaops.system.watch import Program
from tests.fakes.elf_files import make_elf
from tests.fakes.system import FakeSystem

TARGET = "/opt/llama/bin/llama-server"
STATIC = "/srv/llama-server"


def machine(script: str = "", **fields: dict[str, str]) -> FakeSystem:
    program = make_elf(needed=["libllama.so.0"])
    files = {
        TARGET: program, STATIC: program, "/opt/llama/wrapper": script, "/usr/bin/docker": program,
        "/usr/bin/cat": make_elf(), "/usr/bin/setsid": make_elf(),
    }  # fmt: skip
    return FakeSystem(files=files, **fields)  # type: ignore[arg-type]  # links, on_path and environ


@pytest.mark.parametrize(
    "body",
    [
        'exec /opt/llama/bin/llama-server "$@"',
        "exec /opt/llama/bin/llama-server $@",
        '/opt/llama/bin/llama-server "$@"\nexit $?',
        'export LD_LIBRARY_PATH=/opt/llama/lib\nexec env GGML_X=1 "/opt/llama/bin/llama-server" "$@"',
        'DIR="$(cd "$(dirname "$0")" && pwd)"\nexec "$DIR/bin/llama-server" "$@"',
        'DIR=$(dirname "$(readlink -f "$0")")\n"$DIR"/bin/llama-server --offline "$@"',
        'exec "$(dirname "$0")/bin/llama-server" "$@"',
        'HERE="${BASH_SOURCE[0]%/*}"\nexec "${HERE}/bin/llama-server" "$@"',
        'BIN=/opt/llama/bin\nNAME=llama-server\nexec "$BIN/$NAME" "$@"',
        'exec llama-server "$@"',
    ],
)
def test_plain_wrappers_are_read(body: str) -> None:
    script = f"#!/bin/bash\n# a wrapper\n{body}\n"
    system = machine(script, on_path={"llama-server": TARGET})
    assert exec_target(system, "/opt/llama/wrapper", script) == TARGET


@pytest.mark.parametrize(
    "script",
    [
        '#!/bin/sh\nif [ -e /dev/x ]; then exec /opt/llama/bin/llama-server "$@"; fi\nexec /other "$@"\n',
        '#!/bin/sh\nexec "$SOMEWHERE/llama-server" "$@"\n',
        '#!/bin/sh\nexec "$(find / -name llama-server)" "$@"\n',
        '#!/bin/sh\nexec /nowhere/llama-server "$@"\n',
        "#!/bin/sh\n/opt/llama/bin/llama-server --fixed\n",
        '#!/bin/sh\nexec /usr/bin/docker run llama "$@"\n',
        '#!/bin/sh\nexec /usr/bin/cat "$@"\n',
        '#!/usr/bin/python3\nexec /opt/llama/bin/llama-server "$@"\n',
        '#!/bin/sh\neval "exec $(cat /etc/which)" "$@"\n',
        "",
    ],
)
def test_a_text_that_leaves_doubt_gives_nothing(script: str) -> None:
    assert exec_target(machine(script), "/opt/llama/wrapper", script) is None


def seen(*items: tuple[str, tuple[str, ...]]) -> list[Program]:
    return [Program(pid, executable, mapped) for pid, (executable, mapped) in enumerate(items)]


def test_of_the_programs_seen_the_one_with_llama_libraries_counts() -> None:
    mapped = (TARGET, "/opt/libllama.so.0")
    assert choose(machine(), seen(("/bin/dash", ("/bin/dash",)), (TARGET, mapped))) == TARGET
    assert choose(machine(), seen((TARGET, mapped), (STATIC, (STATIC,)))) == TARGET
    assert choose(machine(), seen(("/bin/dash", ()), (STATIC, (STATIC,)))) == STATIC


@pytest.mark.parametrize("other", ["/usr/bin/cat", "/usr/bin/setsid", "/usr/bin/docker"])
def test_a_program_that_does_not_speak_of_llama_is_not_it(other: str) -> None:
    assert choose(machine(), seen(("/bin/dash", ()), (other, (other,)))) is None


def test_an_interpreter_is_the_program_only_with_the_libraries_in_it() -> None:
    assert choose(machine(), seen(("/usr/bin/python3.11", ("/usr/bin/python3.11",)))) is None
    mapped = ("/usr/bin/python3.11", "/site/llama_cpp/lib/libllama.so")
    assert choose(machine(), seen(("/usr/bin/python3.11", mapped))) == "/usr/bin/python3.11"
    assert choose(machine(), []) is None


def test_a_program_started_through_the_loader() -> None:
    loader = "/nix/store/x-glibc/lib/ld-linux-x86-64.so.2"
    mapped = ("/nix/store/y/bin/.llama-server-wrapped", "/l/libllama.so.0", loader)
    found = choose(machine(), seen((loader, mapped)))
    assert found == "/nix/store/y/bin/.llama-server-wrapped"


def test_a_relay_is_unknown_and_said_so() -> None:
    system = machine('#!/bin/sh\nexec docker run llama "$@"\n')
    start = read_start(system, "/opt/llama/wrapper")
    fact = identify(system, "/opt/llama/wrapper", start, seen(("/usr/bin/docker", ())), "w --help")
    assert isinstance(fact, Unknown)
    assert fact.why == "unsupported"
    assert "/usr/bin/docker" in fact.detail


def test_what_was_seen_comes_before_what_the_text_says() -> None:
    system = machine(f'#!/bin/sh\nexec {TARGET} "$@"\n')
    start = read_start(system, "/opt/llama/wrapper")
    other = STATIC
    fact = identify(system, "/opt/llama/wrapper", start, seen((other, (other,))), "w --help")
    assert isinstance(fact, Known)
    assert (fact.value, fact.source.kind) == (other, "command")
    fact = identify(system, "/opt/llama/wrapper", start, [], "w --help")
    assert isinstance(fact, Known)
    assert (fact.value, fact.source.kind) == (TARGET, "file")


def test_an_unreadable_file_is_refused() -> None:
    system = FakeSystem(files={"/x": PermissionError(13, "Permission denied")})
    fact = identify(system, "/x", read_start(system, "/x"), [], "/x --help")
    assert isinstance(fact, Unknown)
    assert fact.why == "refused"
