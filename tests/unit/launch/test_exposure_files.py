from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llamaops.errors import UsageError
from llamaops.facts.exposure import Decisions
from llamaops.launch.exposure_files import UnitRequest, masked_file, nginx_site, server_flags, systemd_unit
from tests.unit.checks.test_exposure import COMPLETE

REQUEST = UnitRequest(
    program="/opt/llama/llama-server", model="/srv/models/m 1.gguf", flags=("--ctx-size", "2048")
)


def decisions(**changes: Any) -> Decisions:
    wanted = {name: value for name, value in {**COMPLETE, **changes}.items() if value is not None}
    return msgspec.convert(wanted, Decisions)


def test_a_site_opens_only_what_was_decided() -> None:
    site = nginx_site(decisions())
    assert "location = /v1/chat/completions {" in site
    assert "/slots" not in site
    assert "/metrics" not in site
    assert "proxy_buffering off;" in site
    assert "return 404;" in site
    opened = nginx_site(decisions(metrics={"open": True, "why": "x"}))
    assert "location = /metrics {" in opened


def test_a_closed_endpoint_stays_closed_even_if_it_is_listed() -> None:
    assert "/slots" not in nginx_site(decisions(endpoints=["/v1/models", "/slots"]))


@pytest.mark.parametrize(
    "changes",
    [
        {"tls": {**COMPLETE["tls"], "server_name": "x; include /etc/passwd"}},
        {"tls": {**COMPLETE["tls"], "certificate": "/a b"}},
        {"cors": {"origins": ['https://a"; return 200 "x']}},
        {"endpoints": ["/v1/models { } location /"]},
        {"tls": None},
        {"tls": {"by": "none", "why": "x"}},
    ],
)
def test_what_cannot_stand_in_a_site_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        nginx_site(decisions(**changes))


def test_a_unit_has_the_key_as_a_credential_only() -> None:
    unit = systemd_unit(decisions(), REQUEST)
    assert "LoadCredential=api-key:/etc/llama/key" in unit
    assert "--api-key-file %d/api-key" in unit
    assert '--model "/srv/models/m 1.gguf"' in unit
    assert "--no-slots" in unit
    assert [line for line in unit.splitlines() if line.startswith("Environment=")] == [
        "Environment=GGML_NO_BACKTRACE=1"
    ]
    assert "PrivateDevices=yes" in unit
    with_device = systemd_unit(decisions(), msgspec.structs.replace(REQUEST, devices=("/dev/nvidia0",)))
    assert "DeviceAllow=/dev/nvidia0 rw" in with_device
    assert "PrivateDevices" not in with_device


@pytest.mark.parametrize(
    "flags", [("--api-key", "x"), ("--api-key=x",), ("--host", "0.0.0.0"), ("--x", "a\nExecStart=/y")]
)
def test_a_unit_refuses_what_it_must_not_hold(flags: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        systemd_unit(decisions(), msgspec.structs.replace(REQUEST, flags=flags))


def test_specifiers_and_variables_are_escaped() -> None:
    unit = systemd_unit(decisions(), msgspec.structs.replace(REQUEST, flags=("--alias", "50%$HOME")))
    assert "50%%$$HOME" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "llama-server.service"
    unit.write_text(systemd_unit(decisions(), msgspec.structs.replace(REQUEST, program="/bin/true")))
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout[-300:]


def test_units_and_environments_are_shown_masked() -> None:
    text = """[Service]
Environment="LLAMA_API_KEY=sk-1 and more" HF_TOKEN=hf_2
Environment=A=1
ExecStart=/opt/llama-server --model m.gguf
SetCredential=api-key:sk-3
LLAMA_ARG_API_KEY=sk-4
export TOKEN=sk-5
User=llama"""
    shown = "\n".join(masked_file(text))
    for secret in ("sk-1", "and more", "hf_2", "sk-3", "sk-4", "sk-5", "A=1"):
        assert secret not in shown
    for kept in ("LLAMA_API_KEY=", "HF_TOKEN=", "ExecStart=/opt/llama-server --model m.gguf", "User=llama"):
        assert kept in shown


def test_a_server_that_stands_in_front_itself_does_what_was_decided() -> None:
    assert server_flags(decisions(), ()) == ("--no-slots", "--cors-origins", "localhost")
    opened = decisions(
        slots={"open": True, "why": "x"},
        metrics={"open": True, "why": "x"},
        cors={"origins": ["https://a.example", "https://b.example"]},
    )
    assert server_flags(opened, ("--slots",)) == (
        "--metrics",
        "--cors-origins",
        "https://a.example,https://b.example",
    )
    assert server_flags(decisions(cors={"origins": ["*"], "why": "x"}), ("--no-slots",)) == ()


@pytest.mark.parametrize("flag", ["--slots", "--metrics", "--tools"])
def test_a_flag_that_opens_what_was_closed_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match="decided to be closed"):
        server_flags(decisions(), (flag,))


def test_a_unit_without_a_proxy_limits_the_origins_itself() -> None:
    assert "--cors-origins" not in systemd_unit(decisions(), REQUEST)
    alone = decisions(tls={"by": "none", "why": "x"})
    assert "--cors-origins localhost" in systemd_unit(alone, REQUEST)
