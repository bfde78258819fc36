"""`llamaops fit` from the command line to the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from llamaops.cli.app import main
from llamaops.system import guard
from tests.fakes import gguf_files as g


def whole_model() -> g.FakeGguf:
    shapes = {
        "token_embd.weight": (32, 8),
        "output_norm.weight": (32,),
        "blk.0.attn_norm.weight": (32,),
        "blk.0.attn_q.weight": (32, 32),
        "blk.0.attn_k.weight": (32, 16),
        "blk.0.attn_v.weight": (32, 16),
        "blk.0.attn_output.weight": (32, 32),
        "blk.0.ffn_norm.weight": (32,),
        "blk.0.ffn_up.weight": (32, 64),
        "blk.0.ffn_gate.weight": (32, 64),
        "blk.0.ffn_down.weight": (64, 32),
    }
    return g.FakeGguf(tensors=[g.FakeTensor(name, shape, 0) for name, shape in shapes.items()])


@pytest.fixture(autouse=True)
def _children_again() -> Iterator[None]:
    """Allow children again: a usage error stops the run, which in these tests is the whole process."""
    yield
    guard.begin_run()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLAMAOPS_RECORDS", str(tmp_path / "records"))
    monkeypatch.setenv("LLAMAOPS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tiny.gguf"
    path.write_bytes(whole_model().to_bytes())
    return path


def fit(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["fit", *(str(word) for word in words), "--format", "json"])
    return status, json.loads(capsys.readouterr().out)["record"]


def test_every_part_is_there_and_its_sum_is_judged(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record = fit(capsys, model, "--ctx-size", 128, "--parallel", 2)
    made = record["facts"]["fit"]
    parts = {part["name"]: part["high_bytes"] for part in made["parts"]}
    assert parts["KV cache"] == 2 * 256 * 2 * (16 + 16)  # slots, cells, bytes of F16, K and V
    assert parts["output"] == 4 * 2 * 8
    assert made["host_bytes"]["value"] == sum(parts.values())
    assert all(part["formula"] for part in made["parts"])
    findings = {finding["check"]: finding["status"] for finding in record["findings"]}
    assert findings["fit.memory-fits-host"] == "passed"
    assert "fit.engine-agrees" not in findings
    assert record["ended"].startswith("fits")
    assert status == 0


def test_layers_on_a_card_are_counted_there(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, record = fit(capsys, model, "--n-gpu-layers", "all")
    places = {(part["name"], part["place"]) for part in record["facts"]["fit"]["parts"]}
    assert ("KV cache", "device") in places
    assert ("weights", "host") in places


def projector(kind: str) -> g.FakeGguf:
    numbers = {
        "image_size": 56, "patch_size": 14, "embedding_length": 32, "feed_forward_length": 64,
        "block_count": 1, "attention.head_count": 4, "projection_dim": 32, "projector.scale_factor": 2,
    }  # fmt: skip
    keys: list[tuple[str, g.Value]] = [
        ("general.architecture", "clip"),
        ("clip.has_vision_encoder", True),
        ("clip.projector_type", kind),
        *((f"clip.vision.{name}", (g.U32, value)) for name, value in numbers.items()),
    ]
    square = {f"v.blk.0.attn_{part}.weight": (32, 32) for part in ("q", "k", "v", "out")}
    shapes: dict[str, tuple[int, ...]] = {
        "v.patch_embd.weight": (14, 14, 3, 32),
        "v.position_embd.weight": (32, 16),
        **square,
        **{f"v.blk.0.{name}.weight": (32,) for name in ("ln1", "ln2")},
        "v.blk.0.ffn_up.weight": (32, 64),
        "v.blk.0.ffn_down.weight": (64, 32),
        "mm.model.fc.weight": (128, 32),
    }
    return g.FakeGguf(keys=keys, tensors=[g.FakeTensor(name, shape, 0) for name, shape in shapes.items()])


def test_a_projector_has_weights_and_what_it_computes_with(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model.with_name("mmproj.gguf")
    path.write_bytes(projector("idefics3").to_bytes())
    status, record = fit(capsys, model, "--mmproj", path)
    made = record["facts"]["fit"]
    parts = {part["name"]: part["high_bytes"] for part in made["parts"]}
    assert parts["projector"] == 4 * (588 * 32 + 16 * 32 + 4 * 32 * 32 + 2 * 32 + 2 * 32 * 64 + 128 * 32)
    assert parts["projector compute"] > 4 * 3 * 56 * 56
    assert made["host_bytes"]["value"] == sum(parts.values())
    assert status == 0


def test_a_projector_of_a_type_that_is_not_described_makes_the_sum_unknown(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model.with_name("mmproj.gguf")
    path.write_bytes(projector("novel").to_bytes())
    made = fit(capsys, model, "--mmproj", path)[1]["facts"]["fit"]
    assert "value" not in made["host_bytes"]
    assert "projector" in made["unknown"][0]


def test_a_header_that_is_not_whole_gives_no_figure(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_bytes(model.read_bytes()[:300])
    status, record = fit(capsys, model)
    assert "fit" not in record["facts"]
    assert status != 0
    diagnosis = record["facts"]["diagnosis"]
    assert diagnosis["slug"] == "model-file-truncated"
    assert "model.header-is-whole" in diagnosis["primary"]["evidence"][0]["text"]


def test_what_fits_has_no_diagnosis(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, record = fit(capsys, model, "--ctx-size", 128)
    assert "diagnosis" not in record["facts"]


def test_what_does_not_fit_has_its_diagnosis(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, record = fit(capsys, model, "--ctx-size", 2_000_000_000, "--parallel", 64, "--no-kv-unified")
    assert record["facts"]["diagnosis"]["slug"] == "fit-exceeds-host-memory"
    assert status == 3


def test_wrong_numbers_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(model), "--n-cpu-moe", "8k"]) == 2
    assert main(["fit", str(model), "--cache-type-v", "q8_0", "--flash-attn", "off"]) == 2


def test_the_picture_is_an_image(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "memory.svg"
    fit(capsys, model, "--plot", picture)
    root = ET.fromstring(picture.read_text())  # our own file
    assert root.tag.endswith("svg")
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"weights", "compute", "KV cache"} <= set(texts)


def test_a_picture_overwrites_no_model_and_tells_no_secret(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "memory.svg"
    before = model.read_bytes()
    for name in (model, "", tmp_path / "memory.png"):
        assert main(["fit", str(model), "--plot", str(name)]) == 2
    assert model.read_bytes() == before
    picture.symlink_to(model)
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
    model.write_bytes(whole_model().with_key("general.name", f"A {token}").to_bytes())
    before = model.read_bytes()
    assert fit(capsys, model, "--plot", picture)[0] == 0
    assert model.read_bytes() == before
    assert token not in picture.read_text()
    assert main(["fit", str(model), "--plot", str(tmp_path / "absent" / "memory.svg"), "-q"]) == 2


def test_no_picture_is_drawn_of_nothing(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "memory.svg"
    model.write_bytes(whole_model().with_key("llama.block_count", (g.U32, 0)).to_bytes())
    status, record = fit(capsys, model, "--plot", picture)
    assert (status, picture.exists()) == (4, False)
    assert "no picture was drawn: the header's block_count" in record["ended"]
    model.write_bytes(model.read_bytes()[:300])
    assert fit(capsys, model, "--plot", picture)[0] == 3
    assert not picture.exists()


def test_asking_an_engine_that_is_not_there_is_a_usage_error(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["fit", str(model), "--ask-engine", "-q"]) == 2


def test_names_that_are_no_utf8_cost_no_record(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python keeps such bytes as half surrogates, which no JSON can hold."""
    other = model.with_name("\udcff.gguf")
    other.write_bytes(model.read_bytes())
    status, record = fit(capsys, other)
    assert status == 0
    assert record["facts"]["fit"]["model_path"].endswith("\\xff.gguf")
    for words in (["--records", f"{model.parent}/\udcfe"], ["--ctx-size", "\udcfe", "--format", "json"]):
        assert main(["fit", str(other), *words]) == (2 if "--format" in words else 0)
    status, record = fit(capsys, model.parent)
    assert status == 3
    assert "\\xff.gguf" in json.dumps(record["findings"]).replace("\\\\", "\\")


def test_a_file_name_is_no_line_of_a_log(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model.parent / "folder"
    folder.mkdir()
    (
        folder / "x\nfailed fit.memory-fits-host: needs at least 1 MiB of host memory, 0 MiB are free.gguf"
    ).touch()
    status, record = fit(capsys, folder)
    assert status == 3
    found = record["facts"]["diagnosis"]
    assert found["slug"] == "model-path-unreadable"
    assert not found["contributing"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("llama.block_count", (g.U32, 2**32 - 1)),
        ("llama.context_length", (g.F32, float("nan"))),
        ("llama.embedding_length", (g.F64, float("inf"))),
        ("llama.attention.head_count", (g.U32, 0)),
        ("llama.attention.head_count_kv", g.Array(g.STRING, ["a"])),
        ("general.architecture", "zork"),
    ],
)
def test_what_a_header_cannot_mean_is_unknown_at_once(
    model: Path, capsys: pytest.CaptureFixture[str], key: str, value: object
) -> None:
    model.write_bytes(whole_model().with_key(key, value).to_bytes())
    status, record = fit(capsys, model)
    assert status == 4
    assert record["facts"]["fit"]["host_bytes"]["state"] == "unknown"


def test_an_architecture_without_an_entry_is_unknown_by_name(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [(key.replace("llama.", "zork."), value) for key, value in whole_model().keys]
    model.write_bytes(
        g.FakeGguf(keys=keys, tensors=whole_model().tensors)
        .with_key("general.architecture", "zork")
        .to_bytes()
    )
    status, record = fit(capsys, model)
    assert status == 4
    assert record["facts"]["fit"]["naive_bytes"] > 0
    assert record["facts"]["fit"]["host_low_bytes"] > 0
    finding = next(one for one in record["findings"] if one["check"] == "fit.memory-fits-host")
    assert (finding["status"], "'zork' has no entry" in finding["summary"]) == ("unknown", True)


@pytest.mark.parametrize(
    "words", [["hf:a/b/c.gguf"], ["https://host/c.gguf"], ["MODEL", "--mmproj", "MODEL"]]
)
def test_what_cannot_be_meant_is_refused_with_the_next_step(
    model: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    given = [str(model) if word == "MODEL" else word for word in words]
    assert main(["fit", *given, "-q"]) == 2
    error = capsys.readouterr().err
    assert "; download it first" in error or "no projector but model; take the mmproj file" in error


def test_a_cache_type_whose_blocks_do_not_divide_a_head_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine ends at it after the whole load; the largest cache type that fits is none of them either."""
    heads = {f"llama.attention.{name}_length": (g.U32, 20) for name in ("key", "value")}
    made = whole_model()
    for key, value in heads.items():
        made = made.with_key(key, value)
    model.write_bytes(made.to_bytes())
    for flag in ("--cache-type-k", "--cache-type-v"):
        assert main(["fit", str(model), flag, "q8_0", "-q"]) == 2
        assert "q8_0 has blocks of 32, and a head is 20 wide" in capsys.readouterr().err
    assert fit(capsys, model, "--cache-type-k", "q8_0", "--flash-attn", "off")[0] == 0


def test_what_fits_nowhere_is_said_in_words(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from llamaops.operations import fit as operation

    monkeypatch.setattr(operation, "largest_room", lambda *_: (None, None, None))
    assert main(["fit", str(model), "-q"]) == 0
    assert "nothing: no context, no slot and no cache type fits" in capsys.readouterr().out
