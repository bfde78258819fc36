"""Do the server's answers to representative requests hold together?"""

from __future__ import annotations

from typing import NamedTuple

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.checks.server import evidence_of, fault_of
from llamaops.errors import NotKnownError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.probes.chat import ChatAnswer
from llamaops.probes.chat_stream import StreamAnswer
from llamaops.probes.completion_body import ServerTimings, Usage
from llamaops.probes.embeddings import CLOSE
from llamaops.probes.server import ServerFacts
from llamaops.probes.usable_text import MEANING
from llamaops.schema.fact import Known

FINISH_REASONS = frozenset({"stop", "length"})
"""What llama-server gives for a text to which no tool was offered."""
LONGEST_TOKEN_CHARACTERS = 40
"""Characters that a token of prose has at most, with room to spare."""
SAME_TEXT_CHARACTERS = 24
"""Two answers to different questions that begin alike for so long are one answer."""


def no_chat(server: ServerFacts) -> NotApplicable | None:
    """Say that chat is not this server's work, where it has none and vectors or ranks came instead."""
    if server.has_no_chat:
        instead = "documents were ranked" if isinstance(server.rerank, Known) else "embeddings were asked"
        return NotApplicable(f"the server has no chat; {instead} instead")
    return None


@check(
    "server.chat-answers",
    title="A chat request with the reported model's name is answered",
    boundary="api_response",
    remedy="read the answer in the evidence and the end of the server's log",
)
def chat_answers(server: ServerFacts) -> Verdict | NotApplicable:
    """Ask for HTTP 200 with an answer of the documented form; /health alone proves no inference."""
    if (other := no_chat(server)) is not None:
        return other
    answer = server.outcome("chat").need()
    fault = fault_of(answer, "HTTP 200 with a chat answer")
    if fault is not None:
        return fault
    chat = server.chat.need()
    tokens = chat.usage.completion_tokens if chat.usage else None
    observed = f"HTTP 200, {chat.characters} characters, {tokens} tokens in {answer.elapsed_s:.2f} s"
    return Verdict(
        holds=True,
        summary=observed,
        expected="HTTP 200 with a chat answer",
        observed=observed,
        evidence=answer.evidence,
    )


@check(
    "server.embeddings-answer",
    title="Embeddings are computed, and depend on the text",
    boundary="api_response",
    remedy="start the server with --embeddings and a --pooling that gives one vector for a text",
)
def embeddings_answer(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that equal texts have equal vectors, different ones different, and none is zero."""
    outcome = server.outcome("embeddings")
    if not asked.embeddings and not isinstance(outcome, Known):
        return NotApplicable("the server is not one for embeddings")
    fault = fault_of(outcome.need(), "one vector for each text")
    if fault is not None:
        return fault
    seen = server.embeddings.need()
    works = seen.smallest_norm > 0 and seen.equal_similarity >= CLOSE > seen.different_similarity
    observed = (
        f"{seen.dimension} numbers each, equal texts {seen.equal_similarity:.3f} alike, "
        f"different ones {seen.different_similarity:.3f}"
    )
    return Verdict(
        holds=works,
        summary=observed,
        expected=f"vectors not zero; equal texts at least {CLOSE} alike, different ones less",
        observed=observed,
        evidence=evidence_of(server.embeddings),
    )


@check(
    "server.embedding-width-agrees",
    title="A vector is as wide as the model is said to be",
    boundary="api_response",
    remedy="compare n_embd in /v1/models and embedding_length in the file's header with the vectors: another "
    "model answers, or something between us and the server cuts them",
)
def embedding_width_agrees(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare the length of the vectors with the width in the list of models."""
    if not isinstance(server.embeddings, Known):
        return NotApplicable("no vector came")
    models, name = server.models.need(), server.request_model.need()
    listed = models.named(name)
    width = listed.embedding_length if listed else None
    if width is None:
        raise NotKnownError("absent", "this build's /v1/models does not give the model's width")
    return _width(server, width, "/v1/models")


@check(
    "server.embedding-width-agrees-with-header",
    title="A vector is as wide as the model file's header says",
    boundary="api_response",
    remedy="the server has loaded another file than the one inspected: compare model_path in /props",
)
def embedding_width_agrees_with_header(server: ServerFacts, model: GgufFacts) -> Verdict | NotApplicable:
    """Compare the length of the vectors with the header."""
    if not isinstance(server.embeddings, Known):
        return NotApplicable("no vector came")
    return _width(server, model.embedding_length.need(), "the header")


def _width(server: ServerFacts, width: int, place: str) -> Verdict:
    seen = server.embeddings.need().dimension
    return Verdict(
        holds=seen == width,
        summary=f"vectors of {seen} numbers; {place} says {width}",
        expected=f"{width} numbers",
        observed=f"{seen} numbers",
        evidence=evidence_of(server.embeddings),
    )


@check(
    "server.rerank-answers",
    title="The document that is about the query is ranked above the one that is not",
    boundary="api_response",
    remedy="take a model that was made for ranking, and start the server with --reranking; the chat or "
    "embedding model of the same family ranks at random",
)
def rerank_answers(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Compare the scores of two documents, of which one answers the query."""
    outcome = server.outcome("rerank")
    if not asked.reranking and not isinstance(server.rerank, Known):
        return NotApplicable("the server is not one for ranking")
    fault = fault_of(outcome.need(), "a score for each document")
    if fault is not None:
        return fault
    if server.rerank is None:
        raise NotKnownError("not_attempted", "documents were not ranked")
    seen = server.rerank.need()
    observed = f"the relevant document {seen.relevant_score:.3f}, the other one {seen.other_score:.3f}"
    return Verdict(
        holds=seen.relevant_score > seen.other_score,
        summary=observed,
        expected="a higher score for the relevant document",
        observed=observed,
        evidence=evidence_of(server.rerank),
    )


@check(
    "server.chat-text-is-usable",
    title="The chat answer is text that a reader can use",
    boundary="generated_output",
    remedy="try the same prompt on the CPU (--n-gpu-layers 0); see the chat template with `llamaops inspect`",
)
def chat_text_is_usable(server: ServerFacts) -> Verdict | NotApplicable:
    """Judge the text of both long answers, or their reasoning where the limit came before any content."""
    if (other := no_chat(server)) is not None:
        return other
    chat = server.chat.need()
    if isinstance(server.chat_stream, Known) and chat.problem is None:
        stream = server.chat_stream.value
        problem, where = stream.problem, "streamed answer"
        if stream.ended not in {"done", "closed"} or stream.error:
            problem = None  # a stream that broke off is judged as such
    else:
        problem, where = chat.problem, "answer"
    observed = MEANING[problem] if problem else f"{chat.characters} characters of text"
    if problem is None and chat.content != "valued":
        observed = f"no content yet, and {chat.reasoning_characters} characters of usable reasoning"
    return Verdict(
        holds=problem is None,
        summary=f"the {where} holds {observed}" if problem else f"the answer holds {observed}",
        expected="text that a reader can use",
        observed=observed,
        evidence=evidence_of(server.chat, server.chat_stream),
    )


@check(
    "server.finish-reason-and-usage",
    title="The answers say why they ended, and their token counts add up",
    boundary="api_response",
    remedy="see the answer in the evidence; clients that trust these fields will be misled",
)
def finish_reason_and_usage(server: ServerFacts) -> Verdict | NotApplicable:
    """Check finish_reason and usage of each whole answer against each other, /tokenize and timings."""
    if (other := no_chat(server)) is not None:
        return other
    answers = [server.chat.need()] + (
        [server.chat_other.value] if isinstance(server.chat_other, Known) else []
    )
    least = server.prompt_tokens_counted.value if isinstance(server.prompt_tokens_counted, Known) else 1
    faults = [fault for answer in answers for fault in _faults(answer, least)]
    if isinstance(server.chat_stream, Known):
        stream = server.chat_stream.value
        faults += [
            f"streamed: {fault}" for fault in (*_stream_faults(stream, least), *_lost(answers[0], stream))
        ]
        faults += _prompts_differ(answers[0].usage, server.chat_stream.value.usage)
    chat = answers[0]
    good = f"finish_reason {chat.finish_reason}, {_usage_text(chat.usage)}"
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or good,
        expected="a known finish_reason, and usage that agrees with limit, text and timings",
        observed="; ".join(faults) or good,
        evidence=evidence_of(server.chat, server.chat_other, server.chat_stream),
    )


def _prompts_differ(whole: Usage | None, streamed: Usage | None) -> list[str]:
    """Compare the counts of one prompt, asked whole and streamed."""
    counts = [usage.prompt_tokens for usage in (whole, streamed) if usage and usage.prompt_tokens]
    differ = len(set(counts)) > 1
    return [f"the same prompt has {counts[0]} tokens whole and {counts[1]} streamed"] if differ else []


def _faults(answer: ChatAnswer, least_prompt: int) -> list[str]:
    faults = []
    if answer.finish_reason not in FINISH_REASONS:
        faults.append(f"finish_reason is {answer.finish_reason or 'missing'}")
    if answer.role not in {None, "assistant"}:
        faults.append("the answer's role is not assistant")
    faults += _usage_faults(answer.usage, answer.timings, least_prompt if answer.counted_tokens else 1)
    generated = answer.usage.completion_tokens if answer.usage else None
    if generated is None:
        return faults
    if answer.finish_reason == "length" and generated < min(answer.max_tokens, 2):
        faults.append(f"finish_reason is length after {generated} of {answer.max_tokens} tokens")
    if answer.counted_tokens is not None and answer.reasoning != "valued":
        faults += _miscounted(generated, answer.counted_tokens)
    if answer.characters > generated * LONGEST_TOKEN_CHARACTERS:
        faults.append(f"usage says {generated} tokens for {answer.characters} characters")
    return faults


def _lost(whole: ChatAnswer, stream: StreamAnswer) -> list[str]:
    """Look for text that is missing in the stream; the whole answer shows how well tokens are counted."""
    if (
        None in {whole.counted_tokens, stream.counted_tokens}
        or stream.reasoning_characters
        or whole.usage is None
    ):
        return []
    said = stream.usage.completion_tokens if stream.usage else None
    counted = stream.counted_tokens or 0
    usual = abs((whole.usage.completion_tokens or 0) - (whole.counted_tokens or 0))
    if said is None or abs(said - counted) <= usual + 2 + said // 8:
        return []
    return [f"usage says {said} tokens, the text that came has {counted}"]


def _miscounted(generated: int, counted: int) -> list[str]:
    """Compare usage with the text's own tokens.

    Stripped markup makes usage more; fewer than the shortest way to cut the text is hardly possible.
    """
    if counted - counted // 5 - 2 <= generated <= counted + counted // 4 + 8:
        return []
    return [f"usage says {generated} tokens, the text has {counted}"]


def _stream_faults(stream: StreamAnswer, least_prompt: int) -> list[str]:
    if stream.usage is None:
        return []  # whether it has to be there is judged with the rest of the stream
    faults = _usage_faults(stream.usage, stream.timings, least_prompt)
    generated = stream.usage.completion_tokens or 0
    if stream.pieces > generated + 1:
        faults.append(f"usage says {generated} tokens, {stream.pieces} pieces of text came")
    return faults


def _usage_faults(usage: Usage | None, timings: ServerTimings | None, least_prompt: int) -> list[str]:
    if usage is None or None in {usage.prompt_tokens, usage.completion_tokens, usage.total_tokens}:
        return ["usage is missing or not whole"]
    prompt, generated, total = usage.prompt_tokens or 0, usage.completion_tokens or 0, usage.total_tokens
    faults = []
    if prompt + generated != total:
        faults.append(f"usage does not add up: {prompt} + {generated} is not {total}")
    if generated < 1:
        faults.append("usage says that no token was generated")
    if prompt < least_prompt:
        faults.append(f"usage says {prompt} prompt tokens, the prompt alone has {least_prompt}")
    measured = timings.generated_tokens if timings else None
    if measured is not None and measured != generated:
        faults.append(f"usage says {generated} tokens, timings say {measured}")
    return faults


def _usage_text(usage: Usage | None) -> str:
    if usage is None:
        return "no usage"
    return f"{usage.prompt_tokens} + {usage.completion_tokens} = {usage.total_tokens} tokens"


@check(
    "server.token-limit-is-honoured",
    title="No answer is longer than max_tokens",
    boundary="api_response",
    remedy="do not let clients use this server without a limit of their own on time and bytes",
)
def token_limit_is_honoured(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare usage, and the length of the text itself, with the limit that was sent."""
    if (other := no_chat(server)) is not None:
        return other
    answers: list[ChatAnswer | StreamAnswer] = [server.chat.need()]
    if isinstance(server.chat_other, Known):
        answers.append(server.chat_other.value)
    if isinstance(server.chat_stream, Known):
        answers.append(server.chat_stream.value)
    over = [text for text in map(_over_limit, answers) if text]
    limits = ", ".join(str(answer.max_tokens) for answer in answers)
    return Verdict(
        holds=not over,
        summary="; ".join(over) or f"every answer is within its limit ({limits} tokens)",
        expected=f"at most {limits} tokens",
        observed="; ".join(over) or "within the limits",
        evidence=evidence_of(server.chat, server.chat_other, server.chat_stream),
    )


def _over_limit(answer: ChatAnswer | StreamAnswer) -> str:
    limit = answer.max_tokens
    said = answer.usage.completion_tokens if answer.usage else None
    if said is not None and said > limit:
        return f"usage says {said} tokens, the limit is {limit}"
    if isinstance(answer, StreamAnswer):
        if answer.pieces > limit + 1:
            return f"the stream has {answer.pieces} pieces of text, the limit is {limit} tokens"
        characters = len(answer.text)
    else:
        characters = answer.characters
        if answer.counted_tokens is not None and answer.counted_tokens > limit + limit // 4 + 2:
            return f"the text has {answer.counted_tokens} tokens, the limit is {limit}"
    if characters > limit * LONGEST_TOKEN_CHARACTERS:
        return f"the text has {characters} characters, the limit is {limit} tokens"
    return ""


@check(
    "server.model-name-agrees",
    title="Every endpoint names the same model",
    boundary="api_response",
    remedy="something between us and the server answers for it, or several servers share the address",
)
def model_name_agrees(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare the name in each answer with the list, whose name the request used."""
    if (other := no_chat(server)) is not None:
        return other
    models, wanted = server.models.need(), server.request_model.need()
    listed = models.named(wanted)
    names = listed.names if listed else frozenset((wanted,))
    seen = {"chat": server.chat.need().model}
    if isinstance(server.chat_other, Known):
        seen["second chat"] = server.chat_other.value.model
    if isinstance(server.chat_stream, Known):
        seen["stream"] = server.chat_stream.value.model
    if isinstance(server.props_of_model, Known) and not server.props_of_model.value.is_router:
        seen["/props"] = server.props_of_model.value.model_alias
    given = {place: name for place, name in seen.items() if name}
    if not given:
        raise NotKnownError("absent", "no answer names its model")
    strange = {place: name for place, name in given.items() if name not in names}
    observed = ", ".join(f"{place}: {name}" for place, name in (strange or given).items())
    return Verdict(
        holds=not strange,
        summary=f"listed as {wanted}; {observed}",
        expected=f"{wanted} everywhere",
        observed=observed,
        evidence=evidence_of(server.models, server.chat, server.chat_stream, server.props),
    )


@check(
    "server.answers-depend-on-the-question",
    title="Different requests get different answers",
    boundary="api_response",
    remedy="something answers from a store: ask the server directly, not through a cache or a stub",
)
def answers_depend_on_the_question(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare ids and texts of the answers to two different prompts."""
    if (other := no_chat(server)) is not None:
        return other
    one, two = server.chat.need(), server.chat_other.need()
    ids = [one.id, two.id, *(server.chat_stream.value.ids if isinstance(server.chat_stream, Known) else ())]
    known_ids = [name for name in ids if name]
    faults = []
    if len(set(known_ids)) < len(known_ids):
        faults.append("two requests got answers with the same id")
    start = two.text[:SAME_TEXT_CHARACTERS]
    if (one.text and one.text == two.text) or (
        len(start) == SAME_TEXT_CHARACTERS and one.text.startswith(start)
    ):
        faults.append("two different questions got the same text")
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or "two questions, two answers",
        expected="an answer of its own for each request",
        observed="; ".join(faults) or "ids and texts differ",
        evidence=evidence_of(server.chat, server.chat_other),
    )


@check(
    "server.counters-agree",
    title="The server's counters moved by what we were sent",
    boundary="api_response",
    remedy="another server may answer /metrics, or usage in the answers is wrong",
)
def counters_agree(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that the counters of tokens grew by the sums of usage; by more where others ask too."""
    if (other := no_chat(server)) is not None:
        return other
    outcome = server.outcome("metrics")
    if isinstance(outcome, Known) and outcome.value.state in {"switched_off", "absent"}:
        return NotApplicable("/metrics is switched off")
    before, after = server.metrics.need().counters, server.metrics_after.need().counters
    if GENERATED not in before or GENERATED not in after:
        return NotApplicable(f"this build has no counter {GENERATED}")
    alone = asked.via == "server" and not asked.api_key  # questions without a key may generate a token each
    counts = [_generated(server, round(after[GENERATED] - before[GENERATED]))]
    if PROMPTS in before and PROMPTS in after:
        counts.append(_sent(server, round(after[PROMPTS] - before[PROMPTS])))
    good = all(count.said <= count.grown and (count.grown <= count.most or not alone) for count in counts)
    if good and not alone and not asked.api_key and any(count.grown > count.most for count in counts):
        grown = "; ".join(count.sentence() for count in counts)
        raise NotKnownError("failed", f"{grown}: others use the server, or it counts wrongly")
    said = ", ".join(f"{count.said} {count.what}" for count in counts)
    return Verdict(
        holds=good,
        summary="; ".join(count.sentence() for count in counts),
        expected=f"{said}; more only where others use the server too",
        observed=", ".join(f"{c.grown} {c.what}" for c in counts),
        evidence=evidence_of(server.metrics, server.metrics_after),
    )


GENERATED, PROMPTS = "tokens_predicted_total", "prompt_tokens_total"


class _Count(NamedTuple):
    """Tokens by usage, and by how much the server's counter of them grew."""

    what: str
    said: int
    grown: int
    most: int
    untold: int
    """Of a stream without usage, as builds before September 2024 have it, at most so many."""

    def sentence(self) -> str:
        note = f" (of a stream without usage, at most {self.untold})" if self.untold else ""
        return f"usage says {self.said} {self.what}, the counter grew by {self.grown}{note}"


def _usages(server: ServerFacts) -> tuple[list[Usage], bool]:
    """Return the usage of each answer, and whether a stream came without one."""
    found = [fact.value.usage for fact in (server.chat, server.chat_other) if isinstance(fact, Known)]
    stream = server.chat_stream.value if isinstance(server.chat_stream, Known) else None
    untold = stream is not None and stream.usage is None
    return [usage for usage in (*found, stream.usage if stream else None) if usage], untold


def _generated(server: ServerFacts, grown: int) -> _Count:
    usages, untold = _usages(server)
    said = sum(usage.completion_tokens or 0 for usage in usages)
    most = server.chat_stream.value.max_tokens if untold and isinstance(server.chat_stream, Known) else 0
    # Each request may count a token that it did not give: the one that ends its text.
    return _Count("tokens were generated", said, grown, said + most + len(usages) + untold, most)


def _sent(server: ServerFacts, grown: int) -> _Count:
    """Compare the tokens of our prompts that came from no cache; the stream has the prompt of the first."""
    usages, untold = _usages(server)
    sent = [max(0, (usage.prompt_tokens or 0) - (usage.cached_tokens or 0)) for usage in usages]
    most = sent[0] if untold and sent else 0
    return _Count("tokens of prompts were processed", sum(sent), grown, sum(sent) + most, most)
