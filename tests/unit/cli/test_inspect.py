"""`llamaops inspect` with each of its options: what is asked, what is refused before a record is begun."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from llamaops.cli.app import main
from tests.fakes import gguf_files as g
from tests.unit.checks.test_identity import LORA, VISION


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLAMAOPS_RECORDS", str(tmp_path / "records"))
    monkeypatch.setenv("LLAMAOPS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "models" / "tiny.gguf"
    path.parent.mkdir()
    path.write_bytes(g.FakeGguf().to_bytes())
    return path


def inspect(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any], dict[str, str]]:
    capsys.readouterr()
    status = main(["inspect", *(str(word) for word in words), "--format", "json"])
    record = json.loads(capsys.readouterr().out)["record"]
    return status, record, {one["check"]: one["status"] for one in record["findings"]}


def test_plain(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record, found = inspect(capsys, model)
    assert status == 0
    assert record["facts"]["identity"]["role"]["value"] == "text"
    assert found["model.use-fits-the-run"] == "passed"
    optional = {"templates", "digests", "tensor_values", "companions", "build_names"}
    assert not {name for name in optional if record["facts"].get(name)}
    assert any("tensor data" in gap["detail"] for gap in record["gaps"])


def test_full_is_template_and_digests(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record, found = inspect(capsys, model, "--full")
    assert status == 0
    assert record["facts"]["templates"]["templates"]["value"][0]["compiles"]["value"] is True
    (file,) = record["facts"]["digests"]["files"]
    assert file["sha256"]["value"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert (found["model.template-compiles"], found["model.digest-is-known"]) == ("passed", "passed")


def test_an_expected_digest_decides(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert inspect(capsys, model, "--expect-sha256", f"sha256:{digest.upper()}")[0] == 0
    assert inspect(capsys, model, "--expect-sha256", "ab" * 32)[0] == 3


def test_a_template_that_means_harm_fails(
    model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jinja"
    bad.write_text("{{ ''.__class__.__mro__ }}")
    status, _record, found = inspect(capsys, model, "--chat-template-file", bad)
    assert status == 3
    assert found["model.template-is-harmless"] == "failed"


def test_deep_reads_every_value(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record, found = inspect(capsys, model, "--deep")
    assert status == 0
    assert record["facts"]["tensor_values"]["tensors_read"] == 3
    assert found["model.tensor-values-are-finite"] == "passed"
    assert not any("its values are not read" in gap["detail"] for gap in record["gaps"])


def test_companions_named_and_beside(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    projector = model.with_name("mmproj-tiny.gguf")
    projector.write_bytes(VISION.to_bytes())
    adapter = model.with_name("extra.gguf")
    adapter.write_bytes(LORA.to_bytes())
    status, _record, found = inspect(capsys, model, "--lora", adapter)
    assert status == 0
    assert found["model.companions-fit"] == "passed"
    assert found["model.companions-beside-fit"] == "passed"
    assert inspect(capsys, model, "--draft", projector)[0] == 3


def test_a_longer_context_is_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _record, found = inspect(capsys, model, "--ctx-size", "100000")
    assert status == 0
    assert found["model.context-is-as-trained"] == "failed"


def test_a_program_whose_texts_cannot_be_read_is_unknown(
    model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for words in (["--binary", program], ["--bin-dir", tmp_path]):
        status, record, found = inspect(capsys, model, *words)
        assert status == 4
        assert found["binary.knows-the-model"] == "unknown"
        # Nothing was run, so nothing is said about a program that runs.
        assert next(one for one in record["boundaries"] if one["name"] == "binary")["state"] == "not_tested"


@pytest.mark.parametrize(
    "words",
    [
        ["--expect-sha256", "abc"],
        ["--binary", "/nothing/there"],
        ["--bin-dir", "/nothing/there"],
        ["--ctx-size", "8k"],
    ],
)
def test_what_is_refused_leaves_no_record(model: Path, tmp_path: Path, words: list[str]) -> None:
    assert main(["inspect", str(model), *words]) == 2
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["hf:nonsense"],
        ["https://user:word@host/x.gguf"],
        ["http://[x/y.gguf"],
        ["https://host/x.gguf", "--deep"],
    ],
)
def test_addresses_that_are_refused(model: Path, tmp_path: Path, words: list[str]) -> None:
    assert main(["inspect", *words]) == 2
    assert not (tmp_path / "records").exists()


def test_without_the_gguf_package_deep_is_refused_in_one_line(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "gguf" else find(name, *more)
    )
    assert main(["inspect", str(model), "--deep"]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install 'llamaops[deep]'")
