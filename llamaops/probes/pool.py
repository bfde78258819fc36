"""Fill a KV cache that slots share: several requests that each fit alone may fail together."""

from __future__ import annotations

from typing import NamedTuple

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask
from llamaops.probes.features import first_token
from llamaops.probes.registry import probe
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, not_attempted
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.parallel import start

SHARE = 0.6
"""Of a slot's context: two such prompts are more than the whole."""
MOST_PROMPT_TOKENS = 8192
MOST_REQUESTS = 8


class PoolAnswer(Shape, frozen=True, kw_only=True):
    """What became of each of several large prompts at once."""

    context_tokens: int
    """Context of a slot, by /props."""
    prompt_tokens: int
    """Tokens of each prompt; each alone fits."""
    alone: EndpointAnswer
    """What one of them came to alone."""
    together: tuple[EndpointAnswer, ...]
    """What each of them came to, all at once."""


class Place(NamedTuple):
    """Where and with what is asked."""

    client: HttpClient
    model: str | None
    wall_s: float
    slots: int
    context: int | None

    def send(self, name: str, token: int, count: int) -> EndpointAnswer:
        """Send one prompt of so many tokens."""
        body: dict[str, object] = {"prompt": [token] * count, "n_predict": 4, "cache_prompt": False}
        if self.model is not None:
            body["model"] = self.model
        bounds = Bounds(wall_s=self.wall_s, keep_bytes=16 * KIB, total_bytes=4 * MIB)
        return ask(self.client, name, "POST", "/completion", bounds=bounds, body=body).answer


@probe(
    "pool-exhaustion",
    sends="POST /completion with as many prompts at once as there are slots (at most 8), each of 60 % of a "
    "slot's context",
    proves="whether requests that fit alone fail together, and what each of them came to",
    does_not_prove="how many smaller requests would fit",
    tokens="4 for each request, and 60 % of a slot's context of prompt, at most 8192",
    seconds="two prompts one after the other, at most 120 s each; requests of others fail too",
    level="named",
)
def probe_pool(place: Place) -> Fact[PoolAnswer]:
    """Send one such prompt alone, and then several at once."""
    if not place.context or place.slots < 2:  # noqa: PLR2004 - two is the least that can share
        return not_attempted("there is one slot, or its context is not known: nothing is shared")
    count = int(place.context * SHARE)
    if count > MOST_PROMPT_TOKENS:
        return not_attempted(
            f"{count} tokens of prompt are more than this probe sends ({MOST_PROMPT_TOKENS})"
        )
    bounds = Bounds(wall_s=10.0)
    text: dict[str, object] = {"content": " sea"}
    if place.model is not None:
        text["model"] = place.model
    asked = ask(place.client, "pool-exhaustion", "POST", "/tokenize", bounds=bounds, body=text)
    try:
        token = first_token(asked.body)
    except ParseError:
        return not_attempted(f"no token to fill the context with: {asked.answer.detail}")
    alone = place.send("pool-exhaustion", token, count)
    pending = [
        start(lambda: place.send("pool-exhaustion", token, count))
        for _ in range(min(place.slots, MOST_REQUESTS))
    ]
    found = PoolAnswer(
        context_tokens=place.context,
        prompt_tokens=count,
        alone=alone,
        together=tuple(item.result() for item in pending),
    )
    return Known(value=found, source=Source(kind="http", name="POST /completion, several at once"))
