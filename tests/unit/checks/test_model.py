"""Each check of the model file: passed, failed, and unknown where the evidence is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from llamaops.checks import model as checks
from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.gguf_file import GgufFacts, collect_gguf
from llamaops.schema.fact import Source, Unknown
from llamaops.schema.finding import Finding, Status
from tests.fakes import gguf_files as g
from tests.fakes.system import FakeSystem

PATH = "/models/tiny.gguf"
Files = dict[str, "str | bytes | OSError"]


@dataclass(frozen=True)
class Case:
    """A check, files, and what comes of it; `says` is in summary or remedy."""

    check: str
    status: Status | None
    files: Files
    says: str = ""
    path: str = PATH


def one(file: g.FakeGguf | bytes) -> Files:
    return {PATH: file if isinstance(file, bytes) else file.to_bytes()}


def parts(without: int | None = None) -> Files:
    named = enumerate(zip(g.shard_names("/models/m"), g.shards(), strict=True), 1)
    return {name: data for number, (name, data) in named if number != without}


FIRST, SECOND, _ = g.shard_names("/models/m")
WHOLE = g.FakeGguf()
DENIED: Files = {PATH: PermissionError(13, "Permission denied")}
BROKEN_DISK: Files = {PATH: OSError(5, "Input/output error")}
UNKNOWN_TYPE = replace(WHOLE, tensors=[g.FakeTensor("t", (32,), 4711, data=bytes(64))])
OVERLAPPING = replace(WHOLE, tensors=[g.FakeTensor("a"), g.FakeTensor("b", offset=0)])
GAPPED = replace(WHOLE, tensors=[g.FakeTensor("a"), g.FakeTensor("b", offset=1024)])
MANY_KEYS = replace(WHOLE, keys=[(f"{number}" + "k" * 60_000, True) for number in range(200)])

CASES = [
    Case("model.file-is-readable", "passed", one(WHOLE)),
    Case("model.file-is-readable", "passed", one(b"<html>")),
    Case("model.file-is-readable", "failed", {}, "no such file"),
    Case("model.file-is-readable", "failed", DENIED, "read permission"),
    Case("model.file-is-readable", "failed", one(WHOLE), "tiny.gguf", path="/models"),
    Case("model.file-is-readable", "unknown", BROKEN_DISK, "Input/output error"),
    Case("model.is-a-gguf-file", "passed", one(WHOLE)),
    Case("model.is-a-gguf-file", "failed", one(b"<!DOCTYPE html><title>x</title>"), "/resolve/"),
    Case("model.is-a-gguf-file", "failed", one(b"tjgg\x03\0\0\0"), "ggjt"),
    Case("model.is-a-gguf-file", "failed", one(b"\x1f\x8b\x08"), "unpack"),
    Case("model.is-a-gguf-file", "unknown", DENIED),
    Case("model.version-is-readable", "passed", one(replace(WHOLE, version=2)), "version 2"),
    Case("model.version-is-readable", "failed", one(replace(WHOLE, version=1)), "August 2023"),
    Case("model.version-is-readable", "failed", one(replace(WHOLE, version=99)), "upgrade"),
    Case("model.version-is-readable", "failed", one(replace(WHOLE, order=">")), "gguf-convert-endian"),
    Case("model.version-is-readable", "unknown", one(b"text")),
    Case("model.version-is-readable", "unknown", one(b"GGUF\3\0"), "version"),
    Case("model.header-is-whole", "passed", one(WHOLE)),
    Case("model.header-is-whole", "failed", one(WHOLE.to_bytes()[:300]), "download the file again"),
    Case("model.header-is-whole", "failed", one(replace(WHOLE, key_count=2**62)), "another source"),
    Case("model.header-is-whole", "unknown", one(replace(WHOLE, version=99)), "99"),
    Case("model.header-is-whole", "unknown", one(replace(WHOLE, order=">")), "big-endian"),
    Case("model.header-is-whole", "failed", one(OVERLAPPING), "overlaps the one before it"),
    Case("model.header-is-whole", "failed", one(GAPPED), "leaves a gap"),
    Case("model.header-is-whole", "unknown", one(b"text")),
    Case("model.header-is-whole", "unknown", one(MANY_KEYS), "bytes"),
    Case("model.types-are-known", "passed", one(WHOLE), "Q4_0, Q8_0, F32"),
    Case("model.types-are-known", "failed", one(UNKNOWN_TYPE), "unknown type 4711"),
    Case(
        "model.types-are-known", "failed", one(replace(WHOLE, tensors=[g.FakeTensor("t", (32,), 31)])), "Q4_0"
    ),
    Case("model.types-are-known", "unknown", one(WHOLE.to_bytes()[:300])),
    Case("model.tensor-data-is-whole", "passed", one(WHOLE)),
    Case("model.tensor-data-is-whole", "failed", one(WHOLE.to_bytes()[:-200]), "is there"),
    Case("model.tensor-data-is-whole", "unknown", one(WHOLE.to_bytes()[:300])),
    Case("model.tensor-data-is-whole", "unknown", one(UNKNOWN_TYPE), "known size"),
    Case("model.tensor-data-is-whole", "unknown", parts(without=2), "m-00002-of-00003.gguf", path=FIRST),
    Case("model.download-has-ended", "passed", one(WHOLE)),
    Case("model.download-has-ended", "failed", one(WHOLE) | {f"{PATH}.aria2": b""}, "aria2"),
    Case("model.download-has-ended", "unknown", DENIED),
    Case("model.shards-agree", None, one(WHOLE)),
    Case("model.shards-agree", "passed", parts(), "3 parts", path=FIRST),
    Case("model.shards-agree", "failed", parts(without=2), "m-00002-of-00003.gguf", path=FIRST),
    Case("model.shards-agree", "failed", one(b"".join(g.shards())), "llama-gguf-split --merge"),
    Case("model.shards-agree", "unknown", one(b"text")),
    Case("model.first-shard-is-named", None, one(WHOLE)),
    Case("model.first-shard-is-named", None, parts(), path=FIRST),
    Case("model.first-shard-is-named", "failed", parts(), FIRST, path=SECOND),
    Case("model.first-shard-is-named", None, one(b"text")),
    Case("model.first-shard-is-named", "unknown", DENIED),
    Case("model.is-a-model", "passed", one(WHOLE)),
    Case("model.is-a-model", "failed", one(WHOLE.with_key("general.type", "adapter")), "--lora"),
    Case("model.is-a-model", "failed", one(WHOLE.with_key("general.type", "adapter")), "is an adapter"),
    Case("model.is-a-model", "failed", one(WHOLE.with_key("general.architecture", "clip")), "--mmproj"),
    Case("model.is-a-model", "failed", one(replace(WHOLE, tensors=[])), "vocabulary"),
    Case("model.is-a-model", "failed", one(replace(WHOLE, keys=WHOLE.keys[:1], tensors=[])), "neither"),
    Case("model.is-a-model", "failed", one(WHOLE.without_key("general.architecture")), "no key general.arch"),
    Case("model.is-a-model", "failed", one(WHOLE.with_key("general.architecture", (g.U32, 5))), "type u32"),
    Case("model.is-a-model", "failed", one(WHOLE.with_key("general.architecture", "")), "is empty"),
    Case("model.is-a-model", "unknown", parts(without=1), "first part", path=SECOND),
    Case("model.is-a-model", "unknown", one(WHOLE.to_bytes()[:300])),
    Case("model.has-a-tokenizer", "passed", one(WHOLE), "llama"),
    Case("model.has-a-tokenizer", "failed", one(WHOLE.without_key("tokenizer.ggml.model")), "no tokenizer"),
    Case(
        "model.has-a-tokenizer",
        "failed",
        one(WHOLE.with_key("tokenizer.ggml.model", "gpt2").without_key("tokenizer.ggml.pre")),
        "no pre-tokenizer",
    ),
    Case("model.has-a-tokenizer", "unknown", one(WHOLE.with_key("tokenizer.ggml.model", True))),
    Case("model.has-a-chat-template", "passed", one(WHOLE), "bytes"),
    Case("model.has-a-chat-template", "failed", one(WHOLE.without_key("tokenizer.chat_template")), "ChatML"),
    Case("model.has-a-chat-template", None, one(WHOLE.with_key("general.type", "mmproj"))),
    Case("model.has-a-chat-template", "unknown", DENIED),
    Case("model.metadata-is-consistent", "passed", one(WHOLE)),
    Case(
        "model.metadata-is-consistent",
        "failed",
        one(WHOLE.with_key("llama.attention.head_count", (g.U32, 5))),
        "5 heads",
    ),
    Case(
        "model.metadata-is-consistent",
        "failed",
        one(WHOLE.with_key("llama.attention.head_count_kv", (g.U32, 3))),
        "3 heads",
    ),
    Case("model.metadata-is-consistent", "unknown", parts(without=2), path=FIRST),
]


def finding(case: Case) -> Finding | None:
    facts = collect_gguf(FakeSystem(files=case.files), case.path)
    check = next(check for check in all_checks(["model"]) if check.id == case.check)
    return run_check(check, {GgufFacts: facts})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.check} {case.status} {case.says}")
def test_cases(case: Case) -> None:
    found = finding(case)
    assert (None if found is None else found.status) == case.status
    if found is None:
        return
    assert case.says in f"{found.summary} {found.remedy}"
    assert found.boundary == "model_file"
    for text in (found.summary, found.expected, found.observed, found.remedy):
        assert text is None or ("\n" not in text and text)
    if found.status == "failed":
        assert found.expected
        assert found.observed
        assert found.remedy


def test_every_check_has_its_three_cases() -> None:
    for check in all_checks(["model"]):
        wanted = {"passed", "failed", "unknown"}
        if check.id == "model.first-shard-is-named":
            wanted = {"failed", "unknown"}  # it does not concern a model whose first part was named
        assert {case.status for case in CASES if case.check == check.id} >= wanted, check.id


def test_every_problem_belongs_to_one_check() -> None:
    groups = [
        checks.DATA_SLUGS, checks.SHARD_SLUGS, checks.TYPE_SLUGS, checks.VERSION_SLUGS,
        checks.ADVICE_SLUGS, checks.HEADER_SLUGS,
    ]  # fmt: skip
    assert len(frozenset().union(*groups)) == sum(map(len, groups))


def test_nothing_collected_is_not_run() -> None:
    found = [run_check(check, {}) for check in all_checks(["model"])]
    assert {one.status for one in found if one is not None} == {"not_run"}


def test_an_unknown_fact_never_passes() -> None:
    nothing = Unknown(
        why="not_attempted", detail="nobody looked", source=Source(kind="computed", name="test")
    )
    facts = GgufFacts(**dict.fromkeys(GgufFacts.__struct_fields__, nothing))
    found = [run_check(check, {GgufFacts: facts}) for check in all_checks(["model"])]
    assert {one.status if one else None for one in found} == {"unknown"}
