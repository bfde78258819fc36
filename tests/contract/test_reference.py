"""The generated pages are what the code says now."""

from __future__ import annotations

import json

from tests.fakes.liars import LIARS
from tools import reference


def test_the_pages_of_probes_and_liars_are_current() -> None:
    for name, made in (("probes.md", reference.probes()), ("liars.md", reference.liars())):
        written = (reference.FOLDER / name).read_text(encoding="utf-8")
        assert written == made, f"docs/reference/{name}: run `make generate`"


def test_the_matrix_is_made_from_its_figures() -> None:
    builds = json.loads(reference.FIGURES.read_text(encoding="utf-8"))
    written = (reference.FOLDER / "probes-by-build.md").read_text(encoding="utf-8")
    assert written == reference.matrix(builds)
    assert len(builds) >= 2


def test_there_are_many_liars_of_every_kind() -> None:
    assert len(LIARS) >= 100
    assert {liar.boundary for liar in LIARS} >= {
        "api_response", "concurrency", "generated_output", "model_load",
    }  # fmt: skip
    assert len({liar.name for liar in LIARS if liar.program == "llama-server"}) >= 100
