"""Files that belong to a model: projector, adapter and draft, and what speaks for and against each.

What is compared is what the engine compares when it loads them. Source: mtmd.cpp and clip.cpp (width of a
projector), llama-adapter.cpp (architecture and shapes of an adapter), speculative.cpp (tokens of a draft).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec

from llamaops.facts import companion_tokens, gguf_probe, gguf_shards
from llamaops.facts.gguf_derive import Reading
from llamaops.facts.gguf_header import Header, Tensor
from llamaops.facts.gguf_shapes import FileKind
from llamaops.facts.gguf_walk import Text
from llamaops.facts.identity_derive import all_tensors
from llamaops.schema.fact import Fact, Source, Unknown, known
from llamaops.schema.shape import Shape

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import System

Use = Literal["mmproj", "lora", "draft"]
MOST_BESIDE = 8
MOST_SHOWN = 4
WORDS: tuple[tuple[Use, tuple[str, ...]], ...] = (
    ("mmproj", ("mmproj",)),
    ("lora", ("lora", "adapter")),
    ("draft", ("draft", "eagle3", "dflash", "-mtp")),
)

# Projector type: tensor whose length on this axis is the width of what it gives.
WIDTHS: dict[str, tuple[str, int]] = {
    **dict.fromkeys(
        (
            "mlp", "phi4", "pixtral", "lightonocr", "dots_ocr", "lfm2", "kimivl", "paddleocr", "kimik25",
            "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger", "exaone4_5", "youtuvl", "mimovl",
        ),
        ("mm.2.weight", 1),
    ),
    **dict.fromkeys(("gemma3", "gemma3nv"), ("mm.input_projection.weight", 0)),
    "gemma4v": ("mm.input_projection.weight", 1),
    **dict.fromkeys(("idefics3", "llama4", "deepseekocr", "hunyuanvl", "step3vl"), ("mm.model.fc.weight", 1)),
    **dict.fromkeys(("internvl", "nemotron_v2_vl"), ("mm.model.mlp.3.weight", 1)),
    "resampler": ("resampler.proj.weight", 0),
    "adapter": ("adapter.linear.dense_4h_to_h.weight", 1),
    **dict.fromkeys(("glm4v", "cogvlm"), ("mm.down.weight", 1)),
    **dict.fromkeys(("ultravox", "voxtral", "qwen3a"), ("mm.a.mlp.2.weight", 1)),
    "qwen2a": ("mm.a.fc.weight", 1),
}  # fmt: skip


class Companion(Shape, frozen=True, kw_only=True):
    """A file that belongs to a model, or is said to."""

    path: str
    """Where it is."""
    found_by: Literal["asked", "beside"]
    """Whether it was named, or lies beside the model."""
    used_as: Use
    """What it was named for, or what its name suggests."""
    kind: Fact[FileKind]
    """What it is."""
    agrees: tuple[str, ...] = ()
    """What was compared with the model and fits."""
    differs: tuple[str, ...] = ()
    """What was compared and does not fit."""
    not_compared: tuple[str, ...] = ()
    """What the engine compares and we could not."""


class CompanionFacts(Shape, frozen=True, kw_only=True):
    """Every companion that was named or lies beside the model."""

    asked: tuple[Companion, ...]
    """Those that were named."""
    beside: Fact[tuple[Companion, ...]]
    """Those whose names suggest that they belong to a model of this folder; at most 8."""


class _Comparison(msgspec.Struct):
    agrees: list[str] = msgspec.field(default_factory=list)
    differs: list[str] = msgspec.field(default_factory=list)
    not_compared: list[str] = msgspec.field(default_factory=list)

    def hold(self, what: str, model: object, other: object) -> None:
        """Compare two values; a missing one is not compared."""
        if model is None or other is None:
            self.not_compared.append(what)
        elif model == other:
            self.agrees.append(f"{what}: {other}")
        else:
            self.differs.append(f"{what}: the model has {model}, this file {other}")


def collect_companions(system: System, model: Probe, named: dict[Use, list[str]]) -> CompanionFacts:
    """Look at the companions that were named and at those beside a model."""
    asked = tuple(
        _companion(system, model, path, use, "asked") for use, paths in named.items() for path in paths
    )
    source = Source(kind="file", name=os.path.dirname(model.path) or ".")
    if model.kind != "model":
        detail = f"{model.path} is no model, to which other files could belong"
        return CompanionFacts(asked=asked, beside=Unknown(why="unsupported", detail=detail, source=source))
    seen = {os.path.realpath(one.path) for one in asked}
    beside = tuple(
        _companion(system, model, path, use, "beside")
        for path, use in beside_model(system, model)
        if os.path.realpath(path) not in seen
    )
    return CompanionFacts(asked=asked, beside=known(beside, source))


def beside_model(system: System, model: Probe) -> list[tuple[str, Use]]:
    """Return files beside a model whose names say that they belong to one, and what they seem to be."""
    folder = os.path.dirname(model.path)
    own = {part.path for part in model.parts} | {model.path}
    try:
        names = system.list_dir(folder or ".")
    except OSError:
        return []
    found: list[tuple[str, Use]] = []
    for name in names:
        path = os.path.join(folder, name)
        use = _use_of(name.lower())
        split = gguf_shards.parse_shard_name(path)
        if use is not None and path not in own and (split is None or split.number == 1):
            found.append((path, use))
    return found[:MOST_BESIDE]


def _use_of(name: str) -> Use | None:
    if not name.endswith(".gguf"):
        return None
    return next((use for use, words in WORDS if any(word in name for word in words)), None)


def _companion(
    system: System, model: Probe, path: str, use: Use, found_by: Literal["asked", "beside"]
) -> Companion:
    other = gguf_probe.look(system, path)
    reading = Reading(other)
    kind: Fact[FileKind]
    if other.kind is not None:
        kind = known(other.kind, reading.source)
    else:
        kind = Unknown(
            why=other.why, detail=other.detail or f"{path} could not be read", source=reading.source
        )
    found = _Comparison()
    ours, theirs = _header(model), _header(other)
    if ours is None or theirs is None:
        found.not_compared.append("anything: one of the two headers could not be read")
    elif use == "mmproj":
        _compare_projector(found, ours, theirs, other)
    elif use == "lora":
        _compare_adapter(found, model, ours, theirs)
    else:
        _compare_draft(found, system, model, other)
    return Companion(
        path=path,
        found_by=found_by,
        used_as=use,
        kind=kind,
        agrees=tuple(found.agrees),
        differs=tuple(found.differs),
        not_compared=tuple(found.not_compared),
    )


def _header(probe: Probe) -> Header | None:
    return probe.main.header if probe.main is not None else None


def _text(header: Header, key: str) -> str | None:
    entry = header.entries.get(key)
    return entry.value.text if entry is not None and isinstance(entry.value, Text) else None


def _whole(header: Header, key: str) -> int | None:
    entry = header.entries.get(key)
    return entry.value if entry is not None and type(entry.value) is int else None


def _of_architecture(header: Header, name: str) -> int | None:
    return _whole(header, f"{_text(header, 'general.architecture')}.{name}")


def _compare_projector(found: _Comparison, model: Header, other: Header, probe: Probe) -> None:
    if probe.kind != "projector":
        found.differs.append(f"it is no projector but {probe.kind}")
        return
    width = _of_architecture(model, "embedding_length")
    types = [
        text
        for key in ("clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type")
        if (text := _text(other, key))
    ]
    tensors = {tensor.name: tensor for tensor in all_tensors(probe)}
    exact = {_length(tensors.get(WIDTHS[one][0]), WIDTHS[one][1]) for one in types if one in WIDTHS}
    exact.discard(None)
    if width is None:
        found.not_compared.append("width of the embedding")
    elif exact:
        for length in sorted(filter(None, exact)):
            found.hold(f"width of the embedding ({', '.join(types)})", width, length)
    else:
        _compare_any_width(found, width, tensors)


def _compare_any_width(found: _Comparison, width: int, tensors: dict[str, Tensor]) -> None:
    """Ask of a projector that we do not know that one of its last matrices gives the model's width."""
    ends = {
        length
        for name, tensor in tensors.items()
        if not name.startswith(("v.", "a."))
        for length in tensor.dimensions[:2]
    }
    if not ends:
        found.not_compared.append("width of the embedding: no tensors of a projector")
    elif width in ends:
        found.agrees.append(f"width of the embedding: {width} occurs among its matrices")
    else:
        found.differs.append(f"width of the embedding: the model has {width}, and none of its matrices has")


def _length(tensor: Tensor | None, axis: int) -> int | None:
    if tensor is None or len(tensor.dimensions) <= axis:
        return None
    return tensor.dimensions[axis]


def _compare_adapter(found: _Comparison, model: Probe, ours: Header, theirs: Header) -> None:
    declared = _text(theirs, "general.type")
    if _text(theirs, "general.architecture") == "controlvector":
        found.hold(
            "architecture", _text(ours, "general.architecture"), _text(theirs, "controlvector.model_hint")
        )
        return
    if declared != "adapter":
        found.differs.append(f"general.type is {declared}, the engine asks for adapter")
        return
    found.hold("kind of adapter", "lora", _text(theirs, "adapter.type"))
    found.hold("architecture", _text(ours, "general.architecture"), _text(theirs, "general.architecture"))
    base = {tensor.name: tensor for tensor in all_tensors(model)}
    if model.missing:
        found.not_compared.append("shapes: parts of the model are missing")
        return
    wrong = _wrong_pairs(base, {tensor.name: tensor for tensor in theirs.tensors})
    if wrong:
        more = f", and {len(wrong) - MOST_SHOWN} more" if len(wrong) > MOST_SHOWN else ""
        found.differs.append(f"tensors: {'; '.join(wrong[:MOST_SHOWN])}{more}")
    else:
        found.agrees.append(f"shapes of {len(theirs.tensors)} tensors")


def _wrong_pairs(base: dict[str, Tensor], adapter: dict[str, Tensor]) -> list[str]:
    wrong = []
    for name, first in adapter.items():
        if not name.endswith(".lora_a"):
            continue
        target = name.removesuffix(".lora_a")
        second, whole = adapter.get(f"{target}.lora_b"), base.get(target)
        if second is None:
            wrong.append(f"{target[:64]} has no second matrix")
        elif whole is None:
            wrong.append(f"{target[:64]} is not in the model")
        elif not _pair_fits(target, whole.dimensions, first.dimensions, second.dimensions):
            shapes = f"{list(first.dimensions)} and {list(second.dimensions)} for {list(whole.dimensions)}"
            wrong.append(f"{target[:64]}: {shapes}")
    return wrong


def _pair_fits(name: str, whole: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    if min(len(whole), len(a), len(b)) < 2:  # noqa: PLR2004 - a matrix
        return False
    if name.endswith("token_embd.weight"):
        return whole[0] == b[1] and whole[1] == a[1]
    return whole[0] == a[0] and whole[1] == b[1] and a[1] == b[0]


def _compare_draft(found: _Comparison, system: System, model: Probe, other: Probe) -> None:
    ours, theirs = _header(model), _header(other)
    if other.kind != "model" or ours is None or theirs is None:
        found.differs.append(f"it is no model but {other.kind}")
        return
    if "tokenizer.ggml.tokens" not in theirs.entries:
        found.not_compared.append("vocabulary: this file has none of its own")
        return
    for key in ("tokenizer.ggml.model",):
        found.hold("tokenizer", _text(ours, key), _text(theirs, key))
    for role in ("bos", "eos"):
        adds = [one.entries.get(f"tokenizer.ggml.add_{role}_token") for one in (ours, theirs)]
        if any(entry is not None and entry.value is True for entry in adds):
            numbers = [_whole(one, f"tokenizer.ggml.{role}_token_id") for one in (ours, theirs)]
            found.hold(f"{role} token that is added", *numbers)
    companion_tokens.compare(found, system, model, other)
