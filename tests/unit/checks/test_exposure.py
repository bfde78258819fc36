from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.exposure import Decisions, ExposureFacts, SecretFile, parse_secret
from llamaops.schema.fact import Source, Unknown, known

HERE = Source(kind="file", name="test")
COMPLETE: dict[str, Any] = {
    "exposure": 1,
    "bind": {"address": "127.0.0.1", "port": 8080},
    "api_key": {"file": "/etc/llama/key"},
    "tls": {"by": "proxy", "server_name": "llama.example", "certificate": "/c.pem", "private_key": "/k.pem"},
    "firewall": {"rule": "10.0.0.0/8 to 443"},
    "cors": {"origins": []},
    "rate_limit": {"by": "proxy", "requests_per_minute": 60},
    "logging": {"prompts": False, "keep_days": 14},
    "tools": {"open": False},
    "metrics": {"open": False},
    "slots": {"open": False},
}
GOOD = SecretFile(mode="0600", open_to_others=False, lines=1, shortest_line_bytes=40)


def statuses(changes: dict[str, Any] | None = None, key: SecretFile | None = GOOD) -> dict[str, str]:
    wanted = {name: value for name, value in {**COMPLETE, **(changes or {})}.items() if value is not None}
    decisions = msgspec.convert(wanted, Decisions)
    file = Unknown(why="absent", detail="no such file", source=HERE) if key is None else known(key, HERE)
    facts = ExposureFacts(decisions=decisions, key_file=file, private_key=known(GOOD, HERE))
    found = [run_check(check, {ExposureFacts: facts}) for check in all_checks(["exposure"])]
    assert all(finding is None or finding.boundary is None for finding in found)
    return {finding.check: finding.status for finding in found if finding is not None}


def test_a_complete_file_passes() -> None:
    found = statuses()
    assert set(found.values()) == {"passed"}
    assert len(found) == 12


@pytest.mark.parametrize(
    ("left_out", "check"),
    [
        ("bind", "exposure.bind-is-decided"),
        ("api_key", "exposure.key-is-decided"),
        ("tls", "exposure.tls-is-decided"),
        ("firewall", "exposure.firewall-is-decided"),
        ("cors", "exposure.cors-is-decided"),
        ("rate_limit", "exposure.rate-limit-is-decided"),
        ("logging", "exposure.logging-is-decided"),
        ("tools", "exposure.tools-are-decided"),
        ("metrics", "exposure.metrics-are-decided"),
        ("slots", "exposure.slots-are-decided"),
    ],
)
def test_what_is_left_out_is_a_finding(left_out: str, check: str) -> None:
    found = statuses({left_out: None})
    assert found[check] == "failed"


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"bind": {"address": "0.0.0.0", "port": 8080}}, "exposure.bind-is-decided"),  # beside its proxy
        ({"bind": {"address": "127.0.0.1", "port": 99999}}, "exposure.bind-is-decided"),
        ({"tls": {"by": "none"}}, "exposure.tls-is-decided"),
        ({"tls": {"by": "proxy", "server_name": "x"}}, "exposure.tls-is-decided"),
        ({"cors": {"origins": ["*"]}}, "exposure.cors-is-decided"),
        ({"rate_limit": {"by": "none"}}, "exposure.rate-limit-is-decided"),
        ({"tls": {"by": "none", "why": "a tunnel"}}, "exposure.rate-limit-is-decided"),  # nothing limits then
        ({"logging": {"prompts": True, "keep_days": 1}}, "exposure.logging-is-decided"),
        ({"tools": {"open": True}}, "exposure.tools-are-decided"),
        (
            {"tools": {"open": True, "why": "x"}, "bind": {"address": "10.0.0.1", "port": 1}},
            "exposure.tools-are-decided",
        ),
        ({"metrics": {"open": True}}, "exposure.metrics-are-decided"),
        ({"slots": {"open": True}}, "exposure.slots-are-decided"),
    ],
)
def test_what_weakens_needs_a_reason_or_is_refused(changes: dict[str, Any], check: str) -> None:
    assert statuses(changes)[check] == "failed"


def test_a_reason_is_a_decision() -> None:
    found = statuses(
        {
            "tls": {"by": "none", "why": "a tunnel encrypts"},
            "rate_limit": {"by": "none", "why": "one client"},
            "slots": {"open": True, "why": "our own monitor"},
            "cors": {"origins": ["*"], "why": "a public demo"},
        }
    )
    assert set(found.values()) == {"passed"}


@pytest.mark.parametrize(
    ("mode", "content", "status"),
    [
        (0o100600, b"k" * 40, "passed"),
        (0o100640, b"k" * 40, "failed"),
        (0o100604, b"k" * 40, "failed"),
        (0o100400, b"k" * 40 + b"\n\nshort\n", "failed"),
        (0o100600, b"\n \n", "failed"),
    ],
)
def test_a_key_file_is_private_and_its_keys_are_long(mode: int, content: bytes, status: str) -> None:
    assert statuses(key=parse_secret(mode, content))["exposure.key-file-is-private"] == status


def test_a_key_file_that_cannot_be_read_is_unknown() -> None:
    assert statuses(key=None)["exposure.key-file-is-private"] == "unknown"


def test_the_private_key_of_the_certificate_is_judged_too() -> None:
    assert statuses()["exposure.private-key-is-private"] == "passed"
