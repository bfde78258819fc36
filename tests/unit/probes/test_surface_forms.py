"""What counts as a whole answer of an endpoint."""

from __future__ import annotations

import json

import pytest

from llamaops.errors import ParseError
from llamaops.probes.embeddings import INPUTS
from llamaops.probes.surface_forms import embedded, pooled_to_ranks


def body(*vectors: object) -> bytes:
    return json.dumps({"data": [{"embedding": vector} for vector in vectors]}).encode()


@pytest.mark.parametrize("value", [0.0, 1e38, None])
def test_a_server_that_ranks_has_no_vectors_to_judge(value: float | None) -> None:
    """b10068 and b10434 answer with memory that nobody wrote: zeros, huge numbers, null for no number."""
    assert pooled_to_ranks(body(*[[value]] * len(INPUTS))) == ""


def test_an_entry_for_each_text_is_wanted_all_the_same() -> None:
    assert pooled_to_ranks(body([1.0])) == "1 entries for 3 texts"
    with pytest.raises(ParseError):
        pooled_to_ranks(b'{"data": 1}')


def test_elsewhere_vectors_of_zeros_are_broken() -> None:
    assert embedded(body([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]))
    assert embedded(body([1.0, 0.0], [1.0, 0.0], [0.0, 1.0])) == ""
