"""Command lines for builds of March 2024 and August 2025, by their recorded help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llamaops.facts.capabilities import Capabilities, parse_help
from llamaops.launch.argv import completion_argv, server_argv, slots_shown, writes_log_file
from llamaops.launch.settings import LaunchSettings
from llamaops.operations.launching import plan_of

FOLDER = Path(__file__).parents[2] / "data" / "engines"


def capabilities(name: str) -> Capabilities:
    return parse_help((FOLDER / f"{name}.help.stdout.txt").read_text(encoding="utf-8"))


SERVER_2024, MAIN_2024 = capabilities("2024-03/server"), capabilities("2024-03/main")
SERVER_2025, SERVER_2026 = capabilities("2025-08/llama-server"), capabilities("b10434/llama-server")


def server(offered: Capabilities, **asked: object) -> tuple[str, ...]:
    settings = LaunchSettings(model_path="/m.gguf", port=4000, alias="ours", **asked)  # type: ignore[arg-type]  # by name
    argv = server_argv("/bin/server", settings, offered).argv
    assert not [word for word in argv if word.startswith("-") and not offered.has(word)]
    return argv


@pytest.mark.parametrize(
    ("offered", "slots", "said"),
    [(SERVER_2024, 2, True), (SERVER_2024, 1, False), (SERVER_2025, 2, False), (SERVER_2026, 2, False)],
)
def test_slots_of_march_2024_are_told_to_let_requests_join(
    offered: Capabilities, slots: int, said: bool
) -> None:
    assert ("--cont-batching" in server(offered, parallel=slots)) is said


def test_no_log_file_is_left_in_the_working_directory() -> None:
    assert "--log-disable" in server(SERVER_2024)
    assert "--log-disable" not in server(SERVER_2025)
    assert "--log-disable" not in server(SERVER_2026)
    command = completion_argv(
        "/bin/main", LaunchSettings(model_path="/m.gguf", seed=42), MAIN_2024, prompt="Hi", max_tokens=8,
        temperature=0.0,
    )  # fmt: skip
    assert "--log-disable" not in command.argv, "it would take the load log away"
    assert writes_log_file(MAIN_2024)
    assert not writes_log_file(SERVER_2026)
    assert not writes_log_file(None)
    assert not [word for word in command.argv if word.startswith("-") and not MAIN_2024.has(word)]


@pytest.mark.parametrize(
    ("offered", "asked", "shown"),
    [
        (SERVER_2024, None, True),
        (SERVER_2025, None, False),
        (SERVER_2025, True, True),
        (SERVER_2026, None, True),
        (SERVER_2026, False, False),
        (None, None, True),
    ],
)
def test_slots_are_shown_as_the_build_has_it_unless_asked(
    offered: Capabilities | None, asked: bool | None, shown: bool
) -> None:
    assert slots_shown(LaunchSettings(model_path="/m.gguf", slots=asked), offered) is shown


@pytest.mark.parametrize(
    ("offered", "asked", "said"),
    [
        (SERVER_2024, None, "512"),
        (SERVER_2025, None, "4096"),
        (SERVER_2025, 1024, "1024"),
        (SERVER_2026, None, None),
        (SERVER_2026, 1024, "1024"),
    ],
)
def test_the_context_that_an_old_build_has_by_default_is_said_aloud(
    offered: Capabilities, asked: int | None, said: str | None
) -> None:
    argv = server(offered, ctx_size=asked)
    assert (argv[argv.index("--ctx-size") + 1] if "--ctx-size" in argv else None) == said


@pytest.mark.parametrize(
    ("offered", "asked", "slot"),
    [
        (SERVER_2024, {"parallel": 2}, 256),
        (SERVER_2025, {"parallel": 2}, 2048),
        (SERVER_2025, {}, 4096),
        (SERVER_2026, {"parallel": 2}, None),  # builds of 2026 differ, and their help does not say it
        (SERVER_2026, {"parallel": 2, "ctx_size": 1024}, 512),
        (SERVER_2026, {"parallel": 2, "kv_unified": True}, 8192),
        (SERVER_2026, {"parallel": 1}, 8192),
        (SERVER_2026, {}, 8192),
    ],
)
def test_what_a_slot_will_have_is_planned_where_it_can_be_known(
    offered: Capabilities, asked: dict[str, Any], slot: int | None
) -> None:
    settings = LaunchSettings(model_path="/m.gguf", port=4000, **asked)
    command = server_argv("/bin/server", settings, offered)
    assert plan_of(command, offered, 8192).n_ctx_slot == slot
