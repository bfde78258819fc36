from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.facts.capabilities import Capabilities
from llamaops.launch.argv import completion_argv, default_slots, launch_facts, server_argv
from llamaops.launch.settings import LaunchSettings
from llamaops.schema.fact import Source
from tests.unit.launch.helps import NEW_COMPLETION, NEW_SERVER, SERVER_2024, STUBBORN_COMPLETION

SOURCE = Source(kind="command", name="llama-server --help", evidence="ev-000000000002")


def server(capabilities: Capabilities | None = NEW_SERVER, **asked: object) -> list[str]:
    settings = LaunchSettings(model_path="/m.gguf", port=4000, **asked)  # type: ignore[arg-type]  # settings by name
    return list(server_argv("/bin/llama-server", settings, capabilities).argv)


def value_of(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def completion(capabilities: Capabilities | None = NEW_COMPLETION, **asked: object) -> list[str]:
    settings = LaunchSettings(model_path="/m.gguf", **asked)  # type: ignore[arg-type]  # settings by name
    return list(
        completion_argv("/bin/c", settings, capabilities, prompt="Hi", max_tokens=8, temperature=0.0).argv
    )


def test_model_address_and_port_are_always_said() -> None:
    argv = server(alias="nonce")
    assert argv[0] == "/bin/llama-server"
    assert value_of(argv, "--model") == "/m.gguf"
    assert (value_of(argv, "--host"), value_of(argv, "--port")) == ("127.0.0.1", "4000")
    assert value_of(argv, "--alias") == "nonce"


def test_slots_are_said_as_the_build_would_choose_them() -> None:
    new, old = server(), server(SERVER_2024)
    assert value_of(new, "--parallel") == "4"
    assert "--kv-unified" in new
    assert value_of(old, "--parallel") == "1"
    assert "--kv-unified" not in old
    assert (default_slots(NEW_SERVER), default_slots(SERVER_2024)) == ("auto", "single")


def test_asked_slots_are_split_unless_asked_otherwise() -> None:
    assert "--kv-unified" not in server(parallel=2)
    assert "--kv-unified" in server(parallel=2, kv_unified=True)
    assert "--no-kv-unified" in server(parallel=2, kv_unified=False)


def test_evidence_is_asked_for_only_where_it_is_hidden() -> None:
    assert value_of(server(), "--verbosity") == "4"
    assert "--verbosity" not in server(SERVER_2024)  # 4 would print prompts there
    assert "--verbosity" not in server(evidence=False)


def test_each_build_gets_its_own_spelling() -> None:
    assert value_of(server(flash_attn="on"), "--flash-attn") == "on"
    old = server(SERVER_2024, flash_attn="on", threads=2)
    assert "--flash-attn" in old
    assert "on" not in old
    assert "--flash-attn" not in server(SERVER_2024, flash_attn="off")
    assert value_of(server(load_mode="none"), "--load-mode") == "none"
    assert "--no-mmap" in server(SERVER_2024, load_mode="none")
    assert value_of(server(n_gpu_layers="all"), "--n-gpu-layers") == "all"
    assert value_of(server(SERVER_2024, n_gpu_layers="all"), "--n-gpu-layers") == "999"
    assert value_of(server(), "--log-colors") == "off"
    assert "--log-colors" not in server(SERVER_2024)


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ({"metrics": True}, "--metrics"),
        ({"kv_unified": True}, "--kv-unified"),
        ({"api_key_file": "/k"}, "--api-key-file"),
        ({"flash_attn": "auto"}, "auto"),
        ({"n_gpu_layers": "auto"}, "auto"),
        ({"extra": ("--cache-ram", "0")}, "--cache-ram"),
    ],
)
def test_what_a_build_lacks_is_refused_by_name(asked: dict[str, object], flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        server(SERVER_2024, **asked)


def test_the_nearest_flag_is_named() -> None:
    with pytest.raises(UsageError, match="no --metrcs; the nearest it has is --metrics"):
        server(extra=("--metrcs",))
    with pytest.raises(UsageError, match="nearest it has is --load-mode none"):
        server(extra=("--no-mmap",))


def test_comforts_that_a_build_lacks_are_left_out_and_noted() -> None:
    command = server_argv("/b", LaunchSettings(model_path="m", warmup=False), SERVER_2024)
    assert {left.flag for left in command.left_out} == {"--no-ui", "--no-warmup", "--offline"}
    assert "--offline" not in command.argv


def test_without_a_help_text_nothing_is_claimed() -> None:
    command = server_argv("/b", LaunchSettings(model_path="m", extra=("--new-thing", "1")), None)
    assert command.argv[-2:] == ("--new-thing", "1")
    assert not command.help_read


def test_a_one_shot_never_waits_and_never_hides_its_text() -> None:
    argv = completion(seed=1, ctx_size=512)
    assert "--no-conversation" in argv
    assert "--no-display-prompt" in argv
    assert "--log-disable" not in argv
    assert (value_of(argv, "--n-predict"), value_of(argv, "--temp"), value_of(argv, "--seed")) == (
        "8",
        "0",
        "1",
    )
    assert value_of(argv, "--verbosity") == "4"


def test_a_one_shot_program_that_would_wait_is_refused() -> None:
    with pytest.raises(UsageError, match="--no-conversation"):
        completion(STUBBORN_COMPLETION)


@pytest.mark.parametrize(("prompt", "tokens"), [("", 8), ("Hi", 0)])
def test_a_one_shot_needs_a_prompt_and_tokens(prompt: str, tokens: int) -> None:
    with pytest.raises(UsageError):
        completion_argv(
            "/b",
            LaunchSettings(model_path="m"),
            NEW_COMPLETION,
            prompt=prompt,
            max_tokens=tokens,
            temperature=0,
        )


def test_launch_facts_compare_once_more() -> None:
    command = server_argv("/b", LaunchSettings(model_path="m"), NEW_SERVER)
    facts = launch_facts(command, capabilities=NEW_SERVER, source=SOURCE)
    assert facts.missing == ()
    other = launch_facts(command, capabilities=SERVER_2024, source=SOURCE)
    assert "--kv-unified" in {flag.flag for flag in other.missing}
