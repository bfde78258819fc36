"""The fact group of the model file: right files, wrong files, split models."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llamaops.facts.gguf_file import GgufFacts, collect_gguf, read_chat_template
from llamaops.facts.gguf_shapes import RopeScaling
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeOpenFile, FakeSystem

PATH = "/models/tiny.gguf"


def facts_of(file: g.FakeGguf | bytes, path: str = PATH, companions: tuple[str, ...] = ()) -> GgufFacts:
    data = file if isinstance(file, bytes) else file.to_bytes()
    return collect_gguf(FakeSystem(files={path: data, **dict.fromkeys(companions, b"")}), path)


def slugs(facts: GgufFacts) -> list[str]:
    return [problem.slug for problem in facts.problems.need()]


def sentence(facts: GgufFacts, slug: str) -> str:
    return next(problem.sentence for problem in facts.problems.need() if problem.slug == slug)


def why(fact: Known[Any] | Unknown) -> str:
    assert isinstance(fact, Unknown)
    return fact.why


def test_a_small_model() -> None:
    facts = facts_of(g.FakeGguf())
    assert facts.problems.need() == ()
    assert facts.path_state.need() == "regular"
    assert facts.file_kind.need() == "model"
    assert facts.header_read.need() is True
    assert (facts.architecture.need(), facts.name.need(), facts.version.need()) == ("llama", "Tiny Test", 3)
    assert facts.parameter_count.need() == 32 * 8 + 32 * 32 + 32
    assert facts.tensor_bytes.need() == 272 + 576 + 128
    assert facts.bits_per_weight.need() == pytest.approx(976 * 8 / 1312)
    assert facts.file_bytes.need() == facts.expected_bytes.need()
    assert [(one.type, one.tensors, one.bytes) for one in facts.tensor_types.need()] == [
        ("Q4_0", 1, 576),
        ("Q8_0", 1, 272),
        ("F32", 1, 128),
    ]
    assert sum(one.share or 0 for one in facts.tensor_types.need()) == pytest.approx(1)
    assert facts.declared_file_type.need() == "F32"
    assert facts.context_length_tokens.need() == 128
    assert (facts.embedding_length.need(), facts.block_count.need()) == (32, 1)
    assert (facts.head_count.need(), facts.head_count_kv.need()) == (4, 2)
    assert (facts.key_length.need(), facts.value_length.need()) == (8, 8)
    assert facts.feed_forward_length.need() == 64
    assert facts.rope_freq_base.need() == 10000.0
    assert facts.vocabulary_size.need() == len(g.TOKENS)
    assert (facts.tokenizer_model.need(), facts.pre_tokenizer.need()) == ("llama", "default")
    assert [(one.role, one.id, one.text) for one in facts.special_tokens.need()] == [
        ("bos", 1, "<s>"),
        ("eos", 2, "</s>"),
    ]
    assert facts.add_bos_token.need() is True
    assert facts.chat_template.need().bytes == len(g.TEMPLATE)
    assert [part.path for part in facts.shards.need()] == [PATH]
    assert facts.engine_path.need() == PATH


def test_what_the_header_lacks_is_absent() -> None:
    facts = facts_of(g.FakeGguf())
    for fact in (facts.expert_count, facts.rope_scaling, facts.sliding_window_tokens, facts.add_eos_token):
        assert why(fact) == "absent"
    assert why(facts.chat_templates) == "absent"


def test_every_fact_is_known_or_says_why_and_survives_json() -> None:
    for data in (g.FakeGguf().to_bytes(), b"<html>", b"", g.FakeGguf().to_bytes()[:500]):
        facts = facts_of(data)
        for name in GgufFacts.__struct_fields__:
            fact = getattr(facts, name)
            assert isinstance(fact, Known) or fact.detail.startswith(PATH), name
        assert msgspec.json.decode(msgspec.json.encode(facts), type=GgufFacts) == facts


def test_values_per_layer_experts_rope_and_windows() -> None:
    file = (
        g.FakeGguf()
        .with_key("llama.attention.head_count_kv", g.Array(g.U32, [0, 2, 2]))
        .with_key("llama.feed_forward_length", g.Array(g.I32, [64, 128, 64]))
        .with_key("llama.attention.key_length", (g.U32, 16))
        .with_key("llama.expert_count", (g.U32, 8))
        .with_key("llama.expert_used_count", (g.U32, 2))
        .with_key("llama.attention.sliding_window", (g.U32, 64))
        .with_key("llama.rope.scaling.type", "yarn")
        .with_key("llama.rope.scaling.factor", (g.F32, 4.0))
        .with_key("llama.rope.scaling.original_context_length", (g.U32, 32))
    )
    facts = facts_of(file)
    assert facts.head_count_kv.need() == (0, 2, 2)
    assert facts.feed_forward_length.need() == (64, 128, 64)
    assert (facts.key_length.need(), facts.value_length.need()) == (16, 8)
    assert (facts.expert_count.need(), facts.expert_used_count.need()) == (8, 2)
    assert facts.sliding_window_tokens.need() == 64
    assert facts.rope_scaling.need() == RopeScaling(type="yarn", factor=4.0, original_context_tokens=32)


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("llama.context_length", "8192", "context_length_tokens"),
        ("llama.context_length", (g.U64, 2**64 - 1), "context_length_tokens"),
        ("llama.context_length", (g.I32, -1), "context_length_tokens"),
        ("llama.rope.freq_base", (g.F32, float("nan")), "rope_freq_base"),
        ("llama.rope.freq_base", (g.F32, float("inf")), "rope_freq_base"),
        ("llama.attention.head_count_kv", g.Array(g.STRING, ["2"]), "head_count_kv"),
        ("general.architecture", (g.U32, 1), "architecture"),
        ("tokenizer.ggml.add_bos_token", (g.U32, 1), "add_bos_token"),
    ],
)
def test_a_value_of_another_type_is_not_guessed(key: str, value: object, field: str) -> None:
    facts = facts_of(g.FakeGguf().with_key(key, value))
    assert why(getattr(facts, field)) == "unparsed"
    msgspec.json.encode(facts)


def test_templates_are_recorded_by_digest_only() -> None:
    file = g.FakeGguf().with_key("tokenizer.chat_template.tool_use", "{{ tools }}")
    facts = facts_of(file)
    assert [one.name for one in facts.chat_templates.need()] == ["tool_use"]
    assert b"for message" not in msgspec.json.encode(facts)
    assert read_chat_template(FakeSystem(files={PATH: file.to_bytes()}), PATH) == g.TEMPLATE
    assert read_chat_template(FakeSystem(files={PATH: b"text"}), PATH) is None


def test_metadata_is_cut_and_lists_arrays_by_their_length() -> None:
    facts = facts_of(g.FakeGguf().with_key("general.description", "d" * 5000))
    metadata = {one.key: one for one in facts.metadata.need()}
    assert metadata["general.description"].value == "d" * 200
    assert metadata["tokenizer.ggml.tokens"].value == f"{len(g.TOKENS)} elements"
    assert metadata["tokenizer.ggml.tokens"].type == "array of string"
    assert "tokenizer.chat_template" not in metadata


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (g.FakeGguf().with_key("general.type", "adapter"), "adapter"),
        (g.FakeGguf().without_key("general.type").with_key("adapter.type", "lora"), "adapter"),
        (g.FakeGguf().with_key("general.architecture", "controlvector"), "adapter"),
        (g.FakeGguf().with_key("general.type", "mmproj"), "projector"),
        (g.FakeGguf().without_key("general.type").with_key("general.architecture", "clip"), "projector"),
        (g.FakeGguf().with_key("general.type", "imatrix"), "imatrix"),
        (replace(g.FakeGguf(), tensors=[]), "vocabulary"),
        (replace(g.FakeGguf(), keys=[], tensors=[]), "gguf"),
        (g.FakeGguf().without_key("general.type"), "model"),
    ],
)
def test_kinds(file: g.FakeGguf, kind: str) -> None:
    assert facts_of(file).file_kind.need() == kind


def test_a_special_token_outside_the_vocabulary() -> None:
    facts = facts_of(g.FakeGguf().with_key("tokenizer.ggml.eos_token_id", (g.U32, 5000)))
    assert slugs(facts) == ["special-token-impossible"]
    assert {one.role: one.text for one in facts.special_tokens.need()}["eos"] is None


def test_a_file_cut_in_its_data_names_the_first_tensor() -> None:
    data = g.FakeGguf().to_bytes()
    facts = facts_of(data[:-150])
    assert slugs(facts) == ["data-truncated"]
    text = sentence(facts, "data-truncated")
    for part in (str(len(data) - 150), str(len(data)), "2 of 3", "'blk.0.attn_q.weight'"):
        assert part in text
    assert facts.expected_bytes.need() == len(data)
    assert facts.context_length_tokens.need() == 128


def test_a_file_cut_in_its_header_keeps_what_was_read() -> None:
    facts = facts_of(g.FakeGguf().to_bytes()[:200])
    assert slugs(facts) == ["header-truncated"]
    assert facts.header_read.need() is False
    assert facts.architecture.need() == "llama"
    assert why(facts.context_length_tokens) == "unparsed"
    assert why(facts.tensor_bytes) == "unparsed"
    assert facts.file_kind.need() == "gguf"


def test_an_unknown_type_gives_no_size() -> None:
    odd = g.FakeTensor("odd", (32,), 4711, data=bytes(64))
    facts = facts_of(replace(g.FakeGguf(), tensors=[odd]))
    assert why(facts.tensor_bytes) == "unsupported"
    assert why(facts.bits_per_weight) == "unsupported"
    assert facts.parameter_count.need() == 32
    assert [(one.type, one.bytes, one.share) for one in facts.tensor_types.need()] == [
        ("unknown type 4711", None, None)
    ]


def large(fill: bytes) -> g.FakeGguf:
    return replace(g.FakeGguf(), tensors=[g.FakeTensor("w", (256, 256), data=fill)])


def test_zeros_at_the_end_are_an_unfinished_download() -> None:
    full = bytes(range(256)) * 1024
    assert slugs(facts_of(large(full))) == []
    assert slugs(facts_of(large(full[:200_000] + bytes(len(full) - 200_000)))) == ["zeros-at-end"]
    assert slugs(facts_of(large(bytes(len(full))))) == ["data-all-zeros"]
    # A small zero bias at the end is not a hole.
    bias = [*large(full).tensors, g.FakeTensor("b", (128,), data=bytes(512))]
    assert slugs(facts_of(replace(g.FakeGguf(), tensors=bias))) == []


def test_bytes_after_the_last_tensor() -> None:
    assert slugs(facts_of(replace(g.FakeGguf(), tail=b"x" * 40))) == ["trailing-bytes"]


@pytest.mark.parametrize(
    ("data", "kind"), [(b"", "empty"), (b"<!doctype html>", "html"), (b"not found", "text"), (b"GGU", "text")]
)
def test_a_wrong_file_is_named(data: bytes, kind: str) -> None:
    facts = facts_of(data)
    assert facts.file_kind.need() == kind
    assert slugs(facts) == ["not-gguf"]
    assert facts.file_bytes.need() == len(data)
    assert why(facts.header_read) == "unsupported"
    assert why(facts.tensor_bytes) == "unsupported"


def test_a_partial_download_by_name_and_by_companion() -> None:
    assert "download-partial" in slugs(facts_of(g.FakeGguf(), path="/models/tiny.gguf.part"))
    facts = facts_of(g.FakeGguf(), companions=(f"{PATH}.aria2",))
    assert slugs(facts) == ["download-partial"]


def test_a_path_that_is_not_there_names_its_unfinished_download() -> None:
    facts = collect_gguf(FakeSystem(files={f"{PATH}.part": b"GGUF"}), PATH)
    assert facts.path_state.need() == "absent"
    assert "tiny.gguf.part" in sentence(facts, "path-absent")
    assert why(facts.file_kind) == "absent"


def test_a_folder_says_which_models_are_in_it() -> None:
    facts = collect_gguf(FakeSystem(files={PATH: b"x", "/models/readme.md": b"x"}), "/models")
    assert facts.path_state.need() == "directory"
    assert "tiny.gguf" in sentence(facts, "path-directory")


def test_no_permission() -> None:
    for system in (
        FakeSystem(files={PATH: b"GGUF"}, unreadable=[PATH]),
        FakeSystem(files={PATH: PermissionError(13, "Permission denied")}),
    ):
        facts = collect_gguf(system, PATH)
        assert facts.path_state.need() == "no_permission"
        assert why(facts.file_kind) == "refused"


def test_an_unreadable_disk() -> None:
    class BadDisk(FakeSystem):
        def open_regular(self, path: str) -> FakeOpenFile:
            return replace(super().open_regular(path), failing_from=8)

    facts = collect_gguf(BadDisk(files={PATH: g.FakeGguf().to_bytes()}), PATH)
    assert slugs(facts) == ["not-readable"]
    assert why(facts.header_read) == "failed"
    assert "Input/output error" in sentence(facts, "not-readable")


def test_special_files_of_the_real_system(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.gguf")
    (tmp_path / "link.gguf").symlink_to(tmp_path / "gone.gguf")
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    (tmp_path / "real.gguf").write_bytes(g.FakeGguf().to_bytes())
    (tmp_path / "good.gguf").symlink_to(tmp_path / "real.gguf")
    expected = {
        "fifo.gguf": "fifo",
        "link.gguf": "broken_symlink",
        "loop.gguf": "broken_symlink",
        "real.gguf": "regular",
        "good.gguf": "regular",
        "": "directory",
        "nowhere.gguf": "absent",
        "real.gguf/inside": "absent",
        "socket.gguf": "socket",
        "nul\0.gguf": "absent",
    }
    system = Machine()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.gguf"))
        found = {name: collect_gguf(system, os.path.join(tmp_path, name)) for name in expected}
    assert {name: facts.path_state.need() for name, facts in found.items()} == expected
    assert collect_gguf(system, "/dev/null").path_state.need() == "character_device"
    assert str(tmp_path / "gone.gguf") in sentence(found["link.gguf"], "path-broken-symlink")
    assert found["good.gguf"].file_kind.need() == "model"


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in zip(g.shard_names("m"), g.shards(), strict=True):
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    facts = collect_gguf(Machine(), "m-00002-of-00003.gguf")
    assert facts.problems.need() == ()
    assert facts.engine_path.need() == "m-00001-of-00003.gguf"


# Split models ------------------------------------------------------------------------------------------


def split(*, without: int | None = None, changed: dict[int, bytes] | None = None) -> dict[str, bytes]:
    files = dict(zip(g.shard_names("/models/m"), g.shards(), strict=True))
    for number, data in (changed or {}).items():
        files[g.shard_names("/models/m")[number - 1]] = data
    return {name: data for name, data in files.items() if without is None or f"-{without:05d}-of" not in name}


def split_facts(named: int = 1, **how: object) -> GgufFacts:
    files = split(**how)  # type: ignore[arg-type]  # the arguments of split
    return collect_gguf(FakeSystem(files=files), g.shard_names("/models/m")[named - 1])


@pytest.mark.parametrize("named", [1, 2, 3])
def test_any_part_may_be_named_first(named: int) -> None:
    facts = split_facts(named)
    whole = facts_of(g.FakeGguf())
    assert facts.problems.need() == ()
    assert facts.file_kind.need() == "model"
    for name in ("tensor_bytes", "parameter_count", "tensor_count", "architecture", "vocabulary_size"):
        assert getattr(facts, name).need() == getattr(whole, name).need()
    assert [part.number for part in facts.shards.need()] == [1, 2, 3]
    assert facts.engine_path.need() == "/models/m-00001-of-00003.gguf"
    assert facts.file_bytes.need() == sum(len(data) for data in split().values())
    assert {one.id: one.text for one in facts.special_tokens.need()} == {1: "<s>", 2: "</s>"}


@pytest.mark.parametrize(("missing", "named"), [(2, 1), (1, 2), (3, 2), (1, 3)])
def test_a_missing_part_is_named(missing: int, named: int) -> None:
    facts = split_facts(named, without=missing)
    assert slugs(facts) == ["shard-missing"]
    assert f"m-{missing:05d}-of-00003.gguf" in sentence(facts, "shard-missing")
    assert why(facts.tensor_bytes) == "absent"
    assert isinstance(facts.architecture, Unknown) == (missing == 1)


def test_each_part_has_to_be_long_enough() -> None:
    facts = split_facts(1, changed={2: g.shards()[1][:-10]})
    assert slugs(facts) == ["data-truncated"]
    assert facts.problems.need()[0].place == "/models/m-00002-of-00003.gguf"


def test_parts_that_do_not_belong_together() -> None:
    other = g.shards(replace(g.FakeGguf(), tensors=[g.FakeTensor(f"o{n}") for n in range(3)]))
    assert "shards-disagree" in slugs(split_facts(1, changed={2: g.shards()[0]}))
    assert "shards-disagree" in slugs(split_facts(1, changed={2: g.shards()[2]}))
    four = g.shards(count=4)
    assert "shards-disagree" in slugs(split_facts(1, changed={3: four[2]}))
    # Swapped in from another model: same numbers and counts, nothing to tell by but names.
    assert slugs(split_facts(1, changed={2: other[1]})) == []


def test_another_architecture_in_a_part() -> None:
    keys = [("general.architecture", "qwen2"), *g.split_keys(1, 3, 3)]
    part = replace(g.FakeGguf(), keys=keys, tensors=g.model_tensors()[1:2])
    facts = split_facts(1, changed={2: part.to_bytes()})
    assert slugs(facts) == ["shards-disagree"]
    assert "qwen2" in sentence(facts, "shards-disagree")
    assert facts.architecture.need() == "llama"


def test_the_total_of_tensors() -> None:
    part = replace(g.FakeGguf(), keys=g.split_keys(1, 3, 3), tensors=[])
    facts = split_facts(1, changed={2: part.to_bytes()})
    assert "3 tensors, the parts have 2" in sentence(facts, "shards-disagree")


def test_a_part_that_is_something_else() -> None:
    facts = split_facts(1, changed={3: b"<html>"})
    assert slugs(facts) == ["shard-unreadable"]
    assert "HTML" in sentence(facts, "shard-unreadable")
    assert why(facts.tensor_bytes) == "unparsed"
    assert facts.architecture.need() == "llama"


def test_a_renamed_part_and_parts_joined_byte_by_byte() -> None:
    first = g.shards()[0]
    facts = facts_of(first)
    assert slugs(facts) == ["shard-renamed"]
    assert "-00001-of-00003.gguf" in sentence(facts, "shard-renamed")
    joined = b"".join(g.shards())
    assert "shards-joined" in slugs(facts_of(joined))


def test_a_whole_model_with_the_name_of_a_part() -> None:
    facts = facts_of(g.FakeGguf(), path="/models/m-00001-of-00002.gguf")
    assert slugs(facts) == ["shard-keys-absent"]


def test_more_parts_than_we_look_at() -> None:
    path = "/models/m-00002-of-99999.gguf"
    part = replace(g.FakeGguf(), keys=g.split_keys(1, 65535, 3))
    facts = collect_gguf(FakeSystem(files={path: part.to_bytes()}), path)
    assert "beyond-our-limits" in slugs(facts)
