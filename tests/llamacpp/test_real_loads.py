"""What was predicted is what the log of a real load reports, to the last digit that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.windowed_model import write_windowed_model
from tools.load_table import SERVED, SMOKED, WITH_WINDOW, load, rows_of

COPIED = "repacked weights"
"""Which weights are copied depends on the processor's kernels; the table shows it, no prediction is made."""


def hold(model: str, bin_dir: Path, words: tuple[str, ...]) -> None:
    record = load(Path(model), bin_dir, words)
    rows = {row.part: row for row in rows_of(record, "model", words)}
    assert {"weights", "KV cache", "compute", "output"} <= set(rows)
    assert {name: row.difference for name, row in rows.items() if row.difference != "0"}.keys() <= {COPIED}
    found = {one["check"]: one["status"] for one in record["findings"]}
    assert found["fit.prediction-agrees-with-load"] == "passed"
    if "lifecycle" in record["facts"]:
        assert found["fit.process-memory-is-as-predicted"] == "passed"
        memory = record["facts"]["lifecycle"]["memory_when_ready"]["value"]
        assert memory["file_bytes"] > rows["weights"].reported / 2, "the model is mapped"


@pytest.mark.llamacpp
@pytest.mark.parametrize("words", SERVED[:4], ids=" ".join)
def test_the_embedded_model(words: tuple[str, ...], embedded_server: str, embedded_model: str) -> None:
    hold(embedded_model, Path(embedded_server).parent, words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a model with windows that needs no download and has no terms."""
    return str(write_windowed_model(tmp_path_factory.mktemp("windowed") / "windowed.gguf"))


@pytest.mark.llamacpp
@pytest.mark.parametrize("words", [*SERVED[1:5], *WITH_WINDOW[:3]], ids=" ".join)
def test_a_made_model_with_windows(words: tuple[str, ...], embedded_server: str, made: str) -> None:
    hold(made, Path(embedded_server).parent, words)


@pytest.mark.fullengine
@pytest.mark.parametrize("words", SMOKED, ids=" ".join)
def test_a_made_model_with_windows_in_a_program_without_a_server(
    words: tuple[str, ...], full_engine: str, made: str
) -> None:
    hold(made, Path(full_engine), words)


@pytest.mark.llamacpp
@pytest.mark.parametrize("words", [*SERVED[1:5], *WITH_WINDOW], ids=" ".join)
def test_a_model_with_windows(words: tuple[str, ...], embedded_server: str, windowed_model: str) -> None:
    hold(windowed_model, Path(embedded_server).parent, words)


@pytest.mark.fullengine
@pytest.mark.parametrize("words", SMOKED, ids=" ".join)
def test_a_model_with_windows_in_a_program_without_a_server(
    words: tuple[str, ...], full_engine: str, windowed_model: str
) -> None:
    hold(windowed_model, Path(full_engine), words)
