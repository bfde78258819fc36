"""Fetching from a hub: recorded first, refused without a decision, resumed, verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llamaops.cli.app import main
from tests.fakes import gguf_files as g
from tests.fakes.hub import COMMIT, REPOSITORY, FakeHub, serving

pytest.importorskip("huggingface_hub")
MODEL = g.FakeGguf().to_bytes()
BIG = g.FakeGguf(tensors=[g.FakeTensor("token_embd.weight", (32, 200_000), 0)]).to_bytes()
PLACE = f"hf:{REPOSITORY}/tiny.gguf@{COMMIT}"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub({"tiny.gguf": MODEL, "README.md": b"# Tiny"})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        monkeypatch.setenv("LLAMAOPS_RECORDS", str(tmp_path / "records"))
        monkeypatch.setenv("LLAMAOPS_CACHE", str(tmp_path / "cache"))
        yield served


def fetch(capsys: pytest.CaptureFixture[str], *more: str, place: str = PLACE) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["fetch", place, "--format", "json", "-q", *more])
    document = json.loads(capsys.readouterr().out)
    return status, document["record"]


def findings(record: dict[str, Any]) -> dict[str, str]:
    return {finding["check"]: finding["status"] for finding in record["findings"]}


def test_without_a_decision_nothing_is_downloaded(hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    status, record = fetch(capsys)
    assert status == 3
    assert findings(record)["hub.licence-is-decided"] == "failed"
    assert not [path for _method, path, _range in hub.asked if "/resolve/" in path]
    assert fetch(capsys, "--accept-licence", "mit")[0] == 3


def test_what_the_hub_says_is_recorded_before_the_download(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, record = fetch(capsys, "--accept-licence", "Apache-2.0", "--to", str(tmp_path / "models"))
    assert status == 0
    facts = record["facts"]["hub"]
    assert facts["commit"]["value"] == COMMIT
    assert facts["licence"]["value"] == "apache-2.0"
    assert facts["base_models"]["value"] == ["maker/tiny"]
    assert facts["relation"]["value"] == "quantized"
    assert facts["quantizer"]["value"] == "maker"
    assert facts["files"]["value"][0]["size_bytes"] == len(MODEL)
    assert facts["card_file"]["value"]["path"] == "README.md"
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == MODEL
    (folder,) = (tmp_path / "records").iterdir()
    journal = (folder / "journal.jsonl").read_text() if (folder / "journal.jsonl").exists() else ""
    lines = journal.splitlines() or [
        line for file in folder.iterdir() for line in file.read_text().splitlines()
    ]
    said = next(number for number, line in enumerate(lines) if "apache-2.0" in line and "base_model" in line)
    began = next(number for number, line in enumerate(lines) if '"download"' in line)
    assert said < began
    assert findings(record)["model.digest-is-as-expected"] == "passed"
    assert findings(record)["model.is-a-model"] == "passed"
    assert findings(record)["hub.revision-is-fixed"] == "passed"


def test_a_cut_download_goes_on_where_it_ended(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hub.files = {"tiny.gguf": BIG}
    hub.cut_after = 20_000_000
    arguments = ("--accept-licence", "apache-2.0", "--to", str(tmp_path / "models"))
    status, record = fetch(capsys, *arguments)
    if status != 0:  # the package may have gone on by itself
        assert findings(record)["hub.file-is-downloaded"] == "failed"
        assert record["strongest"] is None
        status, record = fetch(capsys, *arguments)
    assert status == 0
    assert any(asked for method, path, asked in hub.asked if method == "GET" and "/resolve/" in path)
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == BIG
    assert hub.sent_bytes < 2 * len(BIG)


def test_another_file_of_the_same_length_is_rejected(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hub.lie = MODEL[:-1] + bytes([MODEL[-1] ^ 1])
    status, record = fetch(capsys, "--accept-licence", "apache-2.0", "--to", str(tmp_path))
    assert status == 3
    assert findings(record)["model.digest-is-as-expected"] == "failed"
    assert not (tmp_path / "tiny.gguf").exists()
    assert (tmp_path / "tiny.gguf.rejected").exists()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (f"hf:{REPOSITORY}/other.gguf", "there are tiny.gguf"),
        ("hf:nobody/nothing/x.gguf", "RepositoryNotFoundError"),
        (f"hf:{REPOSITORY}/tiny.gguf@v9", "RevisionNotFoundError"),
    ],
)
def test_what_is_not_there_is_named(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], place: str, says: str
) -> None:
    status, record = fetch(capsys, "--accept-licence", "apache-2.0", place=place)
    assert status == 3
    assert says in next(one["summary"] for one in record["findings"] if one["check"] == "hub.file-is-there")


def test_all_parts_of_a_split_model_come(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = g.shard_names("m")
    hub.files = dict(zip(names, g.shards(), strict=True))
    status, record = fetch(
        capsys,
        "--accept-licence",
        "apache-2.0",
        "--to",
        str(tmp_path / "m"),
        place=f"hf:{REPOSITORY}/{names[1]}",
    )
    assert status == 0, record["findings"]
    assert all((tmp_path / "m" / name).exists() for name in names)


def test_a_card_without_a_licence_needs_a_word_too(hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.card = {}
    assert fetch(capsys)[0] == 3
    status, record = fetch(capsys, "--accept-licence", "none")
    assert status == 0
    assert findings(record)["hub.lineage-is-stated"] == "failed"


def test_a_token_goes_to_the_hub_and_into_no_record(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz0123456789")
    fetch(capsys, "--accept-licence", "apache-2.0")
    assert any(token and token.endswith("0123456789") for token in hub.tokens)
    written = "".join(path.read_text() for path in (tmp_path / "records").rglob("*") if path.is_file())
    assert "hf_abcdefghij" not in written


def test_inspect_reads_only_the_header(hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.files = {"tiny.gguf": BIG}
    capsys.readouterr()
    status = main(["inspect", PLACE, "--format", "json"])
    record = json.loads(capsys.readouterr().out)["record"]
    assert status == 0
    assert record["facts"]["model"]["architecture"]["value"] == "llama"
    assert hub.sent_bytes < len(BIG) // 8
    assert any("range requests" in gap["detail"] for gap in record["gaps"])
    assert main(["inspect", PLACE, "--sha256"]) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 401}, "(status 401); accept its terms on the hub and set HF_TOKEN"),
        ({"redirect_to": "file:///etc"}, "FileMetadataError; what answers there gives no commit"),
    ],
)
def test_what_the_hub_refuses_has_its_own_next_step(
    hub: FakeHub, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    for key, value in change.items():
        setattr(hub, key, value)
    status, record = fetch(capsys, "--accept-licence", "apache-2.0")
    assert status == 3
    finding = next(one for one in record["findings"] if one["check"] == "hub.file-is-downloaded")
    assert said in finding["summary"]
