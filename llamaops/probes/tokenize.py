"""POST /tokenize: how many tokens is a text, by the model's own vocabulary?"""

from __future__ import annotations

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import as_list, as_object
from llamaops.probes.registry import probe
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json


def parse_token_count(body: bytes) -> int:
    """Count the tokens of an answer with or without pieces. Raises: ParseError."""
    item = as_object(decode_json(body), "the body")
    tokens = as_list(item.get("tokens"), "tokens")
    for token in tokens:
        number = token.get("id") if isinstance(token, dict) else token
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ParseError("a token is not a number")
    return len(tokens)


@probe(
    "tokenize",
    sends="POST /tokenize with our own prompt, or with what our prompt gave",
    proves="the number of tokens of a text, independently of what usage says",
    does_not_prove="the number generated exactly: a text can be cut into tokens in more than one way",
)
def probe_tokenize(
    client: HttpClient, content: str, *, bounds: Bounds, name: str = "tokenize", model: str | None = None
) -> tuple[EndpointAnswer, Fact[int]]:
    """Count the tokens of a text of ours; a router has to be told the model."""
    body: dict[str, object] = {"content": content, "add_special": False, "parse_special": True}
    if model is not None:
        body["model"] = model
    return parsed(ask(client, name, "POST", "/tokenize", bounds=bounds, body=body), parse_token_count)
