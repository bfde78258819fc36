"""The parts that facts about a model file are made of."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.shape import Shape

FileKind = Literal[
    "model",
    "adapter",  # LoRA or control vector: belongs to a model, cannot be served by itself
    "projector",  # multimodal projector (mmproj): belongs to a model
    "vocabulary",  # tokenizer without weights
    "imatrix",  # importance matrix: input of llama-quantize
    "gguf",  # a GGUF file whose header could not be read far enough to say more
    "empty",
    "zeros",
    "html",
    "json",
    "xml",
    "lfs_pointer",
    "text",
    "safetensors",
    "zip",
    "pytorch_zip",
    "pickle",
    "gzip",
    "xz",
    "zstd",
    "bzip2",
    "lz4",
    "7z",
    "rar",
    "tar",
    "ggml_old",
    "llama_state",
    "executable",
    "pdf",
    "hdf5",
    "numpy",
    "image",
    "sqlite",
    "binary",  # none of the above
]

PathState = Literal[
    "regular",
    "absent",
    "broken_symlink",
    "no_permission",
    "directory",
    "fifo",
    "socket",
    "character_device",
    "block_device",
]


class Problem(Shape, frozen=True, kw_only=True):
    """One thing that is wrong with a model file."""

    slug: str
    """Stable name of the kind of problem, such as `data-truncated`."""
    sentence: str
    """What is wrong, with both sides of the comparison."""
    place: str
    """The file."""


class TensorType(Shape, frozen=True, kw_only=True):
    """How much of the weights is of one type."""

    type: str
    """Name of the type, such as `Q4_K`, or `unknown type N`."""
    tensors: int
    """How many tensors."""
    bytes: int | None
    """Their length together; none when the type has no size that we know."""
    share: float | None
    """Their part of all tensor bytes, 0 to 1."""


class SpecialToken(Shape, frozen=True, kw_only=True):
    """A token with a role of its own."""

    role: str
    """`bos`, `eos`, `eot`, `eom`, `unknown`, `padding`, `separator`, `mask`, ..."""
    id: int
    """Its number in the vocabulary."""
    text: str | None
    """Its text; none when the vocabulary has no such number."""


class ChatTemplate(Shape, frozen=True, kw_only=True):
    """A chat template: its digest, not its text."""

    name: str
    """`default` or the name of the variant."""
    bytes: int
    """Length of its text."""
    sha256: str
    """SHA-256 of its text, in hex."""


class RopeScaling(Shape, frozen=True, kw_only=True):
    """How the context was stretched beyond what the model was first trained for."""

    type: str | None
    """`linear`, `yarn`, `longrope`, `none`, ..."""
    factor: float | None
    """By how much."""
    original_context_tokens: int | None
    """Context before stretching."""


class MetadataValue(Shape, frozen=True, kw_only=True):
    """One key of the header."""

    key: str
    """The key."""
    type: str
    """The value's type, such as `u32`, `string` or `array of i32`."""
    value: str
    """The value, cut to 200 characters; for an array its length."""


class ShardFacts(Shape, frozen=True, kw_only=True):
    """One file of the model; a model that is not split has one."""

    path: str
    """Where it is."""
    number: int
    """From 1."""
    file_bytes: int
    """Its length."""
    expected_bytes: int | None
    """Where its last tensor ends; none when the header does not tell."""
    tensor_count: int | None
    """Tensors that its header announces."""
