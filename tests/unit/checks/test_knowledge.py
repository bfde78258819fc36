"""What the names in a build's files say: known, unknown, not readable, and kernels that are missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.build_names import (
    ANCHORS,
    CHUNK_BYTES,
    BuildNamesFacts,
    collect_build_names,
    find_names,
    type_text,
)
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.gguf_shapes import TensorType
from llamaops.facts.host import HostFacts, collect_host
from llamaops.schema.fact import Source, known
from llamaops.schema.finding import Finding
from tests.fakes.elf_files import make_elf
from tests.fakes.fact_groups import gguf_facts
from tests.fakes.hosts import bare_metal
from tests.fakes.system import FakeOpenFile, FakeSystem

PROGRAM = "/opt/llama/llama-server"
TEXTS = b"\0".join(name.encode() for names in ANCHORS.values() for name in names)
LIBLLAMA = b"\x7fELF\0" + TEXTS + b"\0llama\0smollm\0class_qwen2\0"
GGML = b"\x7fELF\0" + TEXTS + b"\0f32\0tq1_0\0tq2_0\0dequantize_row_q1_0\0"
CPU = b"\0".join(
    b"ggml_vec_dot_" + name
    for name in (b"q4_0_q8_0", b"q4_0_q8_0_generic", b"q2_0_q8_0", b"q4_K_q8_K", b"q4_K_q8_K_generic", b"f32")
)
VULKAN = b"\0".join(b"mul_mat_vec_" + name + b"_f32_f32" for name in (b"q4_0", b"q4_k"))
STATIC = make_elf(interpreter=None)


def judge(
    files: dict[str, str | bytes | OSError],
    *,
    architecture: str = "llama",
    pre: str = "smollm",
    types: tuple[str, ...] = ("Q4_0", "F32"),
) -> dict[str, Finding]:

    shares = tuple(TensorType(type=name, tensors=1, bytes=1, share=0.5) for name in types)
    (model,) = gguf_facts(
        architecture=architecture, tokenizer_model="gpt2", pre_tokenizer=pre, tensor_types=shares
    ).values()
    assert isinstance(model, GgufFacts)
    facts = collect_build_names(FakeSystem(files=files), PROGRAM, model)
    groups: dict[type, object] = {GgufFacts: model, BuildNamesFacts: facts}
    wanted = [check for check in all_checks(["knowledge"]) if HostFacts not in check.inputs().values()]
    found = (run_check(check, groups) for check in wanted)
    return {finding.check: finding for finding in found if finding is not None}


def build(**more: str | bytes | OSError) -> dict[str, str | bytes | OSError]:
    files: dict[str, str | bytes | OSError] = {
        PROGRAM: make_elf(needed=["libllama.so.0", "libggml-base.so.0"], runpath="$ORIGIN"),
        "/opt/llama/libllama.so.0": make_elf(soname="libllama.so.0") + LIBLLAMA,
        "/opt/llama/libggml-base.so.0": make_elf(soname="libggml-base.so.0") + GGML,
    }
    return files | {f"/opt/llama/{name.replace('_', '-')}.so": data for name, data in more.items()}


KNOWS, KERNELS = "binary.knows-the-model", "binary.has-kernels-for-the-types"


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ({}, "passed", "architecture llama"),
        ({"architecture": "brandnew"}, "failed", "architecture brandnew"),
        ({"architecture": "brandnew"}, "failed", "texts in /opt/llama/libllama.so.0"),
        ({"architecture": "qwen2"}, "passed", "only as the end of another text: qwen2"),
        ({"pre": "newest-bpe"}, "failed", "pre-tokenizer newest-bpe"),
        ({"pre": "default"}, "passed", "llama"),
        ({"types": ("MXFP4",)}, "failed", "tensor type mxfp4"),
        ({"types": ("Q1_0",)}, "passed", "q1_0"),
        ({"types": ("Q2_0",)}, "passed", "only as the end of another text: q2_0"),
        ({"architecture": "x" * 65}, "passed", "pre-tokenizer"),
    ],
)
def test_names_in_the_libraries(asked: dict[str, object], status: str, says: str) -> None:
    finding = judge(build(), **asked)[KNOWS]  # type: ignore[arg-type]  # each key is a parameter
    assert (finding.status, finding.severity, finding.boundary) == (status, "required", "model_file")
    assert says in finding.summary


def test_a_static_program_is_read_itself() -> None:
    texts = LIBLLAMA + GGML
    assert judge({PROGRAM: STATIC + texts})[KNOWS].status == "passed"
    assert judge({PROGRAM: STATIC + texts}, architecture="brandnew")[KNOWS].status == "failed"


def test_a_program_of_another_format_has_its_libraries_beside_it() -> None:
    files: dict[str, str | bytes | OSError] = {
        "/opt/homebrew/bin/llama-server": b"\xcf\xfa\xed\xfe" + bytes(100),
        "/opt/homebrew/lib/libllama.dylib": LIBLLAMA,
        "/opt/homebrew/lib/libggml-base.dylib": GGML,
    }
    (model,) = gguf_facts(architecture="brandnew", tensor_types=()).values()
    assert isinstance(model, GgufFacts)
    facts = collect_build_names(FakeSystem(files=files), "/opt/homebrew/bin/llama-server", model)
    assert [(one.name, one.found.need()) for one in facts.names] == [("brandnew", "absent")]


@pytest.mark.parametrize(
    "files",
    [
        {PROGRAM: "#!/bin/sh\nexec llama-server\n"},
        {PROGRAM: STATIC + b"packed" * 100},
        {PROGRAM: PermissionError(13, "Permission denied")},
        {},
    ],
)
def test_texts_that_cannot_be_read_are_no_evidence(files: dict[str, str | bytes | OSError]) -> None:
    assert judge(files, architecture="brandnew")[KNOWS].status == "unknown"


def test_a_name_across_two_chunks_is_found() -> None:
    for shift in range(-12, 3):
        data = b"x" * (CHUNK_BYTES + shift) + b"\0architec\0" + b"y" * 100
        assert find_names(FakeOpenFile(data), ["architec", "tec", "none"]) == {
            "architec": "whole",
            "tec": "ending",
            "none": "absent",
        }


def test_kernels_are_read_from_the_back_ends() -> None:
    backends = build(libggml_cpu=b"\0" + CPU + b"\0", libggml_vulkan=b"\0" + VULKAN + b"\0")
    assert judge(backends, types=("Q4_0", "Q4_K", "F32"))[KERNELS].status == "passed"
    finding = judge(backends, types=("Q2_0",))[KERNELS]
    assert (finding.status, finding.severity) == ("failed", "advisory")
    assert "vulkan has no kernel for q2_0" in finding.summary
    assert "cpu has portable, slow code only for q2_0" in finding.summary
    assert KERNELS not in judge(build())


def test_how_ggml_writes_a_type() -> None:
    assert [type_text(name) for name in ("Q4_K", "IQ2_XXS", "BF16")] == ["q4_K", "iq2_xxs", "bf16"]


@pytest.mark.parametrize(
    ("types", "flags", "missing", "status", "says"),
    [
        (("Q4_K",), ("avx2", "f16c"), ("avx512_bf16", "amx_bf16"), "passed", "q4_K"),
        (
            ("BF16",),
            ("avx2", "f16c"),
            ("avx512_bf16", "amx_bf16"),
            "failed",
            "bf16 without amx_bf16, avx512_bf16",
        ),
        (("BF16",), ("avx2", "avx512_bf16"), ("amx_bf16",), "passed", "bf16"),
        (("BF16",), ("asimd",), ("bf16",), "failed", "bf16 without bf16"),
        (("IQ2_XXS",), ("avx2",), (), "failed", "iq2_xxs is looked up in tables"),
        (("Q4_K", "MXFP4"), ("avx",), ("avx2",), "failed", "q4_K, mxfp4 without avx2"),
        (("F16",), ("avx2",), ("f16c",), "failed", "f16 without f16c"),
        (("F32",), (), ("avx2",), None, ""),
    ],
)
def test_types_and_the_processor(
    types: tuple[str, ...], flags: tuple[str, ...], missing: tuple[str, ...], status: str | None, says: str
) -> None:
    shares = tuple(TensorType(type=name, tensors=1, bytes=1, share=0.5) for name in types)
    (model,) = gguf_facts(tensor_types=shares).values()
    host = collect_host(bare_metal(), model_path=None)
    source = Source(kind="file", name="made for a test")
    cpu = replace(host.cpu, flags=known(flags, source), missing_flags=known(missing, source))
    groups: dict[type, object] = {GgufFacts: model, HostFacts: replace(host, cpu=cpu)}
    (check,) = [one for one in all_checks(["knowledge"]) if one.id == "model.types-suit-the-processor"]
    finding = run_check(check, groups)
    assert (finding and finding.status) == status
    assert finding is None or says in finding.summary


def test_a_build_older_than_pre_tokenizers_loads_the_model_and_cuts_text_in_its_own_way() -> None:
    texts = b"\0".join(name.encode() for name in ANCHORS["architecture"] + ANCHORS["tensor_type"])
    static = STATIC + b"\0" + texts + b"\0llama\0f32\0tokenizer.ggml.model\0falcon\0gpt-2\0"
    found = judge({PROGRAM: static})
    assert found["binary.knows-the-model"].status == "passed"
    cut = found["binary.cuts-text-as-the-model-wants"]
    assert (cut.status, cut.severity) == ("failed", "advisory")
    assert "older than pre-tokenizers" in cut.summary


def test_a_build_that_reads_pre_tokenizers_is_asked_for_the_name() -> None:
    texts = b"\0".join(name.encode() for names in ANCHORS.values() for name in names)
    static = STATIC + b"\0" + texts + b"\0llama\0f32\0tokenizer.ggml.model\0tokenizer.ggml.pre\0"
    found = judge({PROGRAM: static})
    assert found["binary.knows-the-model"].status == "failed"
    assert "pre-tokenizer smollm" in found["binary.knows-the-model"].summary
    assert "binary.cuts-text-as-the-model-wants" not in found


def test_texts_that_cannot_be_read_leave_the_pre_tokenizer_unknown() -> None:
    found = judge({PROGRAM: STATIC + b"\0nothing\0"})
    assert found["binary.knows-the-model"].status == "unknown"
    assert "binary.cuts-text-as-the-model-wants" not in found
