from __future__ import annotations

from pathlib import Path

import pytest

from llamaops.errors import InputFileError, UsageError
from llamaops.operations.exposure import read_decisions, require_decided
from llamaops.operations.settings import Settings
from llamaops.system.machine import Machine

COMPLETE = """exposure: 1
bind: {{address: 10.0.0.5, port: 8080}}
api_key: {{file: {key}}}
tls: {{by: none, why: a tunnel encrypts}}
firewall: {{rule: 10.0.0.0/8 only}}
cors: {{origins: []}}
rate_limit: {{by: none, why: one client}}
logging: {{prompts: false, keep_days: 7}}
tools: {{open: false}}
metrics: {{open: false}}
slots: {{open: false}}
"""


def written(tmp_path: Path, text: str) -> str:
    key = tmp_path / "key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    path = tmp_path / "decisions.yaml"
    path.write_text(text.format(key=key))
    return str(path)


def settings(host: str, port: int = 8080) -> Settings:
    return Settings(host=host, port=port)


def test_loopback_needs_no_decision() -> None:
    with Machine() as machine:
        assert not require_decided(settings("127.0.0.1"), None, machine)


def test_beyond_loopback_needs_a_complete_file(tmp_path: Path) -> None:
    decisions = read_decisions(written(tmp_path, COMPLETE))
    with Machine() as machine:
        assert require_decided(settings("10.0.0.5"), decisions, machine)
        with pytest.raises(UsageError, match="--decisions"):
            require_decided(settings("10.0.0.5"), None, machine)
        with pytest.raises(UsageError, match=r"not 0\.0\.0\.0:8080"):
            require_decided(settings("0.0.0.0"), decisions, machine)
        with pytest.raises(UsageError, match=r"not 10\.0\.0\.5:9"):
            require_decided(settings("10.0.0.5", 9), decisions, machine)


def test_a_missing_decision_is_named(tmp_path: Path) -> None:
    decisions = read_decisions(written(tmp_path, COMPLETE.replace("cors: {{origins: []}}\n", "")))
    with Machine() as machine, pytest.raises(UsageError, match="cors-is-decided"):
        require_decided(settings("10.0.0.5"), decisions, machine)


def test_every_error_of_a_file_has_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "exposure: 2\nbind: {{address: x, prt: 1}}\nslots: yes\n")
    with pytest.raises(InputFileError) as raised:
        read_decisions(path)
    for place in (":1:11:", ":2:7: port is missing", ":2:20: unknown key 'prt'; did you mean port?", ":3:8:"):
        assert place in str(raised.value)
