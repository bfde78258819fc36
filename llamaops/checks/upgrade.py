"""Whether a candidate does with the same model and flags what the build in use does."""

from __future__ import annotations

from typing import TypeVar

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.facts.canary import CanaryFacts, CanarySide
from llamaops.schema.amount import amount
from llamaops.schema.fact import Fact, Known

T = TypeVar("T")

BAD_FLAGS = {"vanished", "renamed", "takes_other_value"}
MORE_MEMORY = 1.05
SLACK_BYTES = 16 * 1024 * 1024
MOST_SHOWN = 12
HOLD = "hold: keep the build in use until this is understood"


@check(
    "upgrade.flags-still-there",
    title="Every flag in use is there in the candidate, by the same name and with the same values",
    boundary=None,
    remedy="change the flags together with the build; --rename OLD=NEW tries a new name in the canary",
)
def flags_still_there(canary: CanaryFacts) -> Verdict:
    """Compare the flags in use."""
    flags = canary.flags.need().in_use
    bad = [item for item in flags if item.state in BAD_FLAGS]
    said = "; ".join(
        f"{item.flag} {item.state.replace('_', ' ')}" + (f" ({item.then})" if item.then else "")
        for item in bad
    )
    return Verdict(
        holds=not bad,
        summary=said or f"{len(flags)} flags in use, all there",
        expected="all there",
        observed=said or "all there",
    )


@check(
    "upgrade.defaults-are-the-same",
    title="No default changed, in use or not",
    boundary=None,
    severity="advisory",
    remedy="write the value that you rely on into the flags",
)
def defaults_are_the_same(canary: CanaryFacts) -> Verdict:
    """Compare defaults: those of flags not in use take effect silently."""
    flags = canary.flags.need()
    said = [f"{item.flag}: {item.now} → {item.then}" for item in flags.defaults]
    said += [
        f"{item.flag}: {item.now} → {item.then}" for item in flags.in_use if item.state == "default_changed"
    ]
    more = f" and {len(said) - MOST_SHOWN} more" if len(said) > MOST_SHOWN else ""
    return Verdict(holds=not said, summary="; ".join(said[:MOST_SHOWN]) + more or "no default changed")


@check(
    "upgrade.candidate-verifies-as-well",
    title="The candidate passes the verification that the build in use passes",
    boundary=None,
    remedy=HOLD,
)
def candidate_verifies_as_well(canary: CanaryFacts) -> Verdict:
    """Compare the checks that did not pass."""
    now, then = canary.current, canary.candidate
    if not then.ready:
        return Verdict(holds=False, summary=f"the candidate did not come up: {then.why_not}")
    if not now.ready:
        raise NotKnownError("failed", f"the build in use did not come up: {now.why_not}")
    worse = [name for name in then.failed if name not in now.failed]
    better = [name for name in now.failed if name not in then.failed]
    good = then.judged - len(then.failed) - len(then.not_shown)
    said = f"{good} of {then.judged} required checks pass"
    if then.not_shown:
        said += f"; not shown: {', '.join(then.not_shown)}"
    if better:
        said += f"; better: {', '.join(better)}"
    return Verdict(
        holds=not worse,
        summary=f"worse: {', '.join(worse)}" if worse else said,
        expected="no check that passes now fails then",
        observed=f"worse: {', '.join(worse)}" if worse else said,
    )


def _both(canary: CanaryFacts) -> tuple[CanarySide, CanarySide]:
    for name, side in (("build in use", canary.current), ("candidate", canary.candidate)):
        if not side.ready:
            raise NotKnownError("not_attempted", f"the {name} did not come up")
    return canary.current, canary.candidate


def _differing(what: str, now: tuple[Fact[T], ...], then: tuple[Fact[T], ...]) -> Verdict | NotApplicable:
    """Compare answers one by one; where neither build gives one there is nothing to compare."""
    pairs = [(a, b) for a, b in zip(now, then, strict=True) if isinstance(a, Known) or isinstance(b, Known)]
    if not pairs:
        return NotApplicable(f"neither build offers {what}")
    different = [number for number, (a, b) in enumerate(pairs, 1) if a.need() != b.need()]
    said = (
        f"{what} {', '.join(map(str, different))} of {len(pairs)} differ"
        if different
        else f"{len(pairs)} {what}, all equal"
    )
    return Verdict(holds=not different, summary=said, expected="the same from both", observed=said)


@check(
    "upgrade.templates-agree",
    title="Both builds render our conversations to the same prompt",
    boundary=None,
    remedy=f"{HOLD}; another prompt is another model: compare the renderings in the record",
)
def templates_agree(canary: CanaryFacts) -> Verdict | NotApplicable:
    """Compare what /apply-template gives."""
    now, then = _both(canary)
    return _differing("rendered conversations", now.templates, then.templates)


@check(
    "upgrade.tokens-agree",
    title="Both builds cut our texts into the same tokens",
    boundary=None,
    remedy=f"{HOLD}; other tokens mean other answers, other lengths and another price",
)
def tokens_agree(canary: CanaryFacts) -> Verdict | NotApplicable:
    """Compare what /tokenize gives."""
    now, then = _both(canary)
    return _differing("texts in tokens", now.tokens, then.tokens)


@check(
    "upgrade.greedy-output-agrees",
    title="Both builds say the same at temperature 0",
    boundary=None,
    severity="advisory",
    remedy="read both texts in the record: another kernel may pick another word; nonsense means hold",
)
def greedy_output_agrees(canary: CanaryFacts) -> Verdict | NotApplicable:
    """Compare greedy continuations; rounding differs between builds, so this only informs."""
    now, then = _both(canary)
    return _differing("greedy continuations", now.greedy, then.greedy)


@check(
    "upgrade.endpoints-still-work",
    title="Every endpoint that works now works in the candidate",
    boundary=None,
    remedy="change the clients that use it first, or hold",
)
def endpoints_still_work(canary: CanaryFacts) -> Verdict:
    """Compare what each endpoint's answer means."""
    now, then = _both(canary)
    lost = [f"{name}: {then.endpoints.get(name, 'not asked')}" for name, meaning in now.endpoints.items()
            if meaning == "works" and then.endpoints.get(name) != "works"]  # fmt: skip
    new = [
        name
        for name, meaning in then.endpoints.items()
        if meaning == "works" and now.endpoints.get(name) != "works"
    ]
    works = sum(meaning == "works" for meaning in then.endpoints.values())
    said = "; ".join(lost) or f"{works} work" + (f"; new: {', '.join(new)}" if new else "")
    return Verdict(holds=not lost, summary=said, expected="what works now", observed=said)


@check(
    "upgrade.errors-agree",
    title="Wrong requests get the same answers from the candidate",
    boundary=None,
    severity="advisory",
    remedy="see whether clients depend on the status that changed",
)
def errors_agree(canary: CanaryFacts) -> Verdict:
    """Compare the error contract."""
    now, then = _both(canary)
    said = "; ".join(
        f"{name}: {value} → {then.errors.get(name, 'not asked')}"
        for name, value in now.errors.items()
        if then.errors.get(name) != value
    )
    return Verdict(
        holds=not said, summary=said or f"{len(now.errors)} kinds of wrong requests, the same answers"
    )


@check(
    "upgrade.memory-is-not-more",
    title="The candidate allocates no more memory for the same settings",
    boundary=None,
    remedy="see that it still fits with the room that you want, or lower the context",
)
def memory_is_not_more(canary: CanaryFacts) -> Verdict:
    """Compare the buffers of both load logs."""
    now, then = _both(canary)
    before, after = _total(now), _total(then)
    holds = after <= before * MORE_MEMORY + SLACK_BYTES
    return Verdict(
        holds=holds,
        summary=f"{amount(before)} now, {amount(after)} then",
        expected=f"at most 5 % above {amount(before)}",
        observed=amount(after),
    )


def _total(side: CanarySide) -> int:
    if side.memory is None:
        raise NotKnownError("not_attempted", "no load log was read")
    return side.memory.weights_bytes.need() + side.memory.kv_bytes.need() + side.memory.compute_bytes.need()
