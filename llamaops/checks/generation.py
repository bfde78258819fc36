"""Did a bounded prompt give usable text, through the path that the workload uses?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.facts.generation import Generation, GenerationFacts
from llamaops.probes.usable_text import MEANING


def _usable(generation: Generation) -> Verdict:
    problem = generation.problem.need()
    length = generation.text_characters.need()
    evidence = tuple(
        source.evidence
        for source in (generation.text_characters.source, generation.end.source)
        if source.evidence is not None
    )
    if problem:
        observed = next((text for slug, text in MEANING.items() if slug == problem), problem)
        return Verdict(
            holds=False,
            summary=f"the {generation.path} path through {generation.via} gave {observed}",
            expected="text that a reader can use",
            observed=f"{observed} ({length} characters)",
            evidence=evidence,
        )
    return Verdict(
        holds=True,
        summary=f"{generation.path} path through {generation.via}: {length} characters of usable text",
        expected="text that a reader can use",
        observed=f"{length} characters, none of the known faults",
        evidence=evidence,
    )


@check(
    "generation.raw-text-is-usable",
    title="A raw completion gives usable text",
    boundary="generated_output",
    remedy="look at the load log in the evidence, then try the same prompt on the CPU (--n-gpu-layers 0)",
)
def raw_text_is_usable(generation: GenerationFacts) -> Verdict | NotApplicable:
    """Judge the text of the raw completion; an exit status of 0 is not enough."""
    if generation.raw is None:
        return NotApplicable("no raw completion was asked for")
    return _usable(generation.raw)


@check(
    "generation.chat-text-is-usable",
    title="The chat template's path gives usable text",
    boundary="generated_output",
    remedy="install llama-server beside the completion program, or look at the chat template with "
    "`llamaops inspect`",
)
def chat_text_is_usable(generation: GenerationFacts) -> Verdict | NotApplicable:
    """Judge the chat answer where the model has a template; a raw completion is no proof of chat."""
    if not generation.has_chat_template.need():
        return NotApplicable("the model has no chat template")
    if generation.chat is None:
        raise NotKnownError("not_attempted", generation.chat_not_attempted or "no chat request was made")
    return _usable(generation.chat)


@check(
    "generation.ends-by-itself",
    title="The generation ends by itself, with success",
    boundary="generated_output",
    remedy="see the end of the log in the evidence; a program that waits for input or never stops is not "
    "fit for unattended use",
)
def ends_by_itself(generation: GenerationFacts) -> Verdict | NotApplicable:
    """Ask that no generation had to be stopped, and that each ended well."""
    runs = [run for run in (generation.raw, generation.chat) if run is not None]
    if not runs:
        return NotApplicable("nothing was generated")
    ends = [(run, run.end.need()) for run in runs]
    bad = [
        (run, end) for run, end in ends if run.stopped_at_bound or end not in {"exit status 0", "HTTP 200"}
    ]
    observed = "; ".join(f"{run.path} through {run.via}: {end}" for run, end in bad or ends)
    evidence = tuple(run.end.source.evidence for run, _ in ends if run.end.source.evidence is not None)
    return Verdict(
        holds=not bad,
        summary=observed,
        expected="exit status 0, or HTTP 200",
        observed=observed,
        evidence=evidence,
    )


@check(
    "generation.token-limit-is-honoured",
    title="No more tokens are generated than were allowed",
    boundary="generated_output",
    remedy="do not use this program unattended: its token limit does not hold",
)
def token_limit_is_honoured(generation: GenerationFacts) -> Verdict | NotApplicable:
    """Compare the engine's own count with the limit, and ask for at least one token."""
    runs = [run for run in (generation.raw, generation.chat) if run is not None]
    if not runs:
        return NotApplicable("nothing was generated")
    counts = [(run, run.generated_tokens.need()) for run in runs]
    # The engine's timing counts evaluations, which is one less than the tokens it sampled.
    holds = all(0 < count <= generation.max_tokens for _run, count in counts)
    observed = ", ".join(f"{count} ({run.path} through {run.via})" for run, count in counts)
    return Verdict(
        holds=holds,
        summary=f"generated {observed} tokens; the limit is {generation.max_tokens}",
        expected=f"1 to {generation.max_tokens} tokens",
        observed=f"{observed} tokens",
    )
