"""POST /v1/rerank: the representative request of a server that ranks documents and has no chat."""

from __future__ import annotations

import math

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import Json, as_list, as_object, whole
from llamaops.probes.registry import probe
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json

PATH = "/v1/rerank"
QUERY = "When does the train to the coast leave?"
DOCUMENTS = ("The train to the coast leaves at noon.", "Bread is baked from flour and water.")
"""The first is about the query, the second is not."""


class RerankAnswer(Shape, frozen=True, kw_only=True):
    """How high each of our own documents was ranked."""

    relevant_score: float
    """Score of the document that is about the query; any real number, higher is more relevant."""
    other_score: float
    """Score of the document that is not."""


def parse_rerank(body: bytes) -> RerankAnswer:
    """Read the score of each document. Raises: ParseError."""
    results = [
        as_object(entry, "a result")
        for entry in as_list(as_object(decode_json(body), "the body").get("results"), "results")
    ]
    scores = {whole(entry, "index"): _score(entry) for entry in results}
    if set(scores) != {0, 1} or len(results) != len(DOCUMENTS):
        raise ParseError(f"there are {len(results)} results for {len(DOCUMENTS)} documents")
    return RerankAnswer(relevant_score=scores[0], other_score=scores[1])


def _score(entry: Json) -> float:
    value = entry.get("relevance_score")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParseError("a document has no score")
    return float(value)


def rerank_body(model: str | None) -> dict[str, object]:
    """Return the body of a request that ranks our own documents."""
    body: dict[str, object] = {"query": QUERY, "documents": list(DOCUMENTS)}
    return body if model is None else {**body, "model": model}


@probe(
    "rerank",
    sends=f"POST {PATH} with a query and two fixed documents, only to a server without chat or for ranking",
    proves="the document that is about the query is ranked above the one that is not",
    does_not_prove="that it ranks well where documents are alike",
    tokens="about 40 of prompt, none generated",
    seconds="one exchange, at most 120 s",
)
def probe_rerank(
    client: HttpClient, *, model: str | None, bounds: Bounds
) -> tuple[EndpointAnswer, Fact[RerankAnswer]]:
    """Ask for the scores of a relevant document and of another."""
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=8 * KIB, total_bytes=min(bounds.total_bytes, MIB))
    asked = ask(client, "rerank", "POST", PATH, bounds=limits, body=rerank_body(model))
    return parsed(asked, parse_rerank)
