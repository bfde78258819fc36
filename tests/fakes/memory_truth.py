"""What real engines allocate, as measured, and the models they were measured on.

`tests/data/memory/models.jsonl.gz`: keys and tensor tables of models, without data. `truth.jsonl.gz`: one
measured case a line, in bytes: weights, KV cache, windowed KV cache, recurrent state, compute, output, the
indexer cache where there is one, and the sums of host and card. Names that begin with `made-` are made-up
models of real architectures.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from llamaops.estimate.memory import Estimate, estimate
from llamaops.estimate.model import Model, Weight
from llamaops.estimate.plan import Build, Load
from llamaops.facts.ggml_types import tensor_bytes

DATA = Path(__file__).resolve().parent.parent / "data" / "memory"
PARTS = ("weights", "KV cache", "windowed KV cache", "recurrent state", "compute", "output", "indexer cache")
EARLIER = Build(mixes_inputs=False, pads_encoders=False, gathers_states=False)
BUILDS = {
    "b10434": Build(
        mixes_inputs=False,
        pads_encoders=False,
        gathers_states=False,
        projects_rows=False,
        heeds_storage=False,
        norms_by_mean=False,
        presses_apart=False,
        caches_unused_layers=True,
    ),
    "b11434": EARLIER,
    "b11669": Build(),
}
BUILDS["b10068"] = replace(BUILDS["b10434"], loads_drafts=True)


@dataclass(frozen=True)
class Case:
    """A measured case."""

    id: str
    model: str
    build: str
    front_end: str
    load: Load
    truth: dict[str, int]
    host: int
    device: int

    @property
    def total(self) -> int:
        return sum(self.truth.values())

    def estimate(self) -> Estimate:
        return estimate(models()[self.model], self.load)


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def as_value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def models() -> dict[str, Model]:
    found = {}
    for line in lines("models.jsonl.gz"):
        weights = tuple(
            Weight(name, type_id, tuple(shape), tensor_bytes(type_id, tuple(shape)))
            for name, type_id, shape in line["weights"]
        )
        keys = {key: as_value(value) for key, value in line["keys"].items()}
        found[line["name"]] = Model(keys, weights, line["vocabulary"])
    return found


@cache
def cases() -> tuple[Case, ...]:
    found = []
    for line in lines("truth.jsonl.gz"):
        load = Load(**{"build": BUILDS[line["build"]], **line["load"]})
        found.append(
            Case(
                line["id"],
                line["model"],
                line["build"],
                line["front_end"],
                load,
                dict(zip(PARTS, line["truth"], strict=False)),
                *line["sides"],
            )
        )
    return tuple(found)
