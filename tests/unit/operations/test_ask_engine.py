"""What an engine prints of its own projection, read from real lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.facts.capabilities import parse_help
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


HELP = """usage: program [options]

-m,    --model FNAME        model path
-lv,   --verbosity N        verbosity
-c,    --ctx-size N         context
-ngl,  --gpu-layers N       layers
--host HOST                 address
--port PORT                 port
"""
UNIFIED = "-kvu,  --kv-unified, -no-kvu, --no-kv-unified    one cache for all\n"


def test_settings_reach_the_engine() -> None:
    settings = LaunchSettings(model_path="m.gguf", ctx_size=100, kv_unified=False, n_gpu_layers="all")
    known_flags = parse_help(HELP + UNIFIED)
    argv, lacking = projection_argv("bin/llama-server", "m.gguf", settings, 1, known_flags)
    assert lacking == ()
    assert argv[:3] == ("bin/llama-server", "-m", "m.gguf")
    for words in (("-c", "100"), ("-ngl", "all")):
        assert argv[argv.index(words[0]) + 1] == words[1]
    assert "-no-kvu" in argv
    assert "--port" not in projection_argv("llama-fit-params", "m.gguf", settings, 1, known_flags)[0]


def test_no_flag_is_passed_that_the_help_lacks() -> None:
    settings = LaunchSettings(model_path="m.gguf", kv_unified=True)
    argv, lacking = projection_argv("bin/llama-server", "m.gguf", settings, 1, parse_help(HELP))
    assert lacking == ("-kvu",)
    assert "--no-warmup" not in argv, "it only saves time, so it is left out"


def engine(folder: Path, help_text: str, then: str) -> str:
    """Write a program that prints a help text, and else does what is said."""
    program = folder / "llama-fit-params"
    program.write_text(f"#!/bin/sh\nif [ \"$1\" = --help ]; then cat <<'E'\n{help_text}E\nexit\nfi\n{then}\n")
    program.chmod(0o700)
    return str(program)


@pytest.mark.parametrize(
    ("help_text", "then", "told"),
    [
        (
            HELP + UNIFIED,
            "echo 'error: no memory' >&2; exit 1",
            "printed no projection but: error: no memory",
        ),
        (HELP, "exit 1", "llama-fit-params has no -kvu: it cannot be asked for the same load"),
        ("nothing\n", "exit 1", "no option in a form that we know"),
    ],
)
def test_an_engine_that_does_not_answer_is_unknown(
    tmp_path: Path, help_text: str, then: str, told: str
) -> None:
    settings = LaunchSettings(model_path="m.gguf", kv_unified=True)
    with Machine() as machine:
        found = ask_engine(machine, engine(tmp_path, help_text, then), "m.gguf", settings)
    assert isinstance(found, Unknown)
    assert found.detail.endswith(told)
