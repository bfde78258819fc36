"""What an engine prints of its own projection, read from real lines."""

from __future__ import annotations

from pathlib import Path

from llamaops.launch.settings import LaunchSettings
from llamaops.operations.ask_engine import ask_engine, projection_argv, read_breakdown
from llamaops.schema.fact import Known, Source, Unknown
from llamaops.system.machine import Machine

SOURCE = Source(kind="command", name="llama-server")
TITLE = "I common_memory_breakdown_print: | memory breakdown [MiB] | total free self model context compute |"
HOST = "I common_memory_breakdown_print: |   - Host               |      1448 =  1252 +     128 +      68   |"
CARD = (
    "I common_memory_breakdown_print: |   - CUDA0 (RTX 4090)  | 24080 = 20000 + (3000 =  2500 +  400 + "
    "100) +        1080 |"
)


def test_rows_of_host_and_card_are_added() -> None:
    found = read_breakdown([TITLE, HOST, CARD], "llama-server", SOURCE)
    assert isinstance(found, Known)
    assert (found.value.model_mib, found.value.context_mib, found.value.compute_mib) == (3752, 528, 168)


def test_only_the_last_table_counts() -> None:
    found = read_breakdown([TITLE, CARD, TITLE, HOST], "llama-server", SOURCE)
    assert isinstance(found, Known)
    assert found.value.model_mib == 1252


def test_no_table_is_unknown() -> None:
    assert isinstance(read_breakdown([HOST], "llama-server", SOURCE), Unknown)
    assert isinstance(read_breakdown([TITLE, "|   - garbage"], "llama-server", SOURCE), Unknown)


def test_settings_reach_the_engine() -> None:
    settings = LaunchSettings(model_path="m.gguf", ctx_size=100, kv_unified=False, n_gpu_layers="all")
    argv = projection_argv("bin/llama-server", "m.gguf", settings, 1)
    assert argv[:3] == ("bin/llama-server", "-m", "m.gguf")
    for words in (("-c", "100"), ("-ngl", "all")):
        assert argv[argv.index(words[0]) + 1] == words[1]
    assert "-no-kvu" in argv
    assert "--port" not in projection_argv("llama-fit-params", "m.gguf", settings, 1)


def test_an_engine_that_refuses_is_quoted(tmp_path: Path) -> None:
    program = tmp_path / "llama-fit-params"
    program.write_text("#!/bin/sh\necho 'error: invalid argument: -kvu' >&2\nexit 1\n")
    program.chmod(0o700)
    settings = LaunchSettings(model_path="m.gguf", kv_unified=True)
    with Machine() as machine:
        found = ask_engine(machine, str(program), "m.gguf", settings)
    assert isinstance(found, Unknown)
    assert found.detail.endswith("printed no projection but: error: invalid argument: -kvu")
