"""What a projector computes with, against what engines reserved for made-up projectors of the usual types."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from llamaops.estimate.model import Model, Weight
from llamaops.estimate.plan import Build
from llamaops.estimate.projector import KINDS, projector_bytes
from llamaops.facts.ggml_types import tensor_bytes
from tests.fakes.memory_truth import BUILDS, as_value

ROWS = Path(__file__).resolve().parents[2] / "data" / "memory" / "projectors.jsonl.gz"
MIB = 2**20


@cache
def rows() -> dict[str, dict[str, Any]]:
    with gzip.open(ROWS, "rt", encoding="utf-8") as file:
        return {row["name"]: row for row in map(json.loads, file)}


def made(name: str, **changes: object) -> Model:
    row = rows()[name]
    keys = {key: as_value(value) for key, value in {**row["keys"], **changes}.items()}
    weights = tuple(
        Weight(tensor, type_id, tuple(ne), tensor_bytes(type_id, tuple(ne)))
        for tensor, type_id, ne in row["weights"]
    )
    return Model(keys, weights, 0)


@pytest.mark.parametrize("name", sorted(rows()))
def test_the_buffer_at_the_load_is_equal_to_the_byte(name: str) -> None:
    row, model = rows()[name], made(name)
    alone, beside = projector_bytes(model, "", Build()), projector_bytes(model, "vulkan", Build())
    assert alone is not None
    assert beside is not None
    assert (alone.host[0], alone.device) == (row["host"], (0, 0))
    assert (beside.host[0], beside.device[0]) == (row["host_with_card"], row["device"])


def test_every_type_is_measured() -> None:
    assert {row["keys"]["clip.projector_type"] for row in rows().values()} == set(KINDS)


def test_pictures_of_any_size_make_a_band() -> None:
    fixed = projector_bytes(made("gemma3"), "", Build())
    free = projector_bytes(made("qwen2"), "", Build())
    assert fixed is not None
    assert free is not None
    assert fixed.host[0] == fixed.host[1]
    assert free.host[1] > 1.5 * free.host[0]


@pytest.mark.parametrize(
    ("build", "name", "mebibytes"),
    [("b11434", "qwen25", 705.95), ("b10434", "qwen25", 705.95), ("b10434", "gemma3", 121.25)],
)
def test_earlier_builds(build: str, name: str, mebibytes: float) -> None:
    found = projector_bytes(made(name), "", BUILDS[build])
    assert found is not None
    assert round(found.host[0] / MIB, 2) == mebibytes


@pytest.mark.parametrize(("name", "mebibytes"), [("pixtral", 15.79), ("llama4", 22.99), ("kimivl", 32.62)])
def test_what_the_oldest_build_did_in_another_way_is_a_band(name: str, mebibytes: float) -> None:
    found = projector_bytes(made(name), "", BUILDS["b10434"])
    assert found is not None
    assert found.host[0] <= mebibytes * MIB <= found.host[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"clip.projector_type": "whisper"},
        {"clip.has_audio_encoder": True},
        {"clip.vision.image_size": 2**30},
        {"clip.vision.patch_size": 0},
        {"clip.vision.block_count": 2**30},
        {"clip.vision.attention.head_count": 0},
    ],
)
def test_what_is_not_described_or_not_plausible_is_unknown(changes: dict[str, object]) -> None:
    assert projector_bytes(made("gemma3", **changes), "", Build()) is None


def test_a_projector_that_lacks_a_tensor_is_unknown() -> None:
    whole = made("idefics3")
    weights = tuple(weight for weight in whole.weights if weight.name != "mm.model.fc.weight")
    assert projector_bytes(Model(whole.keys, weights, 0), "", Build()) is None
