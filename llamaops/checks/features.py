"""Do a client that goes away, reasoning, structured output, tools and the edge of the context work?"""

from __future__ import annotations

from typing import Any

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.checks.server import evidence_of
from llamaops.errors import NotKnownError
from llamaops.probes.more import MoreFacts
from llamaops.probes.reasoning import ReasoningTry
from llamaops.schema.fact import Known, Unknown

LONG_S = 0.5
"""An answer with less left than this ends too soon to be seen cut off."""


def _absent(fact: Known[Any] | Unknown) -> NotApplicable | None:
    """Say that this build, or this server, has no such thing."""
    if isinstance(fact, Unknown) and fact.why in {"unsupported", "absent"}:
        return NotApplicable(fact.detail)
    return None


@check(
    "features.disconnect-frees-the-slot",
    title="A slot whose client has gone is free again soon",
    boundary="api_response",
    remedy="something between us and the server keeps the request alive: ask it directly; see whether a "
    "proxy passes a closed connection on",
)
def disconnect_frees_the_slot(more: MoreFacts) -> Verdict | NotApplicable:
    """Compare when the slot was free with when the answer would have ended by itself."""
    if (other := _absent(more.disconnect)) is not None:
        return other
    seen = more.disconnect.need()
    left = seen.left_s or 0.0
    meanwhile = seen.busy_meanwhile
    if meanwhile is not None and 0 < meanwhile <= seen.busy_before and left >= LONG_S:
        detail = f"{seen.seen_by} showed {seen.busy_before} busy slots before our answer, {meanwhile} in it"
        raise NotKnownError("failed", f"{detail}: others use the server, or it does not show what is busy")
    if meanwhile == 0 and left >= LONG_S:
        observed = f"{seen.seen_by} showed no busy slot while our answer was under way"
        return Verdict(holds=False, summary=observed, expected="a busy slot, then a free one",
                       observed=observed, evidence=evidence_of(more.disconnect))  # fmt: skip
    if seen.free_s is None:
        if seen.busy_before:
            raise NotKnownError("failed", "others used the server: whose slot is busy cannot be told")
        observed = "still busy after 5 s"
        return Verdict(holds=False, summary=f"the slot was {observed}", expected="free", observed=observed,
                       evidence=evidence_of(more.disconnect))  # fmt: skip
    ran_on = left >= LONG_S and seen.free_s >= 0.8 * left
    observed = f"free {seen.free_s:.2f} s after we left, {left:.2f} s of the answer were left"
    note = "" if left >= LONG_S else "; the answer is too short to tell whether it was cut off"
    return Verdict(
        holds=not ran_on,
        summary=f"{observed} (by {seen.seen_by}){note}" + ("; it ran on to its end" if ran_on else ""),
        expected="free within 5 s, and before the answer would have ended",
        observed=observed,
        evidence=evidence_of(more.disconnect),
    )


@check(
    "features.content-can-be-had",
    title="A model that only thinks within the limit gives content with one change",
    boundary="generated_output",
    severity="advisory",
    remedy="let clients ask for more tokens, or switch thinking off (chat_template_kwargs.enable_thinking "
    "false, --reasoning-budget 0)",
)
def content_can_be_had(more: MoreFacts) -> Verdict | NotApplicable:
    """Say which one change gave content: a larger budget, or thinking switched off."""
    if (other := _absent(more.reasoning)) is not None:
        return other
    seen = more.reasoning.need()
    shown = "; ".join(map(_shown, seen.tries))
    more_said = "; ".join((*seen.not_tried, *seen.failed))
    gave = (
        f"content came with {', '.join(seen.gave_content)}" if seen.gave_content else "no change gave content"
    )
    return Verdict(
        holds=bool(seen.gave_content),
        summary=f"{gave}: {shown}" + (f" ({more_said})" if more_said else ""),
        expected="content with a larger budget or without thinking",
        observed=gave,
        evidence=evidence_of(more.reasoning),
    )


def _shown(item: ReasoningTry) -> str:
    return (
        f"{item.change} ({item.max_tokens} tokens): content {item.content} ({item.content_characters}), "
        f"reasoning {item.reasoning} ({item.reasoning_characters}), {item.finish_reason}"
    )


@check(
    "features.schema-is-followed",
    title="An answer by a JSON schema follows it",
    boundary="api_response",
    remedy="see the answer in the evidence; validate structured answers in the client",
)
def schema_is_followed(more: MoreFacts) -> Verdict | NotApplicable:
    """Validate the answer."""
    if (other := _absent(more.structured)) is not None:
        return other
    seen = more.structured.need()
    if seen.fault and seen.finish_reason == "length":
        raise NotKnownError("failed", f"{seen.fault}: it was cut at its limit")
    return Verdict(
        holds=not seen.fault,
        summary=seen.fault or "the answer is JSON that follows the schema",
        expected="an object of two enumerations",
        observed=seen.fault or "as asked for",
        evidence=evidence_of(more.structured),
    )


@check(
    "features.tool-is-called",
    title="A tool that has to be called is called, with valid arguments",
    boundary="api_response",
    remedy="use a build and template that know tools (--jinja); see the answer in the evidence",
)
def tool_is_called(more: MoreFacts) -> Verdict | NotApplicable:
    """Look for one valid call, whole and streamed; a call that was silently dropped is a failure."""
    if (other := _absent(more.tools)) is not None:
        return other
    seen = more.tools.need()
    if seen.fault and seen.finish_reason == "length":
        raise NotKnownError("failed", f"{seen.fault}: it was cut at its limit")
    stream = seen.streamed
    fault = seen.fault
    if not fault and stream is not None and stream.fault:
        if not stream.in_time or stream.finish_reason == "length":
            raise NotKnownError("timed_out", f"streamed: {stream.fault}, before its end or its limit")
        fault = f"streamed: {stream.fault}"
    pieces = f"; streamed in {stream.pieces} pieces" if stream is not None else ""
    return Verdict(
        holds=not fault,
        summary=fault
        or f"{seen.calls} call with valid arguments, finish_reason {seen.finish_reason}{pieces}",
        expected="one call of get_weather with a city of the list, whole and streamed",
        observed=fault or "as asked for",
        evidence=evidence_of(more.tools),
    )


@check(
    "features.requests-fit-together",
    title="Requests that fit alone fit together",
    boundary="concurrency",
    severity="advisory",
    remedy="the slots share one KV cache: plan for the sum of what requests need, give each slot its own "
    "(--no-kv-unified), raise --ctx-size or lower --parallel",
)
def requests_fit_together(more: MoreFacts) -> Verdict | NotApplicable:
    """Report what each of several large prompts came to, beside one of them alone."""
    if isinstance(more.pool, Unknown) and more.pool.why in {"not_attempted", "not_selected"}:
        return NotApplicable(more.pool.detail)
    seen = more.pool.need()
    failed = [answer for answer in seen.together if answer.state != "works"]
    each = "; ".join(f"request {n}: {answer.detail}" for n, answer in enumerate(seen.together, 1))
    alone = f"{seen.prompt_tokens} tokens alone: {seen.alone.detail}"
    return Verdict(
        holds=not failed and seen.alone.state == "works",
        summary=f"{len(failed)} of {len(seen.together)} failed together; {alone}; {each}",
        expected="every request answered",
        observed=each,
        evidence=tuple(item for answer in seen.together for item in answer.evidence),
    )


@check(
    "features.context-is-real",
    title="A slot holds the context it reports, and refuses more with the documented error",
    boundary="api_response",
    remedy="believe the smaller figure: see both answers in the evidence, and n_ctx_slot in the load log",
)
def context_is_real(more: MoreFacts) -> Verdict | NotApplicable:
    """Look at a prompt just under the context, and at one just at it."""
    if (other := _absent(more.context)) is not None:
        return other
    if isinstance(more.context, Unknown) and more.context.why == "not_attempted":
        return NotApplicable(more.context.detail)
    seen = more.context.need()
    if "no_answer" in {seen.under.state, seen.over.state}:
        raise NotKnownError("timed_out", f"{seen.under.detail}; {seen.over.detail}")
    faults = []
    if seen.under.state != "works":
        faults.append(f"a prompt of {seen.under_tokens} tokens, just under the context: {seen.under.detail}")
    elif seen.under_evaluated is not None and abs(seen.under_evaluated - seen.under_tokens) > 2:  # noqa: PLR2004 - special tokens
        faults.append(f"of {seen.under_tokens} tokens of the prompt {seen.under_evaluated} were evaluated")
    cut = seen.over.state == "works" and seen.over_truncated is True
    refused = seen.over_state == "refuses" and seen.over.status == 400  # noqa: PLR2004 - HTTP's own number
    if not (cut or refused):
        faults.append(f"a prompt of {seen.over_tokens} tokens, as long as the context: {seen.over.detail}")
    over = "are cut, and the answer says so (`truncated`)" if cut else "are refused with HTTP 400"
    good = f"{seen.under_tokens} tokens work, {seen.over_tokens} {over}"
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or f"a slot has {seen.context_tokens} tokens: {good}",
        expected=f"a prompt under {seen.context_tokens} tokens works, a longer one gets HTTP 400 (before "
        "September 2025 it is cut, with `truncated`)",
        observed="; ".join(faults) or good,
        evidence=(*seen.under.evidence, *seen.over.evidence),
    )
