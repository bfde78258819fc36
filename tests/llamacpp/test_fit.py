"""What we say that a load takes against what the engine projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamaops.cli.app import main


@pytest.mark.llamacpp
@pytest.mark.parametrize(
    "words",
    [
        ("--ctx-size", "4096"),
        ("--ctx-size", "8192", "--parallel", "2", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0"),
        ("--ctx-size", "2048", "--flash-attn", "off", "--ubatch-size", "256"),
    ],
)
def test_the_engine_projects_the_same(
    words: tuple[str, ...], embedded_server: str, embedded_model: str, tmp_path: Path
) -> None:
    out = tmp_path / "records"
    bin_dir = str(Path(embedded_server).parent)
    status = main(
        ["fit", embedded_model, *words, "--ask-engine", "--bin-dir", bin_dir, "--records", str(out)]
    )
    assert status == 0
    (record,) = out.glob("**/*.json")
    text = json.loads(record.read_text(encoding="utf-8"))
    findings = {one["check"]: one["status"] for one in text["findings"]}
    assert findings["fit.engine-agrees"] == "passed"
