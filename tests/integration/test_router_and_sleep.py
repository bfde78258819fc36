"""A fake router of several models, and a fake that sleeps: the honest ones pass, and no liar does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.probes.router import Router, RouterFacts, RouterModel, probe_router
from llamaops.probes.selection import select
from llamaops.probes.server import Preparation, ServerFacts, collect_server
from llamaops.probes.sleep import Sleeper, SleepFacts, probe_falls_asleep, probe_found_asleep
from llamaops.schema.fact import Known, Unknown
from llamaops.schema.finding import Finding
from llamaops.system.http import HttpClient, Origin
from tests.fakes import command
from tests.fakes.liars import ROUTER_LIARS, SLEEP_LIARS, Liar
from tests.integration.test_liars import running

SHORT_S = 1.5
"""Long for a fake that loads and answers in 400 ms."""


def findings(*groups: object) -> dict[str, Finding]:
    given = {type(group): group for group in groups}
    checks = [c for c in all_checks(("router", "sleep")) if set(c.inputs().values()) <= set(given)]
    found = [run_check(check, given) for check in checks]
    assert not [item for item in found if item is not None and item.status == "error"]
    return {item.check: item for item in found if item is not None}


def met(
    *flags: str, named: tuple[str, ...] = (), lie: str = "honest"
) -> tuple[dict[str, Finding], dict[str, RouterModel], RouterFacts, ServerFacts]:
    """Ask a fake router, and judge what it answered."""
    with running("--lie", lie, "--metrics", *flags) as (_pid, port):
        client = HttpClient(Origin("http", "127.0.0.1", port))
        router = Router(client, named, load_s=SHORT_S, answer_s=SHORT_S, total_s=20)
        preparation = Preparation(named[0] if named else None, router.meet)
        server = collect_server(
            client, AskedFacts(via="attached"), selection=select("basic"), prepare=preparation
        )
        assert router.there
        facts = probe_router(router)
    assert isinstance(facts.models, Known)
    return findings(facts), {model.name: model for model in facts.models.value}, facts, server


def statuses(found: dict[str, Finding]) -> dict[str, str]:
    return {name: item.status for name, item in found.items()}


BOTH = ("--models", "one,two", "--loaded", "one,two")
ONE = ("--models", "one,two", "--loaded", "one")


def test_models_that_are_loaded_are_asked_and_each_is_its_own() -> None:
    found, models, facts, server = met(*BOTH)
    assert statuses(found) == {"router.models-answer": "passed", "router.each-model-is-its-own": "passed"}
    for model in models.values():
        assert (model.state_before, model.state_after, model.answered_as) == ("loaded", "loaded", model.name)
        assert model.counted_tokens == model.completion_tokens == 16
        assert model.load is None
    assert facts.put_away == ()
    assert isinstance(server.request_model, Known)
    assert server.request_model.value == "one"
    assert isinstance(server.props_of_model, Known)
    assert server.props_of_model.value.slot_context_tokens
    assert {answer.state for answer in server.endpoints} == {"works"}


def test_a_model_that_is_not_loaded_is_not_asked_unless_it_was_named() -> None:
    found, models, _facts, _server = met(*ONE)
    assert statuses(found) == {"router.models-answer": "passed", "router.each-model-is-its-own": "passed"}
    assert models["two"].state_after is None
    assert "--model" in models["two"].why_not
    assert "two" in found["router.models-answer"].summary


def test_a_named_model_is_loaded_and_the_list_says_so() -> None:
    found, models, facts, server = met(*ONE, named=("two",))
    assert set(statuses(found).values()) == {"passed"}
    assert (models["two"].state_before, models["two"].state_after) == ("unloaded", "loaded")
    assert models["two"].load_s is not None
    assert models["one"].why_not == "others were named"
    assert isinstance(server.request_model, Known)
    assert server.request_model.value == "two"
    assert facts.named == ("two",)


def test_a_router_that_loads_only_by_its_own_call_is_told_to() -> None:
    found, models, _facts, _server = met(*ONE, "--no-models-autoload", named=("two", "one"))
    assert set(statuses(found).values()) == {"passed"}
    assert models["two"].load is not None
    assert models["two"].load.request == "POST /models/load"


def test_what_was_put_away_for_a_named_model_is_said() -> None:
    found, models, facts, _server = met(*ONE, "--models-max", "1", named=("two", "one"))
    assert facts.put_away == ("two",)
    assert models["one"].state_after == models["two"].state_after == "loaded"
    assert "put away meanwhile: two" in found["router.loads-what-was-named"].summary


def test_a_model_that_cannot_be_loaded_fails_with_the_routers_words() -> None:
    found, models, _facts, server = met("--models", "broken-one,two", named=("broken-one", "two"))
    assert found["router.models-answer"].status == found["router.loads-what-was-named"].status == "failed"
    assert (
        "broken-one: HTTP 500: model name=broken-one failed to load" in found["router.models-answer"].summary
    )
    assert models["two"].answered_as == "two"
    assert models["broken-one"].failed_to_load
    assert isinstance(server.chat, Unknown)


def test_a_router_without_a_loaded_model_is_unknown_and_loads_none() -> None:
    found, models, _facts, server = met("--models", "one,two")
    assert set(statuses(found).values()) == {"unknown"}
    assert isinstance(server.chat, Unknown)
    assert "--model" in server.chat.detail
    assert all(model.why_not for model in models.values())


def test_a_name_that_is_not_listed_fails() -> None:
    found, _models, _facts, _server = met(*ONE, named=("three",))
    assert found["router.models-answer"].status == "failed"
    assert "three" in found["router.models-answer"].summary


def assert_caught(liar: Liar, found: dict[str, Finding]) -> None:
    finding = found[liar.check]
    assert finding.status == liar.status, found
    assert finding.boundary == liar.boundary
    assert finding.severity == "required"
    assert finding.remedy
    assert len(finding.summary) > 10


@pytest.mark.parametrize("liar", ROUTER_LIARS, ids=lambda liar: liar.name)
def test_a_lying_router_does_not_pass(liar: Liar) -> None:
    named = () if liar.name == "router-silent-model" else ("one", "two")
    flags = BOTH if liar.name == "router-silent-model" else liar.flags
    began = time.monotonic()
    found, _models, _facts, _server = met(*flags, named=named, lie=liar.name)
    assert_caught(liar, found)
    assert time.monotonic() - began < 20


def slept(lie: str, *flags: str, wake_s: float = SHORT_S) -> tuple[dict[str, Finding], SleepFacts]:
    """Ask a fake that sleeps, or wait until it does, and judge what it answered."""
    with running("--lie", lie, "--metrics", "-m", "tiny.gguf", *flags) as (_pid, port):
        sleeper = Sleeper(HttpClient(Origin("http", "127.0.0.1", port)), None, wake_s)
        if "--asleep" in flags:
            facts = probe_found_asleep(sleeper)
        else:
            facts = probe_falls_asleep(sleeper._replace(log_says=lambda: True), 1, scrape=False, margin_s=1.0)
    return findings(facts), facts


def test_a_server_that_sleeps_is_looked_at_and_woken() -> None:
    found, facts = slept("honest", "--asleep")
    assert statuses(found) == {"sleep.wakes-and-answers": "passed", "sleep.looking-does-not-wake": "passed"}
    assert [look.still_asleep for look in facts.looks] == [True, True, True]
    assert facts.asleep_afterwards is False


def test_a_server_of_ours_is_seen_to_fall_asleep_and_woken() -> None:
    found, facts = slept("honest", "--sleep-idle-seconds", "1")
    assert set(statuses(found).values()) == {"passed"}
    assert len(found) == 3
    assert facts.asleep_after_s is not None
    assert facts.asleep_after_s >= 0.5


def test_a_server_that_is_woken_by_a_look_is_told_apart() -> None:
    found, facts = slept("woken-by-health", "--asleep")
    finding = found["sleep.looking-does-not-wake"]
    assert (finding.status, finding.severity) == ("failed", "advisory")
    assert "GET /health woke it" in finding.summary
    assert facts.looks[0].still_asleep is False


@pytest.mark.parametrize("liar", SLEEP_LIARS, ids=lambda liar: liar.name)
def test_a_server_that_lies_about_its_sleep_does_not_pass(liar: Liar) -> None:
    found, _facts = slept(liar.name, *liar.flags)
    assert_caught(liar, found)


def test_verify_asks_a_router_by_name_and_says_how_it_was_left(tmp_path: Path) -> None:
    with running("--metrics", *ONE) as (_pid, port):
        words = ["verify", f"http://127.0.0.1:{port}", "--only", "router", "--model", "one,two"]
        ran = command.run_json(words, tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    assert "the router was left with two loaded" in ran.record["ended"]
    assert ran.record["facts"]["router"]["named"] == ["one", "two"]
    checks = {f["check"]: f["status"] for f in ran.record["findings"]}
    assert checks["router.loads-what-was-named"] == "passed"


def test_verify_wakes_a_server_that_it_finds_asleep(tmp_path: Path) -> None:
    with running("--metrics", "-m", "tiny.gguf", "--asleep") as (_pid, port):
        ran = command.run_json(
            ["verify", f"http://127.0.0.1:{port}", "--only", "sleep"], tmp_path / "records"
        )
    assert ran.status == 0, ran.open_findings()
    assert ran.record["facts"]["sleep"]["found_asleep"] is True
    assert {f["check"]: f["status"] for f in ran.record["findings"]}["sleep.wakes-and-answers"] == "passed"
