"""Whether a build knows a model, by the names in its files."""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.build_names import BuildName, BuildNamesFacts, type_text
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.gguf_shapes import TensorType
from llamaops.facts.host import HostFacts
from llamaops.schema.fact import Known, Unknown

WORDS = {"architecture": "architecture", "pre_tokenizer": "pre-tokenizer", "tensor_type": "tensor type"}
NO_KERNEL_NEEDED = frozenset({"f32", "f16", "i8", "i16", "i32", "i64", "f64", "q8_1", "q8_K"})
MULTIPLIED = 0.01
"""Share of the tensor bytes from which on a type matters for speed."""


@check(
    "binary.knows-the-model",
    title="The build knows the model's architecture, pre-tokenizer and tensor types",
    boundary="model_file",
    remedy="install a newer llama.cpp, or take a model that this build knows",
)
def knows_the_model(build: BuildNamesFacts) -> Verdict | NotApplicable:
    """Fail for a name of the model that is nowhere among the texts of the build's own files."""
    names = [one for one in build.names if not _older_than_the_kind(one)]
    if not names:
        return NotApplicable("the model's header names nothing that could be looked for")
    absent = [one for one in names if isinstance(one.found, Known) and one.found.value == "absent"]
    if not absent:
        for one in names:
            one.found.need()
    said = ", ".join(_shown(one) for one in absent or names)
    where = next((one.found.source.name for one in absent or names), "")
    if absent:
        return Verdict(
            holds=False,
            summary=f"the build does not name {said} ({where})",
            expected="every name of the model among the texts of the build",
            observed=f"absent: {said}",
        )
    doubtful = [one.name for one in names if one.found.need() == "ending"]
    note = f"; only as the end of another text: {', '.join(doubtful)}" if doubtful else ""
    return Verdict(
        holds=True,
        summary=f"the build names {said}{note} ({where}; names show what it knows, not that it works)",
        expected="every name of the model among the texts of the build",
        observed=said,
    )


def _older_than_the_kind(one: BuildName) -> bool:
    """Whether the build is older than such names: then it loads the model and does without."""
    return isinstance(one.found, Unknown) and one.found.why == "unsupported"


@check(
    "binary.cuts-text-as-the-model-wants",
    title="The build cuts text into tokens by the model's own rule",
    boundary="model_file",
    severity="advisory",
    remedy="install a newer llama.cpp: this one loads the model, and its answers may be worse for it",
)
def cuts_text_as_the_model_wants(build: BuildNamesFacts) -> Verdict | NotApplicable:
    """Tell of a build that is older than pre-tokenizers."""
    older = [one for one in build.names if _older_than_the_kind(one)]
    if not older:
        return NotApplicable("the build knows pre-tokenizers, or the model needs none")
    gap, names = older[0].found, ", ".join(_shown(one) for one in older)
    return Verdict(
        holds=False,
        summary=f"{names}: {gap.detail if isinstance(gap, Unknown) else ''}",
        expected="a build that knows pre-tokenizers",
        observed="none among the texts of the build",
    )


def _shown(one: BuildName) -> str:
    return f"{WORDS[one.kind]} {one.name}"


@check(
    "binary.has-kernels-for-the-types",
    title="Every back end has fast code for the types of the weights",
    boundary="model_file",
    severity="advisory",
    remedy="take another quantization, or expect these layers to be slow or to stay on the CPU",
)
def has_kernels_for_the_types(build: BuildNamesFacts, model: GgufFacts) -> Verdict | NotApplicable:
    """Tell of types that a back end has no kernel for, or portable code only."""
    if not build.kernels:
        return NotApplicable("no back end names its kernels")
    types = [type_text(one.type) for one in model.tensor_types.need() if _matters(one)]
    wrong = []
    for backend in build.kernels:
        lacking = [name for name in types if name.lower() not in {one.lower() for one in backend.types}]
        slow = [name for name in types if name in backend.generic]
        if lacking:
            wrong.append(f"{backend.backend} has no kernel for {', '.join(lacking)}")
        if slow:
            wrong.append(f"{backend.backend} has portable, slow code only for {', '.join(slow)}")
    shown = ", ".join(backend.backend for backend in build.kernels)
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) or f"{shown}: kernels for {', '.join(types) or 'every type'}",
        expected="a kernel for every type, by the names in the libraries",
        observed="; ".join(wrong) or "a kernel for each",
    )


TABLES = ("iq1_", "iq2_", "iq3_")
"""Types whose weights are looked up in tables: compact, and slow on a processor."""
NEEDS: tuple[tuple[tuple[str, ...], frozenset[str]], ...] = (
    (("bf16",), frozenset({"avx512_bf16", "amx_bf16", "bf16"})),
    (("f16",), frozenset({"f16c", "asimdhp"})),
    (("q", "iq", "tq", "mxfp4", "nvfp4"), frozenset({"avx2", "asimd", "neon", "v", "vsx", "vxe", "lasx"})),
)
"""Beginnings of types, and instruction sets of which one makes them fast."""


@check(
    "model.types-suit-the-processor",
    title="The processor has instructions for the types of the weights",
    boundary="model_file",
    severity="advisory",
    remedy="for layers on the processor take Q4_K_M, Q8_0 or Q4_0; layers on a device are not concerned",
)
def types_suit_the_processor(model: GgufFacts, host: HostFacts) -> Verdict | NotApplicable:
    """Tell of types that the processor computes with slowly: BF16, types looked up in tables, and others."""
    types = [type_text(one.type) for one in model.tensor_types.need() if _matters(one) or one.type == "F16"]
    if not types:
        return NotApplicable("no type of weights needs instructions of its own")
    present, missing = set(host.cpu.flags.need()), set(host.cpu.missing_flags.need())
    wrong = [f"{name} is looked up in tables" for name in types if name.startswith(TABLES)]
    for starts, fast in NEEDS:
        slow = [name for name in types if name.startswith(starts)]
        lacking = missing & fast
        if slow and lacking and not present & fast:
            wrong.append(f"{', '.join(slow)} without {', '.join(sorted(lacking))}")
    return Verdict(
        holds=not wrong,
        summary=f"slow on this processor: {'; '.join(wrong)}"
        if wrong
        else f"the processor has instructions for {', '.join(types)}",
        expected="instructions for every type",
        observed="; ".join(wrong) or "there",
    )


def _matters(one: TensorType) -> bool:
    return type_text(one.type) not in NO_KERNEL_NEEDED and (one.share is None or one.share >= MULTIPLIED)
