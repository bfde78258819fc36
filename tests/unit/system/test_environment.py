"""Children get what finds libraries and devices, nothing that changes an engine, and no secret."""

from __future__ import annotations

import pytest

from llamaops.system.environment import child_environment, engine_variables

OURS = {
    "PATH": "/usr/bin",
    "LD_LIBRARY_PATH": "/opt/llama/lib",
    "CUDA_VISIBLE_DEVICES": "1",
    "GGML_VK_VISIBLE_DEVICES": "0",
    "HTTP_PROXY": "http://proxy:3128",
    "LLAMA_ARG_CTX_SIZE": "512",
    "LLAMA_API_KEY": "key",
    "LLAMA_SERVER_ROUTER_PORT": "5",
    "LLAMA_SERVER_SLOTS_DEBUG": "1",
    "LLAMA_LOG_VERBOSITY": "1",
    "AIP_MODE": "PREDICTION",
    "GGML_BACKEND_PATH": "/tmp/x.so",
    "HF_TOKEN": "hf_x",
    "AWS_SECRET_ACCESS_KEY": "s",
    "XDG_CONFIG_HOME": "/home/u/.config",
}
CHILD = child_environment(OURS, config_home="/empty", extra={"LLAMA_API_KEY": "ours"})


@pytest.mark.parametrize(
    "name", ["PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "GGML_VK_VISIBLE_DEVICES"]
)
def test_what_finds_libraries_and_devices_is_kept(name: str) -> None:
    assert CHILD[name] == OURS[name]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in OURS
        if name.startswith(("LLAMA_ARG", "LLAMA_SERVER", "LLAMA_LOG", "AIP_", "AWS_", "HF_"))
    ]
    + ["GGML_BACKEND_PATH"],
)
def test_what_changes_an_engine_and_what_is_secret_is_not_handed_on(name: str) -> None:
    assert name not in CHILD


def test_no_configuration_file_of_the_user_is_found_and_no_debugger_is_forked() -> None:
    assert CHILD["XDG_CONFIG_HOME"] == "/empty"
    assert CHILD["GGML_NO_BACKTRACE"] == "1"


def test_what_is_added_on_purpose_is_there() -> None:
    assert CHILD["LLAMA_API_KEY"] == "ours"


def test_the_operator_is_told_the_names_and_never_the_values() -> None:
    assert engine_variables(OURS) == (
        "AIP_MODE",
        "GGML_BACKEND_PATH",
        "HF_TOKEN",
        "LLAMA_API_KEY",
        "LLAMA_ARG_CTX_SIZE",
        "LLAMA_LOG_VERBOSITY",
        "LLAMA_SERVER_ROUTER_PORT",
        "LLAMA_SERVER_SLOTS_DEBUG",
    )
