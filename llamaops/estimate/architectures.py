"""One line of data for each architecture: which kinds of block it is made of, and in which variant.

What the file itself tells (biases, norms of heads, experts, tied head) is taken from its tensors; here is
only what the engine has built in. A name that is not here is unknown: its exact parts are still exact.

Source: src/models/*.cpp of llama.cpp, one file for each architecture.
"""

from __future__ import annotations

import msgspec


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Which layers attend to a window only."""

    period: int
    """One layer in so many is a full one; 0 says that only the header tells which layers are."""
    full_first: bool = False
    """Whether the full layer comes first in its group instead of last."""
    needs_key: bool = False
    """Whether there is a window only where the header gives its width."""
    default_tokens: int = 0
    """Width where the header gives none."""
    forced_tokens: int = 0
    """Width whatever the header says."""
    smallest_blocks: int = 0
    """Fewer blocks than these have no window."""


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """How an architecture's blocks are put together."""

    attention: str = "heads"
    """`heads`, `mla` (compressed), `gated` (queries carry a gate) or empty."""
    recurrent: str = ""
    """Kind of the recurrent blocks: `mamba`, `mamba2`, `shortconv`, `delta`, `rwkv7`."""
    recurrent_layers: str = ""
    """`all`, `no_kv_heads`, `interval` or `beside` (each layer has attention and a recurrent part)."""
    is_encoder: bool = False
    """Whether it has no cache at all."""
    window: Window | None = None
    """Sliding window."""
    order: str = "before"
    """`before` (norm before each part), `after` (behind them), `parallel` (one norm for both parts),
    `encoder` (norm behind the sum)."""
    norm: str = "rms"
    """`rms` or `layer`."""
    head_norm: str = "heads"
    """Where the file has norms of queries and keys: `heads`, `rows` (before the split into heads),
    `behind_rope` or `none`."""
    rope: str = "all"
    """`all`, `none`, `windowed` (only layers with a window), `step` (all but every nth) or
    `switch` (where the header does not switch it off)."""
    scales_query: bool = False
    """Whether queries are scaled by an operator of their own."""
    scales_embedding: str = ""
    """`always`, or `tokens` where only rows of tokens are scaled and given embeddings are not."""
    scales_logits: str = ""
    """`always`, `key` (where the header has a scale) or `soft_cap`."""
    ffn: str = "silu"
    """`silu`, `gelu` (gated side by side), `fused` (gate and up in one tensor), or ungated `gelu_plain`,
    `relu_squared`."""
    ffn_norm: str = "ffn_norm"
    """Name of the norm before the feed-forward part."""
    post_attention_norm: str = "post_attention_norm"
    """Name of the norm behind attention."""
    post_ffn_norm: str = "post_ffw_norm"
    """Name of the norm behind the feed-forward part."""
    expert_norm: str = "yes"
    """Whether the weights of chosen experts are normed: `yes`, `no` or `key`."""
    expert_gate: str = "soft_max"
    """`soft_max`, `sigmoid`, `soft_max_weight` or `key`."""
    expert_gate_default: int = 1
    """Number of the gate where the header names none."""
    weights_before_experts: bool = False
    """Whether weights are applied to the input of the experts instead of their result."""
    caps_scores: bool = False
    """Whether scores are soft-capped."""
    expert_scale: str = "key"
    """Whether expert weights are scaled: `key` or `no`."""
    expert_ffn: str = "silu"
    """Activation of the experts."""
    shared_expert: str = "plain"
    """Where the file has a shared expert: `plain` or `gated`."""
    residual_first: bool = False
    """Whether sums name the residual first."""
    gathers_late: bool = False
    """Whether the rows that are wanted are taken behind the last layer instead of inside it."""
    norms_before_gathering: bool = False
    """Whether the last norm comes before the rows are taken."""
    default_soft_cap: float = 0.0
    """Soft cap of the logits where the header gives none."""
    positions: int = 1
    """Position numbers for each token."""
    unused_tensors: tuple[str, ...] = ()
    """Beginnings of the names of tensors that the engine does not load."""
    has_indexer: bool = False
    """Whether there are further caches that are not worked out."""
    has_head: bool = False
    """Whether an encoder nevertheless loads an output head."""
    has_graph: bool = True
    """Whether its graph is described; without, compute is a band."""
    head_width: str = "value"
    """Which key gives the width of a head: `value` or `rotated`."""


_WINDOW_4 = Window(period=4)

ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(head_norm="none"),
    "qwen2": Architecture(head_norm="none"),
    "qwen3": Architecture(),
    "qwen3moe": Architecture(),
    "olmoe": Architecture(head_norm="rows", expert_norm="no"),
    "smollm3": Architecture(head_norm="none", rope="step"),
    "phi3": Architecture(head_norm="none", ffn="fused", scales_query=True, residual_first=True),
    "granite": Architecture(head_norm="none", rope="switch", scales_logits="always"),
    "glm4": Architecture(head_norm="none", ffn="fused"),
    "command-r": Architecture(order="parallel", norm="layer", scales_logits="key"),
    "cohere2": Architecture(
        order="parallel", norm="layer", head_norm="none", rope="windowed", scales_logits="key",
        window=_WINDOW_4,
    ),
    "gemma2": Architecture(
        head_norm="none", ffn="gelu", scales_query=True, scales_embedding="always", scales_logits="soft_cap",
        default_soft_cap=30.0, caps_scores=True, window=Window(period=2, default_tokens=4096),
    ),
    "gemma3": Architecture(
        ffn="gelu", scales_query=True, scales_embedding="tokens", scales_logits="soft_cap",
        window=Window(period=6, needs_key=True),
    ),
    "gemma-embedding": Architecture(
        ffn="gelu", scales_query=True, scales_embedding="tokens", is_encoder=True, has_head=True,
        window=Window(period=6),
    ),
    "gpt-oss": Architecture(
        head_norm="none", head_width="rotated", ffn_norm="post_attention_norm", post_attention_norm="",
        expert_norm="no", expert_gate="soft_max_weight", expert_ffn="silu_limited", gathers_late=True,
        window=Window(period=2),
    ),
    "deepseek2": Architecture(attention="mla", expert_norm="key", expert_gate="key"),
    "lfm2": Architecture(
        recurrent="shortconv", recurrent_layers="no_kv_heads", residual_first=True,
    ),
    "mamba": Architecture(attention="", recurrent="mamba", recurrent_layers="all"),
    "mamba2": Architecture(attention="", recurrent="mamba2", recurrent_layers="all"),
    "jamba": Architecture(
        recurrent="mamba", recurrent_layers="no_kv_heads", rope="none", head_norm="none",
        residual_first=True, expert_norm="no",
    ),
    "falcon-h1": Architecture(recurrent="mamba2", recurrent_layers="beside", head_norm="none"),
    "granitehybrid": Architecture(
        recurrent="mamba2", recurrent_layers="no_kv_heads", head_norm="none", rope="switch",
        scales_logits="key",
    ),
    "rwkv7": Architecture(attention="", recurrent="rwkv7", recurrent_layers="all"),
    "qwen35": Architecture(
        attention="gated", recurrent="delta", recurrent_layers="interval", ffn_norm="post_attention_norm",
        post_attention_norm="", gathers_late=True,
        norms_before_gathering=True, positions=4,
    ),
    "bert": Architecture(order="encoder", norm="layer", rope="none", is_encoder=True, ffn="gelu_plain"),
}  # fmt: skip
