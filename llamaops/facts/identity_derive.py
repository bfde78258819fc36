"""Derive what a model file is for from its keys and its table of tensors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llamaops.facts import quantization_names as names
from llamaops.facts.ggml_types import type_name
from llamaops.facts.gguf_derive import Reading
from llamaops.facts.gguf_header import Header, Tensor
from llamaops.facts.gguf_walk import Array, Text
from llamaops.facts.hub_place import hub_place
from llamaops.facts.model_identity import (
    Adapter,
    BaseModel,
    IdentityFacts,
    Pooling,
    Projector,
    Provenance,
    Quantization,
    Role,
    TokenKind,
    TypeShare,
    Vocabulary,
)
from llamaops.schema.fact import Fact, Known, Source, Unknown, known

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import System

POOLINGS: tuple[Pooling, ...] = ("none", "mean", "cls", "last", "rank")
ENCODERS = frozenset(
    {
        "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3",
        "eurobert", "gemma-embedding", "llama-embed", "t5encoder",
    }
)  # fmt: skip
DRAFTS = frozenset({"eagle3", "dflash", "gemma4-assistant"})
DIFFUSION = frozenset({"dream", "llada", "llada-moe", "rnd1"})
SPEECH = frozenset({"wavtokenizer-dec", "qwen3tts", "pockettts"})
HEADS = ("cls.output.weight", "cls.weight", "score.weight")
MOST_LISTED = 32
_SIMPLE: dict[str, Role] = {"projector": "projector", "vocabulary": "vocabulary", "imatrix": "imatrix"}


def identity_of(system: System, probe: Probe) -> IdentityFacts:
    """Return what a file is for, what it is made of and where it says that it comes from."""
    reading = Reading(probe)
    hub = hub_place(system, probe.path)
    if isinstance(reading.header, Unknown):
        fields: dict[str, Any] = dict.fromkeys(IdentityFacts.__struct_fields__, reading.header)
        return IdentityFacts(**fields | {"hub": hub})
    pooling = _pooling(reading)
    causal = reading.flag(reading.architecture_key("attention.causal"))
    outputs = _classifier_outputs(reading)
    return IdentityFacts(
        role=_role(reading, pooling, causal, outputs),
        pooling=pooling,
        causal=causal,
        classifier_outputs=outputs,
        draft_layers=reading.number(reading.architecture_key("nextn_predict_layers")),
        adapter=_adapter(reading),
        projector=_projector(reading),
        quantization=_quantization(reading),
        vocabulary=_vocabulary(reading),
        provenance=_provenance(reading),
        hub=hub,
    )


def all_tensors(probe: Probe) -> Iterable[Tensor]:
    """Yield the tensors of all parts."""
    for part in probe.parts:
        if part.header is not None:
            yield from part.header.tensors


def _text(header: Header, key: str) -> str | None:
    entry = header.entries.get(key)
    if entry is None or not isinstance(entry.value, Text) or not entry.value.text.strip():
        return None
    return entry.value.text[:200]


def _whole(header: Header, key: str) -> int | None:
    entry = header.entries.get(key)
    return entry.value if entry is not None and type(entry.value) is int else None


def _role(reading: Reading, pooling: Fact[Pooling], causal: Fact[bool], outputs: Fact[int]) -> Fact[Role]:
    kind = reading.probe.kind
    architecture = _text(reading.read, "general.architecture") or ""
    if kind == "adapter":
        role: Role = "control_vector" if architecture == "controlvector" else "lora_adapter"
        return known(role, reading.source)
    if kind in _SIMPLE:
        return known(_SIMPLE[kind], reading.source)
    if kind != "model":
        return reading.unknown("unparsed", "its header does not tell what the file is for")
    pool = pooling.value if isinstance(pooling, Known) else None
    if pool == "rank" or isinstance(outputs, Known):
        return known("reranker", reading.source)
    bidirectional = isinstance(causal, Known) and not causal.value
    special: tuple[tuple[frozenset[str], Role], ...] = (
        (DRAFTS, "draft"),
        (SPEECH, "speech"),
        (DIFFUSION, "diffusion"),
    )
    for architectures, special_role in special:
        if architecture in architectures:
            return known(special_role, reading.source)
    if architecture in ENCODERS or bidirectional or pool in {"mean", "cls", "last"}:
        return known("embedding", reading.source)
    return known("text", reading.source)


def _pooling(reading: Reading) -> Fact[Pooling]:
    key = reading.architecture_key("pooling_type")
    number = reading.number(key)
    if isinstance(number, Unknown):
        return number
    if number.value >= len(POOLINGS):
        return reading.unknown("unparsed", f"{key} is {number.value}, a pooling that we do not know")
    return known(POOLINGS[number.value], reading.source)


def _classifier_outputs(reading: Reading) -> Fact[int]:
    labels = reading.read.entries.get(reading.architecture_key("classifier.output_labels"))
    if labels is not None and isinstance(labels.value, Array):
        return known(labels.value.count, reading.source)
    for tensor in all_tensors(reading.probe):
        if tensor.name in HEADS:
            return known(tensor.dimensions[1] if len(tensor.dimensions) > 1 else 1, reading.source)
    return reading.unknown("absent", "there is no classification head among the tensors")


def _adapter(reading: Reading) -> Fact[Adapter]:
    if reading.probe.kind != "adapter":
        return reading.unknown("absent", "it is no adapter")
    header = reading.read
    pairs = [tensor for tensor in header.tensors if tensor.name.endswith(".lora_a")]
    # The first matrix leads to the rank; an embedding's is stored the other way round.
    ranks = {min(tensor.dimensions[:2]) for tensor in pairs if len(tensor.dimensions) > 1}
    alpha = header.entries.get("adapter.lora.alpha")
    architecture = _text(header, "general.architecture")
    vector = architecture == "controlvector"
    return known(
        Adapter(
            type="control_vector" if vector else _text(header, "adapter.type") or "unnamed",
            base_architecture=_text(header, "controlvector.model_hint") if vector else architecture,
            rank=ranks.pop() if len(ranks) == 1 else None,
            alpha=float(alpha.value) if alpha is not None and isinstance(alpha.value, int | float) else None,
            targets=len(header.tensors) if vector else len(pairs),
        ),
        reading.source,
    )


def _projector(reading: Reading) -> Fact[Projector]:
    if reading.probe.kind != "projector":
        return reading.unknown("absent", "it is no projector")
    header = reading.read
    modalities, types, widths = [], [], []
    for modality in ("vision", "audio"):
        flag = header.entries.get(f"clip.has_{modality}_encoder")
        width = _whole(header, f"clip.{modality}.projection_dim")
        if (flag is not None and flag.value is True) or (flag is None and width is not None):
            modalities.append(modality)
            own = _text(header, f"clip.{modality}.projector_type") or _text(header, "clip.projector_type")
            types.append(own or "unnamed")
            widths.append(width or 0)
    found = Projector(modalities=tuple(modalities), types=tuple(types), widths=tuple(widths))
    return known(found, reading.source)


def layer_matrices(probe: Probe) -> list[Tensor]:
    """Return the matrices of the layers: what a quantizer's mixture is about."""
    return [
        tensor
        for tensor in all_tensors(probe)
        if len(tensor.dimensions) > 1 and tensor.elements and tensor.size_bytes and _in_a_layer(tensor.name)
    ]


def _in_a_layer(name: str) -> bool:
    kept = ("norm", "ffn_gate_inp", "ssm_conv1d", "shortconv.conv", "rel_b", "time_mix", "altup", "laurel")
    return name.startswith(("blk.", "enc.blk.", "dec.blk.")) and not any(word in name for word in kept)


def _quantization(reading: Reading) -> Fact[Quantization]:
    if reading.probe.missing:
        return reading.unknown("absent", f"of the model's parts {reading.probe.missing}")
    matrices = layer_matrices(reading.probe)
    by_type: dict[int, int] = {}
    for tensor in matrices:
        by_type[tensor.type_id] = by_type.get(tensor.type_id, 0) + (tensor.elements or 0)
    total = sum(by_type.values())
    if not total:
        return reading.unknown("absent", "there are no matrices in layers")
    ordered = sorted(by_type.items(), key=lambda item: (-item[1], item[0]))
    size = sum(tensor.size_bytes or 0 for tensor in matrices)
    main = type_name(ordered[0][0])
    named = names.named_mixture(os.path.basename(reading.probe.engine_path).partition("-00001-of-")[0])
    declared = reading.probe_declared()
    return known(
        Quantization(
            main_type=main,
            main_share=round(ordered[0][1] / total, 4),
            bits_per_layer_weight=round(8 * size / total, 4),
            mixture=", ".join(
                f"{type_name(type_id)} {100 * part / total:.1f} %" for type_id, part in ordered
            ),
            types=tuple(
                TypeShare(type=type_name(type_id), share=round(part / total, 4)) for type_id, part in ordered
            ),
            declared=declared,
            named=named,
            main_with_fallback=_asked_for(matrices, main, declared, named),
        ),
        Source(kind="computed", name="elements and bytes of the matrices in layers, by type"),
    )


def _asked_for(matrices: list[Tensor], main: str, *claims: str | None) -> str | None:
    """Return the type that a claim asks for, where short rows explain that another one was taken."""
    for claim in claims:
        wanted = names.main_type(claim) if claim else None
        if wanted is None or main not in names.fallbacks(wanted):
            continue
        short = sum(tensor.dimensions[0] % 256 != 0 for tensor in matrices)
        if 2 * short > len(matrices):
            return wanted
    return None


def _vocabulary(reading: Reading) -> Fact[Vocabulary]:
    header = reading.read
    if "tokenizer.ggml.model" not in header.entries:
        return reading.lacking("tokenizer.ggml.model")

    def count(name: str) -> int | None:
        entry = header.entries.get(f"tokenizer.ggml.{name}")
        return entry.value.count if entry is not None and isinstance(entry.value, Array) else None

    rows = next(
        (t.dimensions[1] for t in header.tensors if t.name == "token_embd.weight" and len(t.dimensions) > 1),
        None,
    )
    kinds = tuple(TokenKind(role=role, kind=kind) for role, kind in reading.probe.token_kinds.items())
    vocabulary = Vocabulary(
        tokens=count("tokens"),
        scores=count("scores"),
        kinds=count("token_type"),
        merges=count("merges"),
        embedding_rows=rows,
        special_kinds=kinds,
    )
    return known(vocabulary, reading.source)


def _provenance(reading: Reading) -> Fact[Provenance]:
    header = reading.read

    def text(name: str) -> str | None:
        return _text(header, f"general.{name}")

    tags = header.entries.get("general.tags")
    return known(
        Provenance(
            name=text("name"),
            author=text("author"),
            organization=text("organization"),
            version=text("version"),
            basename=text("basename"),
            finetune=text("finetune"),
            size_label=text("size_label"),
            licence=text("license"),
            licence_name=text("license.name"),
            licence_link=text("license.link"),
            quantized_by=text("quantized_by"),
            repo_url=text("repo_url") or text("url"),
            source_url=text("source.repo_url") or text("source.url") or text("source.huggingface.repository"),
            description=text("description"),
            tags=tags.value.count if tags is not None and isinstance(tags.value, Array) else None,
            base_models=tuple(_base_models(header)),
            datasets=tuple(_datasets(header)),
        ),
        reading.source,
    )


def _listed(header: Header, what: str) -> range:
    return range(min(max(_whole(header, f"general.{what}.count") or 0, 0), MOST_LISTED))


def _base_models(header: Header) -> Iterable[BaseModel]:
    for number in _listed(header, "base_model"):
        key = f"general.base_model.{number}"
        yield BaseModel(
            name=_text(header, f"{key}.name"),
            organization=_text(header, f"{key}.organization") or _text(header, f"{key}.author"),
            version=_text(header, f"{key}.version"),
            repo_url=_text(header, f"{key}.repo_url") or _text(header, f"{key}.url"),
        )


def _datasets(header: Header) -> Iterable[str]:
    for number in _listed(header, "dataset"):
        key = f"general.dataset.{number}"
        found = _text(header, f"{key}.repo_url") or _text(header, f"{key}.name")
        if found:
            yield found
