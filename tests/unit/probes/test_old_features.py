"""What is not asked of a server of early 2024, and what an engine without --jinja says of tools."""

from __future__ import annotations

from typing import Any

import pytest

from llamaops.facts.asked import AskedFacts
from llamaops.probes.more import MoreFacts, collect_more
from llamaops.probes.selection import select
from llamaops.probes.server import collect_server
from llamaops.schema.fact import Known, Unknown
from tests.fakes.http_client import FakeClient, answered
from tests.unit.probes.test_server import CHAT, honest

ONLY = ["structured", "tools", "context", "pool-exhaustion"]
EARLY: dict[str, Any] = {
    "GET /health": answered({"slots_idle": 2, "slots_processing": 0, "status": "ok"}),
    "GET /props": answered(
        {"default_generation_settings": {"n_ctx": 512}, "total_slots": 2, "user_name": ""}
    ),
}


def more(changes: dict[str, Any]) -> tuple[MoreFacts, list[str]]:
    fake = FakeClient(honest())
    asked = AskedFacts(alias="smol")
    fake.answers.update({name: answer for name, answer in changes.items() if name.startswith("GET")})
    server = collect_server(fake.client, asked, selection=select("full"))
    fake.answers.update(changes)
    before = len(fake.sent)
    return collect_more(fake.client, server, select(only=ONLY), unified=False), fake.sent[before:]


def test_early_2024_is_not_asked_what_it_lacks_or_ends_on() -> None:
    found, sent = more(EARLY)
    for fact in (found.structured, found.tools, found.context, found.pool):
        assert isinstance(fact, Unknown)
        assert fact.why == "unsupported"
        assert "absent in this build" in fact.detail
    assert sent == []


@pytest.mark.parametrize(
    ("message", "why"), [("tools param requires --jinja flag", "unsupported"), ("oops", "failed")]
)
def test_tools_that_want_a_flag_are_switched_off_and_no_fault(message: str, why: str) -> None:
    refusal = answered({"error": {"code": 500, "message": message, "type": "server_error"}}, 500)
    props = {"build_info": "b1-4227c9b", "total_slots": 2, "chat_template": "{{ tools }}"}
    found, sent = more({CHAT: refusal, "POST /tokenize": refusal, "GET /props": answered(props)})
    assert isinstance(found.tools, Unknown)
    assert (found.tools.why == "unsupported") is (why == "unsupported"), found.tools
    assert sent
    assert not isinstance(found.structured, Known)
