"""The models of a router: passed, failed and unknown for each check."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from llamaops.checks import router as checks
from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.errors import NotKnownError
from llamaops.probes.router import RouterFacts, RouterModel
from tests.fakes.server_facts import answer, known, unknown

ONE = RouterModel(
    name="one", state_before="loaded", state_after="loaded", asked_by="chat", answer=answer("router"),
    answered_as="one", text="Monday is the first day of the week.", completion_tokens=9, counted_tokens=9,
    parameter_count=1000, vocabulary_size=10,
)  # fmt: skip
TWO = msgspec.structs.replace(
    ONE, name="two", answered_as="two", text="On Monday one goes to work again.", parameter_count=2000
)
IDLE = RouterModel(name="three", state_before="unloaded", state_after=None, why_not="it is unloaded")


def like(model: RouterModel, **changes: Any) -> RouterModel:
    return msgspec.structs.replace(model, **changes)


def facts(*models: RouterModel, named: tuple[str, ...] = (), put_away: tuple[str, ...] = ()) -> RouterFacts:
    return RouterFacts(autoload=True, max_loaded=4, named=named, models=known(models), put_away=put_away)


def holds(verdict: Verdict | NotApplicable) -> bool:
    assert isinstance(verdict, Verdict)
    return verdict.holds


def test_models_answer() -> None:
    verdict = checks.models_answer(facts(ONE, TWO, IDLE))
    assert verdict.holds
    assert "not asked" in verdict.summary
    assert "three" in verdict.summary
    assert "ev-2" in verdict.evidence


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"answer": answer("router", "broken", 500)}, "HTTP 500"),
        ({"answer": answer("router", "refuses", 400)}, "HTTP 400"),
        ({"answered_as": "one"}, "answered by one"),
        ({"problem": "repeated"}, "repeated"),
        ({"state_after": "unloaded"}, "listed as unloaded"),
        ({"state_after": None}, "not there"),
        ({"answer": None, "load": answer("router", "broken", 500), "failed_to_load": True}, "HTTP 500"),
        ({"answer": None, "load": answer("router"), "failed_to_load": True}, "loading it failed"),
    ],
)
def test_a_model_that_does_not_answer_as_itself_fails(changes: dict[str, Any], word: str) -> None:
    verdict = checks.models_answer(facts(ONE, like(TWO, **changes)))
    assert not verdict.holds
    assert "two" in verdict.summary
    assert word in verdict.summary


def test_a_named_model_that_is_not_listed_fails() -> None:
    missing = like(
        IDLE, name="nine", state_before=None, why_not="it was named, and the router does not list it"
    )
    assert not checks.models_answer(facts(ONE, missing, named=("one", "nine"))).holds


@pytest.mark.parametrize(
    "router",
    [
        facts(IDLE),
        facts(ONE, like(TWO, answer=answer("router", "no_answer", None))),
        facts(ONE, like(TWO, answer=None, load=answer("router", "no_answer", None))),
        RouterFacts(autoload=None, max_loaded=None, named=(), models=unknown()),
    ],
    ids=["none loaded", "no answer", "not loaded in time", "not asked"],
)
def test_what_was_not_seen_is_unknown(router: RouterFacts) -> None:
    with pytest.raises(NotKnownError):
        checks.models_answer(router)


def test_each_model_is_its_own() -> None:
    assert holds(checks.each_model_is_its_own(facts(ONE, TWO)))
    assert holds(checks.each_model_is_its_own(facts(ONE)))
    assert not holds(checks.each_model_is_its_own(facts(ONE, like(TWO, counted_tokens=0))))
    assert not holds(checks.each_model_is_its_own(facts(ONE, like(TWO, text=ONE.text, counted_tokens=None))))
    # The same file under two names says the same: the counters tell them apart.
    assert holds(checks.each_model_is_its_own(facts(ONE, like(ONE, name="again"))))
    vectors = like(ONE, asked_by="embeddings", completion_tokens=None, counted_tokens=None)
    assert isinstance(checks.each_model_is_its_own(facts(vectors)), NotApplicable)
    with pytest.raises(NotKnownError):
        checks.each_model_is_its_own(
            facts(like(ONE, counted_tokens=None), like(ONE, name="again", counted_tokens=None))
        )


def test_loads_what_was_named() -> None:
    loaded = like(TWO, state_before="unloaded", load=answer("router"), load_s=1.5)
    verdict = checks.loads_what_was_named(facts(ONE, loaded, put_away=("one",)))
    assert holds(verdict)
    assert "two in 1.50 s" in verdict.summary
    assert "put away meanwhile: one" in verdict.summary
    assert isinstance(checks.loads_what_was_named(facts(ONE)), NotApplicable)
    assert not holds(checks.loads_what_was_named(facts(like(loaded, load_s=None, state_after="unloaded"))))
    assert not holds(checks.loads_what_was_named(facts(like(loaded, load_s=None, failed_to_load=True))))
    slow = like(loaded, load_s=None, load=answer("router", "no_answer", None), answer=None)
    with pytest.raises(NotKnownError):
        checks.loads_what_was_named(facts(slow))
