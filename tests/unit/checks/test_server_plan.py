"""The plan is compared with every place that reports what runs."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.checks.server_plan import plan_is_what_runs, reported, reported_text
from llamaops.facts.asked import AskedFacts
from llamaops.facts.launch import LaunchFacts, PlannedSlots
from llamaops.facts.load_log import LoadFacts, LoadLogReader
from llamaops.probes.server import ServerFacts, collect_server
from llamaops.schema.fact import Source, not_attempted
from tests.fakes.http_client import FakeClient
from tests.unit.probes.test_server import honest

LINE = "0.00.273.537 I srv    load_model: initializing, n_slots = {}, n_ctx_slot = {}, kv_unified = '{}'"


@pytest.fixture(scope="module")
def server() -> ServerFacts:
    return collect_server(FakeClient(honest()).client, AskedFacts(alias="smol"))


def load(slots: int, context: int, unified: str) -> LoadFacts:
    reader = LoadLogReader(Source(kind="command", name="a test"))
    reader.feed(LINE.format(slots, context, unified))
    return reader.facts()


def launch(**changes: object) -> LaunchFacts:
    plan = PlannedSlots(
        slots=2, slot_context_tokens=512, kv_unified=False, batch_tokens=1024, ubatch_tokens=512
    )
    return LaunchFacts(
        argv=(), flags=(), help_read=not_attempted("x"), plan="2 slots of 512",
        planned=msgspec.structs.replace(plan, **changes),
    )  # fmt: skip


def figures(server: ServerFacts) -> tuple[int, int]:
    found = reported(server, load(1, 1, "false"))
    return int(found["slots"]["/props"]), int(found["slot context"]["/props"])


def test_everything_agrees(server: ServerFacts) -> None:
    slots, context = figures(server)
    log = load(slots, context, "false")
    found = plan_is_what_runs(launch(slots=slots, slot_context_tokens=context), server, log)
    assert isinstance(found, Verdict)
    assert found.holds, found.summary
    assert reported_text(reported(server, log)) in found.summary


@pytest.mark.parametrize("change", [{"slots": 7}, {"slot_context_tokens": 333}, {"kv_unified": True}])
def test_a_plan_that_is_not_what_runs_is_a_finding(server: ServerFacts, change: dict[str, object]) -> None:
    slots, context = figures(server)
    wanted = {"slots": slots, "slot_context_tokens": context, **change}
    found = plan_is_what_runs(launch(**wanted), server, load(slots, context, "false"))
    assert isinstance(found, Verdict)
    assert not found.holds


def test_places_that_contradict_each_other_are_a_finding(server: ServerFacts) -> None:
    slots, context = figures(server)
    found = plan_is_what_runs(
        launch(slots=slots, slot_context_tokens=None), server, load(slots, context + 256, "false")
    )
    assert isinstance(found, Verdict)
    assert not found.holds
    assert "by log" in found.summary


def test_without_a_plan_there_is_nothing_to_compare(server: ServerFacts) -> None:
    bare = msgspec.structs.replace(launch(), planned=None)
    assert isinstance(plan_is_what_runs(bare, server, load(1, 256, "false")), NotApplicable)
