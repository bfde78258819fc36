"""The model file: what a GGUF header says, whether all of it is there, or what the file is instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamaops.facts import gguf_derive, gguf_probe
from llamaops.facts.gguf_derive import PerLayer
from llamaops.facts.gguf_probe import Probe
from llamaops.facts.gguf_shapes import (
    ChatTemplate,
    FileKind,
    MetadataValue,
    PathState,
    Problem,
    RopeScaling,
    ShardFacts,
    SpecialToken,
    TensorType,
)
from llamaops.schema.fact import Fact, Source, Unknown, known
from llamaops.schema.shape import Shape

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import System


class GgufFacts(Shape, frozen=True, kw_only=True):
    """What is known about a model file and the other parts of the same model."""

    path: Fact[str]
    """The file as it was named."""
    path_state: Fact[PathState]
    """What the path leads to; everything but `regular` means that nothing could be read."""
    engine_path: Fact[str]
    """The file to give to llama.cpp: the first part of a split model, whichever part was named."""
    file_kind: Fact[FileKind]
    """What the file is."""
    header_read: Fact[bool]
    """Whether the whole header could be read."""
    version: Fact[int]
    """GGUF version."""
    architecture: Fact[str]
    """`general.architecture`."""
    name: Fact[str]
    """`general.name`."""
    parameter_count: Fact[int]
    """Elements of all tensors of all parts."""
    tensor_count: Fact[int]
    """Tensors of all parts."""
    tensor_bytes: Fact[int]
    """Sum of the lengths of all tensors, without header and padding: what the engine reports as size."""
    file_bytes: Fact[int]
    """Length of all parts that are there."""
    expected_bytes: Fact[int]
    """Length that all parts need to hold their last tensors."""
    tensor_types: Fact[tuple[TensorType, ...]]
    """The mixture of types, the largest first."""
    bits_per_weight: Fact[float]
    """Tensor bits / parameters."""
    declared_file_type: Fact[str]
    """`general.file_type`: what the quantizer was asked for; a hint, the tensors decide."""
    context_length_tokens: Fact[int]
    """Context the model was trained for."""
    embedding_length: Fact[int]
    """Width of the embedding."""
    block_count: Fact[int]
    """Layers."""
    head_count: Fact[PerLayer]
    """Attention heads, one number or one per layer."""
    head_count_kv: Fact[PerLayer]
    """Heads of keys and values, one number or one per layer."""
    key_length: Fact[int]
    """Elements of a key in one head."""
    value_length: Fact[int]
    """Elements of a value in one head."""
    feed_forward_length: Fact[PerLayer]
    """Width of the feed-forward layer, one number or one per layer."""
    expert_count: Fact[int]
    """Experts of a mixture-of-experts model."""
    expert_used_count: Fact[int]
    """Experts that take part in one token."""
    sliding_window_tokens: Fact[int]
    """Width of the attention window."""
    rope_freq_base: Fact[float]
    """Base frequency of the rotary position."""
    rope_scaling: Fact[RopeScaling]
    """How the trained context was stretched."""
    vocabulary_size: Fact[int]
    """Tokens in the vocabulary."""
    tokenizer_model: Fact[str]
    """`tokenizer.ggml.model`, such as `gpt2` or `llama`."""
    pre_tokenizer: Fact[str]
    """`tokenizer.ggml.pre`."""
    special_tokens: Fact[tuple[SpecialToken, ...]]
    """Tokens with a role, with their text."""
    add_bos_token: Fact[bool]
    """Whether the tokenizer puts a first token before the text."""
    add_eos_token: Fact[bool]
    """Whether the tokenizer puts a last token after the text."""
    chat_template: Fact[ChatTemplate]
    """The template that turns a conversation into a prompt."""
    chat_templates: Fact[tuple[ChatTemplate, ...]]
    """Named variants of the template."""
    shards: Fact[tuple[ShardFacts, ...]]
    """The parts that are there; a model that is not split has one."""
    alignment_bytes: Fact[int]
    """Alignment of tensor data."""
    metadata: Fact[tuple[MetadataValue, ...]]
    """All keys, arrays by their length, templates left out; at most 256."""
    problems: Fact[tuple[Problem, ...]]
    """Everything that is wrong with the file or its companions."""


def collect_gguf(system: System, path: str) -> GgufFacts:
    """Observe a model file; any part of a split model may be named.

    Tensor data is not read, but for a few samples that tell a hole of zeros from data.
    """
    return facts_of(gguf_probe.look(system, path))


def facts_of(probe: Probe) -> GgufFacts:
    """Turn what was seen of a model file into facts."""
    path = probe.path
    reading = gguf_derive.Reading(probe)
    observed = gguf_derive.observed(reading)
    here = Source(kind="file", name=path)
    reason = (
        reading.header if isinstance(reading.header, Unknown) else reading.unknown("unparsed", "not read")
    )
    fields: dict[str, object] = dict.fromkeys(GgufFacts.__struct_fields__, reason)
    fields |= observed
    fields["path"] = known(path, here)
    fields["path_state"] = probe.state if isinstance(probe.state, Unknown) else known(probe.state, here)
    if probe.kind is not None:
        fields["file_kind"] = known(probe.kind, here)
    if probe.file_bytes is not None:
        fields["file_bytes"] = known(probe.file_bytes, here)
    fields["problems"] = known(tuple(probe.problems), here)
    return GgufFacts(**fields)  # type: ignore[arg-type]  # every field is set above, each to its Fact


def read_chat_template(system: System, path: str) -> str | None:
    """Return the text of the default chat template, None where there is none.

    Raises: OSError when the file cannot be read.
    """
    data = gguf_probe.read_template(system, path)
    return None if data is None else data.decode("utf-8", "replace")
