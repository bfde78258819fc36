"""Chat templates: do they compile, what do they support, do their turns end, and what is odd in them."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.templates import Construct, TemplateFacts, TemplatesFacts
from llamaops.schema.fact import Known, Unknown

BAD = frozenset({"refused", "failed", "too_long", "too_slow", "not_ended"})
HUGE = frozenset({"too_long", "too_slow", "not_ended"})
MOST_SHOWN = 4
# The engine ends a generation at tokens with these texts, whatever the header names.
# Source: llama-vocab.cpp, the search for end-of-generation tokens.
ENDS = frozenset(
    {
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
        "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
        "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[",
    }
)  # fmt: skip
SUPPORTS = (
    ("system", "system messages"),
    ("multi_turn", "several turns"),
    ("tools", "tools"),
    ("tool_calls", "calls of tools and their results"),
    ("parts", "content in parts"),
    ("thinking_switch", "a switch for thinking"),
    ("reasoning", "earlier reasoning"),
    ("any_order", "two messages in a row"),
    ("generation_prompt", "a mark where the model goes on"),
)
NEEDED = frozenset({"multi_turn"})


def _used(templates: TemplatesFacts) -> TemplateFacts:
    """Return the template that would be used: the file that was named, else the model's default."""
    return templates.templates.need()[0]


def _name(template: TemplateFacts) -> str:
    return template.name.rsplit("/", 1)[-1] if template.origin == "file" else f"{template.name} template"


def _none(templates: TemplatesFacts) -> bool:
    return isinstance(templates.templates, Unknown) and templates.templates.why == "absent"


@check(
    "model.template-compiles",
    title="The chat templates compile",
    boundary="model_file",
    remedy="give a corrected one with --chat-template-file: the engine finds this only after the whole load",
)
def template_compiles(templates: TemplatesFacts) -> Verdict | NotApplicable:
    """Fail for a template that jinja2 does not compile in its immutable sandbox."""
    if _none(templates):
        return NotApplicable("there is no template")
    found = templates.templates.need()
    wrong = [f"{_name(one)}: {one.error}" for one in found if not one.compiles.need()]
    shown = ", ".join(f"{_name(one)} (sha256 {one.sha256.need()[:12]})" for one in found)
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong[:MOST_SHOWN]) or f"{shown}: compiled in jinja2's sandbox",
        expected="templates that compile",
        observed="; ".join(wrong[:MOST_SHOWN]) or "compiled",
    )


@check(
    "model.template-renders-a-conversation",
    title="The chat template renders a user's message",
    boundary="model_file",
    remedy="give another template with --chat-template-file",
)
def template_renders_a_conversation(templates: TemplatesFacts) -> Verdict | NotApplicable:
    """Fail for a template that renders nothing of a user's message, or does not come to an end."""
    if _none(templates):
        return NotApplicable("there is no template")
    template = _used(templates)
    if not template.compiles.need():
        return NotApplicable("it does not compile")
    huge = [one for one in template.conversations if one.outcome in HUGE]
    plain = next((one for one in template.conversations if one.name == "user"), None)
    if plain is None:
        Unknown(why="failed", detail="no conversation was rendered", source=template.compiles.source).need()
    if plain.outcome == "failed" and any(name in plain.detail for name in template.variables):
        return NotApplicable(f"it needs what only its own client gives: {', '.join(template.variables)}")
    wrong = [plain] if plain.outcome in BAD else huge
    said = "; ".join(
        f"{one.name}: {one.outcome.replace('_', ' ')}, {one.detail}" for one in wrong[:MOST_SHOWN]
    )
    return Verdict(
        holds=not wrong,
        summary=f"{_name(template)}: {said}"
        if wrong
        else f"{_name(template)}: {plain.bytes} bytes of one message",
        expected="a text of bounded length, within two seconds",
        observed=said or "a text",
    )


@check(
    "model.template-supports-chat",
    title="The chat template has a place for what a chat needs",
    boundary="model_file",
    severity="advisory",
    remedy="do not send what it has no place for: it is refused, or dropped without a word",
)
def template_supports_chat(templates: TemplatesFacts) -> Verdict | NotApplicable:
    """Tell which of the fixed conversations a template supports, and fail where it lacks the basic ones."""
    if _none(templates):
        return NotApplicable("there is no template")
    template = _used(templates)
    if not template.compiles.need():
        return NotApplicable("it does not compile")
    supports = template.supports.need()
    yes = [words for name, words in SUPPORTS if getattr(supports, name)]
    no = [words for name, words in SUPPORTS if getattr(supports, name) is False]
    lacking = [name for name in sorted(NEEDED) if getattr(supports, name) is False]
    ignored = _silent(template, supports.system)
    summary = f"{_name(template)} supports {', '.join(yes) or 'nothing'}"
    summary += f"; not {', '.join(no)}" if no else ""
    if ignored:
        summary += "; a system message is dropped without a word"
    return Verdict(
        holds=not lacking and not ignored,
        summary=summary,
        expected="several turns, and a system message or its refusal",
        observed=", ".join(yes) or "nothing",
    )


def _silent(template: TemplateFacts, supported: bool | None) -> bool:
    outcome = next((one.outcome for one in template.conversations if one.name == "system"), "failed")
    return supported is False and outcome == "rendered"


@check(
    "model.template-is-harmless",
    title="The chat template holds nothing that has no business there",
    boundary="model_file",
    remedy="do not use this file; take the template of the model's publisher",
)
def template_is_harmless(templates: TemplatesFacts) -> Verdict | NotApplicable:
    """Fail for private attributes, other files and loops or powers that take all time or memory."""
    if _none(templates):
        return NotApplicable("there is no template")
    found = templates.templates.need()
    severe = [(one, odd) for one in found for odd in one.constructs if odd.severe]
    if not severe:
        for one in found:
            one.compiles.need()
    return _judge_oddities(severe)


@check(
    "model.template-is-plain",
    title="The chat template does nothing that a reader would not expect",
    boundary="model_file",
    severity="advisory",
    remedy="read these lines of the template (`tokenizer.chat_template`) before it is used",
)
def template_is_plain(templates: TemplatesFacts) -> Verdict | NotApplicable:
    """Tell of hidden characters, random text, and words that it looks for in what is said."""
    if _none(templates):
        return NotApplicable("there is no template")
    odd = [(one, odd) for one in templates.templates.need() for odd in one.constructs if not odd.severe]
    return _judge_oddities(odd)


def _judge_oddities(found: list[tuple[TemplateFacts, Construct]]) -> Verdict:
    shown = [f"{_name(one)}, line {odd.line}: {odd.kind} ({odd.detail})" for one, odd in found[:MOST_SHOWN]]
    more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return Verdict(
        holds=not found,
        summary="; ".join(shown) + more if found else "nothing of the kind was found",
        expected="nothing of the kind",
        observed="; ".join(shown) + more if found else "nothing of the kind",
    )


@check(
    "model.template-ends-turns",
    title="The marker that ends an assistant's turn is a token that ends a generation",
    boundary="model_file",
    severity="advisory",
    remedy="take another conversion, or stop at this text with the request's `stop`",
)
def template_ends_turns(templates: TemplatesFacts, model: GgufFacts) -> Verdict | NotApplicable:
    """Tell of a marker that is no token of the vocabulary, or that the engine does not stop at."""
    if _none(templates):
        return NotApplicable("there is no template")
    template = _used(templates)
    if isinstance(template.turn_end, Unknown):
        return NotApplicable(template.turn_end.detail)
    marker = template.turn_end.value
    if isinstance(template.turn_end_token, Unknown):
        return NotApplicable(template.turn_end_token.detail)
    tokens = model.special_tokens.value if isinstance(model.special_tokens, Known) else ()
    ends = {token.text for token in tokens if token.role in {"eos", "eot", "eom"}} | ENDS
    one_token = template.turn_end_token.value
    holds = one_token and marker in ends
    why = "no token of the vocabulary" if not one_token else "no token that ends a generation"
    return Verdict(
        holds=holds,
        summary=f"a turn ends with {marker!r}, "
        + ("which ends a generation" if holds else f"which is {why}"),
        expected="a token that ends a generation",
        observed=marker,
    )
