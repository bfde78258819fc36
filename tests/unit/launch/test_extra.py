from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.launch.argv import server_argv
from llamaops.launch.settings import LaunchSettings
from tests.unit.launch.helps import NEW_SERVER


def argv(*extra: str, **asked: object) -> tuple[str, ...]:
    settings = LaunchSettings(model_path="/m.gguf", port=4000, extra=extra, **asked)  # type: ignore[arg-type]  # settings by name
    return server_argv("/b", settings, NEW_SERVER).argv


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--ctx-size=256",), "write --ctx-size 256"),
        (("--ctx-size=8k",), "is not understood"),
        (("--api-key", "topsecret"), "--api-key-file"),
        (("--api-key=topsecret",), "--api-key-file"),
        (("--hf-token", "topsecret"), "file"),
        (("topsecret",), "neither a flag"),
        (("--host", "0.0.0.0"), "exposure"),
        (("--port", "1"), "own --port"),
        (("-m", "x"), "own --model"),
        (("--alias", "x"), "alias"),
        (("-hf", "a/b"), "another model"),
        (("--version",), "exit"),
        (("--log-disable",), "log"),
        (("--draft-max", "4"), "removed from this build.*--spec-draft-n-max"),
        (("--cache-ram",), "expects N"),
        (("--cache-ram", "--metrics"), "expects N"),
        (("--cache-ram", "8k"), "not a plain number"),
        (("--cache-ram", "1e3"), "not a plain number"),
        (("--cache-ram", "99999999999"), "too large"),
        (("--threads-http", "0x10"), "not a plain number"),
        (("--temp", "warm"), "not a plain number"),
        (("-fa", "maybe"), "it takes on, off, auto"),
        (("-ctk", "q3"), "cache-type-k"),
        (("-c", "8k"), "not a plain whole number"),
        (("-np", "300"), "--parallel 300"),
        (("--control-vector-layer-range", "1"), "START END"),
        (("--no-such-flag",), "no --no-such-flag"),
    ],
)  # fmt: skip
def test_what_would_go_wrong_is_refused_before_the_start(extra: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        argv(*extra)
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    "extra",
    [
        ("--cache-ram", "-1"),
        ("--temp", "0.7"),
        ("--cache_ram", "0"),
        ("--override-kv", "a=int:1"),
        ("--control-vector-layer-range", "1", "4"),
        ("--load-mode", "auto"),
    ],
)
def test_what_is_right_goes_through(extra: tuple[str, ...]) -> None:
    assert argv(*extra)[-len(extra) :] == extra


def test_flags_that_a_setting_exists_for_become_the_setting() -> None:
    settings = LaunchSettings(model_path="m", extra=("-c", "4096", "-np", "2", "--metrics", "--no-warmup"))
    command = server_argv("/b", settings, NEW_SERVER)
    assert (command.settings.ctx_size, command.settings.parallel, command.settings.metrics) == (4096, 2, True)
    assert command.settings.extra == ()
    assert command.argv.count("--parallel") == 1


def test_a_setting_and_a_flag_that_disagree_are_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        argv("-c", "4096", ctx_size=2048)


def test_the_operator_s_word_goes_before_our_default() -> None:
    made = argv("-lv", "5")
    assert "--verbosity" not in made
    assert made[-2:] == ("-lv", "5")


def test_the_operator_s_word_does_not_contradict_a_setting_in_silence() -> None:
    with pytest.raises(UsageError, match="given twice"):
        argv("-fa", "off", flash_attn="on")
