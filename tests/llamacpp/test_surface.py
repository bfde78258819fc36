"""Endpoints of real engines that only some models have: filling in the middle of a text, adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import command
from tests.fakes.tiny_model import write_tiny_model
from tests.llamacpp.test_server_probes import serving

pytestmark = [pytest.mark.llamacpp, pytest.mark.timeout(120)]
FLAGS = ("-c", "512", "-np", "1", "-t", "1", "--offline")


@pytest.mark.parametrize("build", ["engine", "engine-b10068"])
def test_a_model_that_fills_in_the_middle_has_infill(
    fetched: Callable[[str], str], build: str, tmp_path: Path
) -> None:
    model = write_tiny_model(tmp_path / "fills.gguf", fills_in=True)
    with serving(fetched(build), "-m", str(model), *FLAGS) as (_process, port):
        words = ["verify", f"http://127.0.0.1:{port}", "--only", "surface"]
        ran = command.run_json(words, tmp_path / "records")
    assert ran.status == 0, ran.open_findings()
    rows = {row["request"]: row["meaning"] for row in ran.record["facts"]["surface"]["rows"]["value"]}
    assert rows["POST /infill"] == "works"
    assert rows["GET /lora-adapters"] == "works"
    assert rows["POST /v1/messages/count_tokens"] == "works"
    assert rows["POST /detokenize"] == "works"
    assert "broken" not in rows.values()
