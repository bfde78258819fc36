"""Load logs for tests: real ones of two builds of 2026, and the wordings of three earlier years."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from llamaops.facts.load_log import LoadFacts, parse_load_log
from llamaops.schema.fact import Fact, Source, Unknown

T = TypeVar("T")

SOURCE = Source(kind="command", name="llama-server", evidence="ev-000000000001")
FOLDER = Path(__file__).parents[2] / "data" / "load_log"


def stored(name: str) -> str:
    return (FOLDER / f"{name}.log").read_text(encoding="utf-8")


def read(name: str) -> LoadFacts:
    return parse_load_log(stored(name), SOURCE)


def parsed(text: str) -> LoadFacts:
    return parse_load_log(text, SOURCE)


def why(fact: Fact[T] | Unknown) -> str:
    assert isinstance(fact, Unknown)
    return fact.why


YEAR_2023, YEAR_2024, YEAR_2025 = stored("2023"), stored("2024"), stored("2025")
