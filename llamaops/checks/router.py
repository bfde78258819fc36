"""Does each model behind a router answer as itself, and was one that had to be loaded there in time?"""

from __future__ import annotations

from collections.abc import Iterable

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.probes.router import RouterFacts, RouterModel
from llamaops.probes.usable_text import MEANING

SAME_TEXT_CHARACTERS = 24
"""Answers of two different models that are alike for so long are one answer."""
SILENT = frozenset({"no_answer", "loading"})


def _evidence(models: Iterable[RouterModel]) -> tuple[str, ...]:
    answers = [answer for model in models for answer in (model.load, model.answer) if answer is not None]
    return tuple(dict.fromkeys(item for answer in answers for item in answer.evidence))


def _asked(router: RouterFacts) -> list[RouterModel]:
    """Return the models that were asked. Raises: NotKnownError where none could be."""
    models = router.models.need()
    asked = [model for model in models if not model.why_not]
    if not asked and not any(model.name in router.named for model in models):
        names = ", ".join(model.name for model in models[:5]) or "none"
        raise NotKnownError("not_attempted", f"no model is loaded, and none was named; listed: {names}")
    return asked


@check(
    "router.models-answer",
    title="Each model of the router that may be asked answers as itself",
    boundary="api_response",
    remedy="ask that model alone and read the router's log, where the lines of its child begin with a port; "
    "take a model that cannot be loaded out of the folder or the preset file",
)
def models_answer(router: RouterFacts) -> Verdict:
    """Ask for an answer with usable text, the model's own name in it, and a list that says it is loaded."""
    asked = _asked(router)
    strange = [m for m in router.models.need() if m.why_not and m.name in router.named]
    faults = {model.name: fault for model in asked if (fault := _fault(model))}
    faults |= {model.name: model.why_not for model in strange}
    silent = [model for model in asked if model.answer is not None and model.answer.state in SILENT]
    if silent and not faults and silent[0].answer is not None:
        raise NotKnownError("timed_out", f"{silent[0].name}: {silent[0].answer.detail}")
    waiting = [model for model in asked if model.answer is None and model.name not in faults]
    if waiting and not faults:
        raise NotKnownError("timed_out", f"{waiting[0].name} was not loaded in time")
    rest = [model.name for model in router.models.need() if model.why_not and model not in strange]
    left = f"; not asked, for they are not loaded or not named: {', '.join(rest[:5])}" if rest else ""
    good = ", ".join(map(_good, asked))
    said = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
    return Verdict(
        holds=not faults,
        summary=f"{said or good}{left}",
        expected="usable text, the model's own name, and `loaded` in the list",
        observed=said or good,
        evidence=_evidence(asked),
    )


def _fault(model: RouterModel) -> str:
    """Say what is wrong; the empty text where nothing is, or where no answer came in time."""
    answer = model.answer or model.load
    if answer is None or answer.state in SILENT:
        return ""
    if answer.state != "works":
        return answer.detail
    if model.answer is None:
        return "loading it failed" if model.failed_to_load else ""
    if model.answered_as not in {None, model.name}:
        return f"it was answered by {model.answered_as}"
    if model.problem is not None:
        return f"the answer holds {MEANING[model.problem]}"
    if model.state_after not in {"loaded", "sleeping"}:
        return f"it answered, and is listed as {model.state_after or 'not there'}"
    return ""


def _good(model: RouterModel) -> str:
    took = model.answer.elapsed_s if model.answer else 0.0
    how = {"sleeping": "woke and answered", "loaded": "answered"}.get(model.state_before or "", "answered")
    kind = " with vectors" if model.asked_by == "embeddings" else ""
    return f"{model.name} {how}{kind} in {took:.2f} s"


@check(
    "router.each-model-is-its-own",
    title="No model of the router is answered by another one",
    boundary="api_response",
    remedy="something answers for several names with one model: compare the process list with the router's "
    "list, and ask each child directly",
)
def each_model_is_its_own(router: RouterFacts) -> Verdict | NotApplicable:
    """Compare each model's own counter with its usage, and the texts of models that differ in figures."""
    asked = [model for model in _asked(router) if model.asked_by == "chat" and model.completion_tokens]
    if not asked:
        return NotApplicable("no model gave text")
    counted = [model for model in asked if model.counted_tokens is not None]
    wrong = [
        f"{model.name}: usage says {model.completion_tokens} tokens, its own counter grew by "
        f"{model.counted_tokens}"
        for model in counted
        if (model.counted_tokens or 0) < (model.completion_tokens or 0)
    ]
    pairs = [(one, two) for at, one in enumerate(asked) for two in asked[at + 1 :] if _differ(one, two)]
    wrong += [
        f"{one.name} and {two.name} differ and gave one text" for one, two in pairs if _same_text(one, two)
    ]
    if not wrong and len(counted) < len(asked) and len(asked) > 1 and not pairs:
        raise NotKnownError("unsupported", "only the names in the answers tell the models apart (--metrics)")
    good = f"{len(counted)} counters agree, {len(pairs)} pairs of different models gave different texts"
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) or good,
        expected="a counter of its own for each model, and texts of their own",
        observed="; ".join(wrong) or good,
        evidence=_evidence(asked),
    )


def _differ(one: RouterModel, two: RouterModel) -> bool:
    figures = (
        (one.parameter_count, two.parameter_count),
        (one.vocabulary_size, two.vocabulary_size),
    )
    return any(a is not None and b is not None and a != b for a, b in figures)


def _same_text(one: RouterModel, two: RouterModel) -> bool:
    start = one.text[:SAME_TEXT_CHARACTERS]
    return len(start) == SAME_TEXT_CHARACTERS and two.text.startswith(start)


@check(
    "router.loads-what-was-named",
    title="A model that had to be loaded was loaded in time, and the router says so",
    boundary="api_response",
    remedy="read the router's log: lines of the child that loads begin with its port; give the machine more "
    "memory, or the router a smaller --models-max",
)
def loads_what_was_named(router: RouterFacts) -> Verdict | NotApplicable:
    """Look at the models that were not loaded before, and say what was put away for them."""
    loaded = [model for model in router.models.need() if model.load is not None]
    if not loaded:
        return NotApplicable("no model had to be loaded")
    failed = [model for model in loaded if model.load_s is None]
    # A list that does not say `loaded` after an answer contradicts itself; without an answer it may be slow.
    wrong = [m for m in failed if m.failed_to_load or (m.load and m.load.state not in SILENT)]
    if failed and not wrong:
        detail = failed[0].load.detail if failed[0].load else "no answer"
        raise NotKnownError("timed_out", f"{failed[0].name} was not loaded in time: {detail}")
    said = "; ".join(f"{m.name}: {_why_failed(m)}" for m in wrong)
    good = ", ".join(f"{m.name} in {m.load_s:.2f} s" for m in loaded if m.load_s is not None)
    away = f"; put away meanwhile: {', '.join(router.put_away)}" if router.put_away else ""
    return Verdict(
        holds=not wrong,
        summary=f"{said or f'loaded {good}'}{away}",
        expected="`loaded` in the list within 120 s",
        observed=said or good,
        evidence=_evidence(loaded),
    )


def _why_failed(model: RouterModel) -> str:
    answer = model.load
    if answer is not None and answer.state == "works" and not model.failed_to_load:
        return f"the request was answered, and the list says {model.state_after or 'nothing'}"
    return answer.detail if answer is not None and answer.state != "works" else "the list says that it failed"
