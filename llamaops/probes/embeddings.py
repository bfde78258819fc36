"""POST /v1/embeddings: the representative request of a server that has no chat."""

from __future__ import annotations

import math

from llamaops.errors import ParseError
from llamaops.probes.endpoint import EndpointAnswer, ask, parsed
from llamaops.probes.reading import as_list, as_object
from llamaops.probes.registry import probe
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json

PATH = "/v1/embeddings"
INPUTS = ("The sea is calm today.", "The sea is calm today.", "A train leaves at noon.")
"""Two equal texts and another: equal texts have equal vectors, different ones differ."""
CLOSE = 0.999
LARGEST = 1e38
"""Vectors are computed in single precision."""


class EmbeddingsAnswer(Shape, frozen=True, kw_only=True):
    """Vectors of our own texts, summed up; the vectors are not kept."""

    dimension: int
    """Length of each vector."""
    smallest_norm: float
    """Length of the shortest vector; 0 is no embedding."""
    equal_similarity: float
    """Cosine of the vectors of two equal texts; near 1."""
    different_similarity: float
    """Cosine of the vectors of two different texts; below that."""


def parse_embeddings(body: bytes) -> EmbeddingsAnswer:
    """Read the vectors of INPUTS. Raises: ParseError."""
    entries = as_list(as_object(decode_json(body), "the body").get("data"), "data")
    vectors = [_vector(entry) for entry in entries]
    places = [as_object(entry, "an entry").get("index") for entry in entries]
    if places not in (list(range(len(entries))), [None] * len(entries)):
        raise ParseError("the vectors' indices are not those of the texts")
    if len(vectors) != len(INPUTS):
        raise ParseError(f"there are {len(vectors)} vectors for {len(INPUTS)} texts")
    if len({len(vector) for vector in vectors}) != 1:
        raise ParseError("the vectors differ in length")
    return EmbeddingsAnswer(
        dimension=len(vectors[0]),
        smallest_norm=min(math.hypot(*vector) for vector in vectors),
        equal_similarity=_cosine(vectors[0], vectors[1]),
        different_similarity=_cosine(vectors[0], vectors[2]),
    )


def _vector(entry: object) -> list[float]:
    numbers = as_list(as_object(entry, "an entry").get("embedding"), "embedding")
    vector = [float(n) for n in numbers if isinstance(n, (int, float)) and not isinstance(n, bool)]
    if not vector or len(vector) != len(numbers) or not all(abs(n) < LARGEST for n in vector):
        raise ParseError("an embedding is empty or holds something else than numbers of a usual size")
    return vector


def _cosine(one: list[float], other: list[float]) -> float:
    length = math.hypot(*one) * math.hypot(*other)
    return round(sum(a * b for a, b in zip(one, other, strict=True)) / length, 6) if length else 0.0


@probe(
    "embeddings",
    sends=f"POST {PATH} with three fixed texts, only to a server for embeddings",
    proves="the server computes vectors that depend on the text",
    does_not_prove="that the vectors are good for any purpose",
    tokens="about 20 of prompt, none generated",
    seconds="one exchange, at most 120 s",
)
def probe_embeddings(
    client: HttpClient, *, model: str | None, bounds: Bounds
) -> tuple[EndpointAnswer, Fact[EmbeddingsAnswer]]:
    """Ask for the vectors of two equal texts and a different one."""
    body: dict[str, object] = {"input": list(INPUTS), "encoding_format": "float"}
    if model is not None:
        body["model"] = model
    limits = Bounds(wall_s=bounds.wall_s, keep_bytes=8 * KIB, total_bytes=min(bounds.total_bytes, 8 * MIB))
    return parsed(ask(client, "embeddings", "POST", PATH, bounds=limits, body=body), parse_embeddings)
