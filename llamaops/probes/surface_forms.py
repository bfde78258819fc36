"""What a whole answer of each endpoint looks like: each function returns what is wrong, or nothing. Pure."""

from __future__ import annotations

from llamaops.probes.embeddings import CLOSE, INPUTS, parse_embeddings
from llamaops.probes.reading import Json, as_list, as_object, flag, text, whole
from llamaops.probes.rerank import parse_rerank
from llamaops.system.http_answer import decode_json

WORDS = "The sea is calm today and a warm wind blows in from the west"
"""More words than any limit below has tokens: an answer that holds all of them is no answer."""
LIMIT = 4
CHAT_LIMIT = 8


def _item(body: bytes) -> Json:
    return as_object(decode_json(body), "the body")


def adapters(body: bytes) -> str:
    """Look for the list of adapters."""
    as_list(decode_json(body), "the body")
    return ""


def apply_template(body: bytes) -> str:
    """Look for our own words in the rendered prompt."""
    prompt = text(_item(body), "prompt")
    return "" if prompt and WORDS in prompt else "the rendered prompt does not hold what was asked"


def tokens(body: bytes) -> str:
    """Look for tokens, fewer than characters."""
    found = as_list(_item(body).get("tokens"), "tokens")
    return "" if 0 < len(found) <= len(WORDS) + 2 else f"{len(found)} tokens for {len(WORDS)} characters"


def detokenized(body: bytes) -> str:
    """Compare with the text that the tokens came from."""
    content = text(_item(body), "content") or ""
    # Vocabularies of encoders know no capital letters.
    same = " ".join(content.split()).casefold() == WORDS.casefold()
    return "" if same else "the tokens' text is not the one cut"


def text_completion(body: bytes) -> str:
    """Look for a choice with text within the limit."""
    item = _item(body)
    choice = as_object((as_list(item.get("choices"), "choices") or [None])[0], "a choice")
    usage = as_object(item.get("usage"), "usage")
    count = whole(usage, "completion_tokens")
    return _within(text(choice, "text"), count, LIMIT) or _not_its_limit(text(choice, "finish_reason"), count)


def _not_its_limit(reason: str | None, count: int | None) -> str:
    """Look at the reason of a text whose end the model may not choose (`ignore_eos`)."""
    wrong = reason != "length" and count == LIMIT
    return f"finish_reason is {str(reason)[:20]} at the limit of a text without an end" if wrong else ""


def completion(body: bytes) -> str:
    """Look for content within the limit, and the end."""
    item = _item(body)
    if item.get("stop") is not True:
        return "it does not say that it ended"
    if flag(item, "truncated"):
        return "it says that it cut a prompt of a few words"
    return _within(text(item, "content"), whole(item, "tokens_predicted"), LIMIT)


def response(body: bytes) -> str:
    """Look for output of a known type."""
    item = _item(body)
    output = [as_object(entry, "an output") for entry in as_list(item.get("output"), "output")]
    usage = as_object(item.get("usage"), "usage")
    said = "".join(_texts(entry.get("content")) for entry in output)
    if not output or any(
        entry.get("type") not in {"message", "reasoning", "function_call"} for entry in output
    ):
        return "there is no output of a known type"
    if item.get("status") not in {None, "completed", "incomplete"}:
        return "its status is neither completed nor incomplete"
    return _within(said or "?", whole(usage, "output_tokens"), CHAT_LIMIT)


def message(body: bytes) -> str:
    """Look for a message of the Anthropic form."""
    item = _item(body)
    usage = as_object(item.get("usage"), "usage")
    blocks = [as_object(entry, "a block") for entry in as_list(item.get("content"), "content")]
    if item.get("type") != "message" or item.get("stop_reason") not in {
        "end_turn", "max_tokens", "tool_use", "stop_sequence",
    }:  # fmt: skip
        return "it is no message with a known stop_reason"
    said = "".join(str(block.get("text") or block.get("thinking") or "") for block in blocks)
    return _within(said, whole(usage, "output_tokens"), CHAT_LIMIT)


def _texts(content: object) -> str:
    entries = content if isinstance(content, list) else []
    return "".join(str(entry.get("text", "")) for entry in entries if isinstance(entry, dict))


def _within(said: str | None, count: int | None, limit: int) -> str:
    if not said:
        return "there is no text"
    if count is None or not 0 < count <= limit:
        return f"it says {count} tokens, the limit is {limit}"
    if WORDS.casefold() in said.casefold():
        return "its text is our prompt, which is longer than the limit"
    return "" if len(said) <= limit * 40 else f"{len(said)} characters for at most {limit} tokens"


def counted(body: bytes) -> str:
    """Look for a count of input tokens."""
    count = whole(_item(body), "input_tokens")
    return "" if count and count >= 1 else "it counts no tokens"


def input_tokens(body: bytes) -> int | None:
    """Return the tokens of the messages, from a cache or not, by either endpoint. Raises: ParseError."""
    item = _item(body)
    if "usage" in item:
        item = as_object(item["usage"], "usage")
    count = whole(item, "input_tokens")
    cached = whole(item, "cache_read_input_tokens") or 0
    return None if count is None else count + cached


def reranked(body: bytes) -> str:
    """Look for the relevant document above the other one."""
    seen = parse_rerank(body)
    first, second = seen.relevant_score, seen.other_score
    return "" if first > second else f"the relevant document has {first}, the other one {second}"


def infilled(body: bytes) -> str:
    """Look for content within the limit."""
    item = _item(body)
    count = whole(item, "tokens_predicted")
    return "" if count is not None and count <= LIMIT else f"it says {count} tokens, the limit is {LIMIT}"


def embedded(body: bytes) -> str:
    """Look for one vector for each text: not zero, equal for equal texts, another for another text."""
    seen = parse_embeddings(body)
    if seen.smallest_norm > 0 and seen.equal_similarity >= CLOSE > seen.different_similarity:
        return ""
    return f"equal texts are {seen.equal_similarity} alike, different ones {seen.different_similarity}"


def pooled_to_ranks(body: bytes) -> str:
    """Look for one entry for each text, and at no number in it: a server that ranks pools to a score.

    What b10068, b10434 and 0.5.0 then answer here is no vector of the text: it differs from call to call,
    and may be zero, huge or no number.
    """
    entries = as_list(_item(body).get("data"), "data")
    return "" if len(entries) == len(INPUTS) else f"{len(entries)} entries for {len(INPUTS)} texts"
