"""What a model file is for, what it was made from, and what it is made of."""

from __future__ import annotations

from typing import Literal

from llamaops.schema.fact import Fact
from llamaops.schema.shape import Shape

Role = Literal[
    "text",  # generates text
    "embedding",  # turns text into a vector
    "reranker",  # turns a question and a text into a score
    "diffusion",  # generates text, all positions at once
    "draft",  # proposes tokens for another model
    "speech",  # turns tokens into sound
    "lora_adapter",  # low-rank changes to the weights of a base model
    "control_vector",  # a direction that is added to the activations of a base model
    "projector",  # turns images or sound into the embeddings of a language model
    "vocabulary",
    "imatrix",
]
Pooling = Literal["none", "mean", "cls", "last", "rank"]


class Adapter(Shape, frozen=True, kw_only=True):
    """A LoRA adapter or a control vector."""

    type: str
    """`adapter.type`, or `control_vector`."""
    base_architecture: str | None
    """Architecture of the model it belongs to."""
    rank: int | None
    """Rank of the smallest and largest matrices where they agree; none where they do not."""
    alpha: float | None
    """`adapter.lora.alpha`."""
    targets: int
    """Tensors of the base model that it changes."""


class Projector(Shape, frozen=True, kw_only=True):
    """A multimodal projector."""

    modalities: tuple[str, ...]
    """`vision`, `audio`."""
    types: tuple[str, ...]
    """`clip.projector_type` or one for each modality."""
    widths: tuple[int, ...]
    """Width of the embeddings that it gives, as declared for each modality."""


class TypeShare(Shape, frozen=True, kw_only=True):
    """How many elements of the matrices in layers are of one type."""

    type: str
    """Name of the type."""
    share: float
    """Its part of their elements, 0 to 1."""


class Quantization(Shape, frozen=True, kw_only=True):
    """The mixture of types in the layers, beside what is said about it."""

    main_type: str
    """The type with the most elements among the matrices of the layers."""
    main_share: float
    """Its part of those elements, 0 to 1."""
    bits_per_layer_weight: float
    """Bits per element of those matrices."""
    mixture: str
    """Every type with its part of these elements, the largest first, in words."""
    types: tuple[TypeShare, ...]
    """The same in figures."""
    declared: str | None
    """`general.file_type` in words; none where the header does not say."""
    named: str | None
    """What the file name says, such as Q4_K_M; none where it says nothing."""
    main_with_fallback: str | None
    """The type asked for, where rows of these tensors are too short for its blocks and another had to do."""


class TokenKind(Shape, frozen=True, kw_only=True):
    """A special token and the kind that the vocabulary gives it."""

    role: str
    """`bos`, `eos`, `eot`, ..."""
    kind: int
    """`tokenizer.ggml.token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte."""


class Vocabulary(Shape, frozen=True, kw_only=True):
    """The parts of a tokenizer, by their lengths."""

    tokens: int | None
    """Texts of tokens."""
    scores: int | None
    """Their scores."""
    kinds: int | None
    """Their kinds."""
    merges: int | None
    """Merge rules of a byte-pair vocabulary."""
    embedding_rows: int | None
    """Rows of the token embedding."""
    special_kinds: tuple[TokenKind, ...]
    """The kinds of the tokens with a role."""


class BaseModel(Shape, frozen=True, kw_only=True):
    """A model that this one was made from."""

    name: str | None
    """Its name."""
    organization: str | None
    """Who published it."""
    version: str | None
    """Its version."""
    repo_url: str | None
    """Where it is published."""


class Provenance(Shape, frozen=True, kw_only=True):
    """Where the model says that it comes from: nothing here is verified."""

    name: str | None
    """`general.name`."""
    author: str | None
    """Author."""
    organization: str | None
    """Organization."""
    version: str | None
    """Version."""
    basename: str | None
    """Name of the family."""
    finetune: str | None
    """What it was tuned for."""
    size_label: str | None
    """Size as the publisher writes it."""
    licence: str | None
    """Licence, an SPDX name or the publisher's own."""
    licence_name: str | None
    """Its name in words."""
    licence_link: str | None
    """Where it is written."""
    quantized_by: str | None
    """Who quantized it."""
    repo_url: str | None
    """Where this file is published."""
    source_url: str | None
    """Where its unquantized source is published."""
    description: str | None
    """Description."""
    tags: int | None
    """How many tags it carries."""
    base_models: tuple[BaseModel, ...]
    """What it was made from, as far as it says."""
    datasets: tuple[str, ...]
    """What it was trained on, as far as it says."""


class HubPlace(Shape, frozen=True, kw_only=True):
    """What the folders of a download say about a file: a declaration too."""

    repository: str | None
    """OWNER/NAME."""
    revision: str | None
    """Commit of the repository."""
    sha256: str | None
    """Digest that the hub declared."""
    said_by: str
    """Path or file that says so."""


class IdentityFacts(Shape, frozen=True, kw_only=True):
    """What the model file is for, from its keys and tensors."""

    role: Fact[Role]
    """What it is for."""
    pooling: Fact[Pooling]
    """How an embedding model makes one vector of many."""
    causal: Fact[bool]
    """Whether a token sees only those before it."""
    classifier_outputs: Fact[int]
    """Outputs of a classification head."""
    draft_layers: Fact[int]
    """Layers for multi-token prediction in the model itself."""
    adapter: Fact[Adapter]
    """What it is as an adapter."""
    projector: Fact[Projector]
    """What it is as a projector."""
    quantization: Fact[Quantization]
    """What its layers are made of."""
    vocabulary: Fact[Vocabulary]
    """The parts of its tokenizer."""
    provenance: Fact[Provenance]
    """Where it says that it comes from."""
    hub: Fact[HubPlace]
    """Where its folder says that it comes from."""
