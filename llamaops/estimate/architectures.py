"""One line of data for each architecture: which kinds of block it is made of, and in which variant.

What the file itself tells (biases, norms of heads, experts, tied head) is taken from its tensors; here is
only what the engine has built in. A name that is not here is unknown: its exact parts are still exact.

Source: src/models/*.cpp of llama.cpp, one file for each architecture.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace


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
    only_blocks: int = 0
    """Number of blocks with which alone there are windows; 0 for any."""


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """How an architecture's blocks are put together."""

    attention: str = "heads"
    """`heads`, `blocks` (to the best blocks only), `mla` (compressed), `indexed` (compressed, to the best
    keys only), `indexed_or_near` (so, or to a
    window), `gated` (queries carry a gate) or empty."""
    recurrent: str = ""
    """Kind of the recurrent blocks: `mamba`, `mamba2`, `mamba_by_heads`, `shortconv`, `delta`, `delta_joint`,
    `kimi_delta`, `bounded_delta`, `lightning`, `rwkv6`, `rwkv7`, `qrwkv6`, `arwkv7`."""
    recurrent_layers: str = ""
    """`all`, `no_kv_heads`, `interval` or `beside` (each layer has attention and a recurrent part)."""
    full_interval: int = 4
    """One layer in so many attends where the others are recurrent and the header does not tell."""
    is_encoder: bool = False
    """Whether its graph has no cache."""
    has_idle_cache: bool = False
    """Whether an encoder is given a cache nevertheless."""
    window: Window | None = None
    """Sliding window."""
    order: str = "before"
    """`before` (norm before each part), `after` (behind them), `parallel` (both parts side by side),
    `encoder` (norm behind the sum), `routed_first` (experts are chosen by a layer's input), `optional` (a
    layer may lack either part), `dense_and_experts` (experts take the input, a dense part the result of
    attention), `single` (each layer is one part only), `per_layer` (each layer has an input of its own),
    `alternating` (each layer changes one of several versions of a token), `normed_residual` (parts add what
    they take, not what came before its norm), `skipping` (each layer adds a part of the input), `swin` (norms
    behind the parts where the header says so), `banked` (layers take sums of earlier inputs), `hyper` (they
    mix several streams), `pooled` (so, and attend to the best groups of keys), `compressed` (so, and attend
    to a window and to blocks of earlier tokens), `stacks` (two that
    take turns), `decoder` and `encoder_half` (of models with both), `stablelm`."""
    parallel_sum: str = "residual"
    """In which order parallel parts are added: `residual` first, `attention` first, or the feed-forward part
    to attention (`onto_attention`)."""
    norm: str = "rms"
    """`rms`, `layer`, or `by_key` (by the key that the header has)."""
    head_norm: str = "heads"
    """Where the file has norms of queries and keys: `heads`, `rows` (before the split into heads), `joined`
    (the same, split before), `behind_rope` or `none`."""
    rope: str = "all"
    """`all`, `none`, `windowed` (only layers with a window), `windowed_or_all` (the same, all where there are
    no windows), `windowed_or_dense` (the same and the dense layers in front), `step` (all but every nth) or
    `switch` (where the header does not switch it off)."""
    scales_query: bool = False
    """Whether queries are scaled by an operator of their own."""
    scales_embedding: str = ""
    """`always`, or `tokens` where only rows of tokens are scaled and given embeddings are not."""
    scales_input: bool = False
    """Whether the input is scaled even where the header has no factor for it."""
    scales_residual: bool = False
    """Whether residuals are scaled even where the header has no factor for it."""
    scales_hidden: bool = False
    """Whether the last norm's result is scaled before the output head."""
    scales_logits: str = ""
    """`always`, `key` (where the header has a scale) or `soft_cap`."""
    ffn: str = "silu"
    """`silu`, `gelu`, `bounded` (gated side by side), `fused` (gate and up in one tensor), or ungated
    `gelu_plain`, `relu_squared`."""
    ffn_norm: str = "ffn_norm"
    """Name of the norm before the feed-forward part."""
    post_attention_norm: str = "post_attention_norm"
    """Name of the norm behind attention."""
    post_ffn_norm: str = "post_ffw_norm"
    """Names of the norms behind the feed-forward part."""
    expert_norm: str = "yes"
    """Whether the weights of chosen experts are normed: `yes`, `no` or `key`."""
    expert_gate: str = "soft_max"
    """`soft_max`, `sigmoid`, `soft_max_weight` or `key`."""
    expert_gate_default: int = 1
    """Number of the gate where the header names none."""
    weights_before_experts: bool = False
    """Whether weights are applied to the input of the experts instead of their result."""
    scales_attention: bool = False
    """Whether queries without rope are scaled by position."""
    bare_head_norm: bool = False
    """Whether queries and keys are normed without weights, where they are rotated."""
    caps_scores: bool = False
    """Whether scores are soft-capped."""
    expert_scale: str = "key"
    """Whether expert weights are scaled: `key` or `no`."""
    is_precise_down: bool = False
    """Whether the last product of the experts has to be computed in F32."""
    embeds_head: bool = False
    """Whether a tied head is the token embedding itself, also with a card."""
    expert_ffn: str = "silu"
    """Activation of the experts."""
    selects_by_sigmoid: bool = False
    """Whether experts are chosen by a function of their scores other than that which weights them."""
    has_dense_beside: bool = False
    """Whether a dense part is added to the experts, and their sum scaled, where the file has one."""
    limits_in_one: bool = False
    """Whether a limit of the activation is a part of its operator."""
    shared_expert: str = "plain"
    """Where the file has a shared expert: `plain`, `gated`, `divided` (gated by a quotient) or `halved`."""
    residual_first: str = ""
    """Which sums name the residual first: `always`, `ffn` (that behind the feed-forward part), `attention` or
    none."""
    gathers_late: bool = False
    """Whether the rows that are wanted are taken behind the last layer instead of inside it."""
    keeps_hidden: bool = False
    """Whether recent builds keep the result before the last norm, for a draft."""
    norms_before_gathering: bool = False
    """Whether the last norm comes before the rows are taken."""
    default_soft_cap: float = 0.0
    """Soft cap of the logits where the header gives none."""
    positions: int = 1
    """Position numbers for each token."""
    has_position_table: bool = False
    """Whether positions are looked up in a table and added to the input."""
    rope_blocks: int = 0
    """Number of blocks with which alone there is rope; 0 for any."""
    gate_is_late: bool = False
    """Whether the gate of queries is copied out only behind attention."""
    unused_tensors: tuple[str, ...] = ()
    """Beginnings of the names of tensors that the engine does not load."""
    cache_owners: int = 0
    """How many first layers alone have a cache; 0: as the header says."""
    scales_result: bool = False
    """Whether the result of attention is scaled where the header says so."""
    gates_result: bool = False
    """Whether a matrix of its own makes a gate for the result of attention."""
    copies_head: bool = False
    """Whether a tied head is a second copy on the host too: the head is made before the embedding."""
    has_deep_inputs: bool = False
    """Whether the first layers may each have a further part of the input added."""
    indexer: str = ""
    """Which layers have an indexer that finds the best keys: `all`, `shared` (as the header says),
    `tensors` (those that have its tensors), `behind_dense` (those with experts) or none."""
    has_head: bool = False
    """Whether an encoder nevertheless loads an output head."""
    reads_encoder: bool = False
    """Whether it is a decoder that reads an encoder's result, so that embeddings are always kept."""
    looks_ahead: bool = False
    """Whether tokens attend to later ones whatever the header says."""
    has_logits: bool = False
    """Whether an encoder nevertheless computes logits (diffusion)."""
    embeds_without_logits: bool = False
    """Whether there are no logits where embeddings are asked for, pooled or not."""
    wants_all_rows: bool = False
    """Whether logits are computed for every token, whatever is wanted."""
    never_mixes: bool = False
    """Whether a batch never mixes tokens and embeddings, as there are weights for either."""
    norms_input: bool = False
    """Whether the input is normed before the first layer."""
    gathers_behind_norm: bool = False
    """Whether the rows that are wanted are taken behind the norm that follows attention."""
    head_norm_kind: str = ""
    """Kind of the norms of heads where it is not that of the others."""
    hides_logits: int = 0
    """How many logits are overwritten with a lowest value."""
    head_width: str = "value"
    """Which key gives the width of a head: `value`, `rotated`, or `own` (keys and values have their own)."""


_WINDOW_4 = Window(period=4)
_PLAIN = Architecture(head_norm="none")
_LAYER_NORM = Architecture(head_norm="none", norm="layer", ffn="gelu_plain")
_GRANITE = Architecture(head_norm="none", rope="switch", scales_logits="always")
_GEMMA = Architecture(
    head_norm="none", ffn="gelu", scales_query=True, scales_embedding="always", scales_logits="soft_cap"
)
_SHARED = Architecture(expert_norm="key", expert_gate="key")
_DELTA = Architecture(
    attention="gated",
    recurrent="delta",
    recurrent_layers="interval",
    ffn_norm="post_attention_norm",
    post_attention_norm="",
    gathers_late=True,
    norms_before_gathering=True,
    positions=4,
    shared_expert="gated",
)
_BERT = Architecture(
    order="encoder", norm="layer", rope="none", head_norm="joined", is_encoder=True, ffn="gelu_plain"
)
_NEMOTRON_H = Architecture(
    recurrent="mamba2",
    recurrent_layers="no_kv_heads_no_ffn",
    head_norm="none",
    rope="none",
    order="single",
    ffn="relu_squared",
    expert_ffn="relu_squared",
    expert_norm="key",
    expert_gate="sigmoid",
    gathers_late=True,
    norms_before_gathering=True,
)
_DIFFUSION = Architecture(is_encoder=True, looks_ahead=True, has_head=True, has_logits=True)
_LFM2 = Architecture(
    recurrent="shortconv", recurrent_layers="no_kv_heads", residual_first="always",
    embeds_without_logits=True, window=Window(period=0, needs_key=True),
)  # fmt: skip

ARCHITECTURES: dict[str, Architecture] = {
    # One norm before each part, gated feed-forward, rope.
    "llama": _PLAIN,
    "deci": replace(_PLAIN, order="optional"),
    "xverse": _PLAIN,
    "qwen": _PLAIN,
    "qwen2": _PLAIN,
    "internlm2": _PLAIN,
    "exaone": _PLAIN,
    "ernie4_5": _PLAIN,
    "ernie4_5-moe": replace(_PLAIN, expert_gate="soft_max"),
    "pangu-embedded": _PLAIN,
    "paddleocr": replace(_PLAIN, positions=4),
    "maincoder": Architecture(head_norm="behind_rope"),
    "hunyuan_vl": Architecture(head_norm="behind_rope", positions=4),
    "qwen2vl": replace(_PLAIN, positions=4),
    "qwen2moe": replace(_PLAIN, expert_norm="no", shared_expert="divided"),
    "qwen3": Architecture(),
    "qwen3moe": Architecture(),
    "qwen3vl": Architecture(positions=4, has_deep_inputs=True),
    "qwen3vlmoe": Architecture(positions=4, has_deep_inputs=True),
    "hunyuan-dense": Architecture(head_norm="behind_rope"),
    "hunyuan-moe": Architecture(head_norm="behind_rope"),
    "smollm3": Architecture(head_norm="none", rope="step"),
    "refact": replace(_PLAIN, rope="none"),
    "baichuan": replace(_PLAIN, rope_blocks=32),
    "orion": replace(_PLAIN, norm="layer"),
    "seed_oss": replace(_PLAIN, ffn_norm="post_attention_norm", post_attention_norm=""),
    "arcee": replace(_PLAIN, ffn="relu_squared"),
    "apertus": Architecture(ffn="gelu_plain"),
    "mistral3": _PLAIN,
    "bitnet": replace(_PLAIN, embeds_head=True),
    "nanbeige": _PLAIN,
    "openelm": Architecture(residual_first="attention"),
    "cogvlm": replace(_PLAIN, wants_all_rows=True, never_mixes=True),
    "deepseek2-ocr": replace(_SHARED, head_norm="none"),
    "hy_v3": replace(_SHARED, expert_gate_default=2, gathers_late=True, norms_before_gathering=True),
    "chameleon": Architecture(order="swin", head_norm_kind="layer", hides_logits=8192),
    "talkie": Architecture(
        order="skipping", norms_input=True, head_norm="behind_rope", scales_logits="always"
    ),
    "olmo": replace(_PLAIN, norm="layer"),
    "olmoe": Architecture(head_norm="rows", expert_norm="no"),
    "phi3": Architecture(head_norm="none", ffn="fused", scales_query=True, residual_first="ffn"),
    "phimoe": Architecture(head_norm="none", ffn="fused", scales_query=True, residual_first="ffn"),
    "chatglm": replace(_PLAIN, ffn="fused"),
    "glm4": replace(_PLAIN, ffn="fused"),
    "glm4moe": replace(
        _SHARED, ffn_norm="post_attention_norm", post_attention_norm="", expert_gate_default=2
    ),
    "deepseek": replace(_PLAIN, expert_norm="no"),
    "dots1": _SHARED,
    "bailingmoe": replace(_SHARED, head_norm="none", expert_gate="soft_max"),
    "bailingmoe2": _SHARED,
    "minimax-m2": Architecture(head_norm="rows", expert_gate="key"),
    "dbrx": replace(_PLAIN, norm="layer", ffn_norm="attn_output_norm"),
    # Scaled.
    "granite": _GRANITE,
    "granitemoe": _GRANITE,
    "minicpm": replace(_GRANITE, rope="all", scales_input=True, scales_residual=True),
    "minicpm3": Architecture(
        attention="mla", scales_embedding="always", scales_residual=True, scales_hidden=True
    ),
    # Layer norms with biases, ungated feed-forward.
    "gpt2": replace(_LAYER_NORM, rope="none", has_position_table=True),
    "starcoder": replace(_LAYER_NORM, rope="none", has_position_table=True),
    "bloom": replace(_LAYER_NORM, rope="none"),
    "mpt": replace(_LAYER_NORM, rope="none", has_position_table=True, head_norm="joined"),
    "codeshell": _LAYER_NORM,
    "starcoder2": _LAYER_NORM,
    "nemotron": replace(_LAYER_NORM, ffn="relu_squared"),
    "jais2": replace(_LAYER_NORM, ffn="relu_squared"),
    "jais": replace(_LAYER_NORM, rope="none", ffn="silu"),
    # Both parts side by side.
    "phi2": replace(_LAYER_NORM, order="parallel", scales_query=True, parallel_sum="attention"),
    "falcon": replace(_LAYER_NORM, order="parallel", parallel_sum="onto_attention"),
    "gptneox": replace(_LAYER_NORM, order="parallel"),
    "stablelm": Architecture(norm="layer", order="stablelm"),
    "plamo": replace(_PLAIN, order="parallel", parallel_sum="onto_attention"),
    "command-r": Architecture(order="parallel", norm="layer", scales_logits="key"),
    "cohere2": Architecture(
        order="parallel", norm="layer", head_norm="none", rope="windowed", scales_logits="key",
        window=_WINDOW_4,
    ),
    # Norms behind the parts.
    "olmo2": Architecture(
        order="after", head_norm="rows", window=Window(period=4, needs_key=True),
    ),
    "exaone4": Architecture(
        order="after", rope="windowed_or_all",
        window=Window(period=4, default_tokens=4096, only_blocks=64),
    ),
    # Windows.
    "afmoe": replace(
        _SHARED, rope="step", scales_embedding="always", gates_result=True, expert_gate_default=2,
        window=Window(period=4, needs_key=True),
    ),
    "mellum": Architecture(window=Window(period=4, needs_key=True)),
    "cohere2moe": Architecture(
        order="parallel", norm="by_key", head_norm="none", rope="windowed_or_dense", scales_logits="key",
        shared_expert="halved", expert_norm="key", expert_gate="key", expert_gate_default=2,
        gathers_late=True, norms_before_gathering=True, window=Window(period=4, full_first=True),
    ),
    "arctic": replace(_PLAIN, order="dense_and_experts"),
    "mimo2": Architecture(
        head_norm="none", head_width="own", expert_gate="sigmoid", scales_result=True, keeps_hidden=True,
        window=Window(period=0),
    ),
    "smallthinker": Architecture(
        order="routed_first", head_norm="none", rope="windowed_or_all", expert_gate="key",
        window=Window(period=4, full_first=True, needs_key=True, forced_tokens=4096),
    ),
    "exaone-moe": replace(
        _SHARED, rope="windowed", window=Window(period=4, default_tokens=128),
    ),
    "gemma": replace(_GEMMA, scales_logits=""),
    "gemma2": replace(
        _GEMMA, default_soft_cap=30.0, caps_scores=True, window=Window(period=2, default_tokens=4096)
    ),
    "gemma3": replace(
        _GEMMA, head_norm="heads", scales_embedding="tokens", window=Window(period=6, needs_key=True)
    ),
    "gemma-embedding": replace(
        _GEMMA, head_norm="heads", scales_embedding="tokens", is_encoder=True, has_head=True,
        looks_ahead=True, window=Window(period=6),
    ),
    "gemma3n": Architecture(
        order="alternating", copies_head=True, cache_owners=20, scales_embedding="tokens",
        scales_logits="soft_cap", default_soft_cap=30.0, window=Window(period=5),
    ),
    "gemma4": Architecture(
        order="per_layer", copies_head=True, ffn="gelu", scales_embedding="tokens", scales_logits="soft_cap",
        gathers_late=True, norms_before_gathering=True, expert_ffn="gelu", expert_gate="soft_max",
        window=Window(period=0),
    ),
    "gpt-oss": Architecture(
        head_norm="none", head_width="rotated", ffn_norm="post_attention_norm", post_attention_norm="",
        expert_norm="no", expert_gate="soft_max_weight", expert_ffn="silu_limited", gathers_late=True,
        keeps_hidden=True,
        window=Window(period=2),
    ),
    "llama4": Architecture(
        head_norm="behind_rope", rope="step", expert_norm="no", expert_gate="sigmoid",
        weights_before_experts=True, scales_attention=True, bare_head_norm=True,
        window=Window(period=4, default_tokens=8192, forced_tokens=8192),
    ),
    "plamo3": Architecture(
        head_width="own", ffn="fused", window=Window(period=8, needs_key=True),
    ),
    "granite_swa": replace(_GRANITE, rope="all", window=Window(period=0)),
    "step35": Architecture(
        head_width="own", gates_result=True, expert_norm="key", expert_gate="key", expert_gate_default=2,
        gathers_late=True, keeps_hidden=True, window=Window(period=0),
    ),
    "laguna": replace(
        _SHARED, gates_result=True, expert_gate_default=2,
        window=Window(period=4, full_first=True, needs_key=True),
    ),
    "maple": Architecture(rope="windowed", limits_in_one=True, window=Window(period=0)),
    "muse-glimmer": Architecture(
        norms_input=True, rope="windowed", gates_result=True, gathers_behind_norm=True,
        scales_logits="always", window=Window(period=4),
    ),
    "spark2_5": Architecture(head_norm="none", ffn="gelu", gates_result=True, window=Window(period=0)),
    # Experts of their own kind.
    "grok": Architecture(
        head_norm="none", ffn="gelu", expert_ffn="gelu", scales_embedding="always", scales_logits="always",
        caps_scores=True, post_attention_norm="attn_output_norm", has_dense_beside=True,
        post_ffn_norm="post_ffw_norm layer_output_norm",
    ),
    "minimax-m3": replace(_SHARED, attention="blocks", indexer="behind_dense"),
    "grovemoe": Architecture(selects_by_sigmoid=True),
    # Compressed keys and values.
    "mistral4": Architecture(
        attention="mla", expert_norm="key", expert_gate="key", is_precise_down=True,
    ),
    "deepseek2": Architecture(attention="mla", expert_norm="key", expert_gate="key"),
    "deepseek32": Architecture(attention="indexed", indexer="all", expert_norm="key", expert_gate="key"),
    "glm-dsa": Architecture(
        attention="indexed", indexer="shared", expert_norm="key", expert_gate="key", expert_gate_default=2,
    ),
    "dots3note": replace(
        _SHARED, attention="indexed_or_near", indexer="all", window=Window(period=0), gates_result=True,
    ),
    "hy_v4": replace(
        _SHARED, attention="mla", indexer="all", gates_result=True, order="hyper", limits_in_one=True,
    ),
    "deepseek4": replace(
        _SHARED, order="compressed", window=Window(period=0), limits_in_one=True, never_mixes=True,
    ),
    "hrm_text": Architecture(order="stacks", gates_result=True),
    # An encoder and a decoder.
    "t5": Architecture(order="decoder", reads_encoder=True, rope="none", head_norm="none", ffn="gelu"),
    "t5encoder": Architecture(
        order="encoder_half", rope="none", head_norm="none", ffn="gelu", is_encoder=True, has_head=True,
        has_idle_cache=True,
    ),
    # Recurrent.
    "mamba": Architecture(attention="", recurrent="mamba", recurrent_layers="all"),
    "mamba2": Architecture(attention="", recurrent="mamba2", recurrent_layers="all"),
    "rwkv6": Architecture(attention="", norm="layer", recurrent="rwkv6", recurrent_layers="all"),
    "rwkv7": Architecture(attention="", norm="layer", recurrent="rwkv7", recurrent_layers="all"),
    "jamba": Architecture(
        recurrent="mamba", recurrent_layers="no_kv_heads", rope="none", head_norm="none",
        residual_first="always", expert_norm="no",
    ),
    "falcon-h1": Architecture(recurrent="mamba2", recurrent_layers="beside", head_norm="none"),
    "granitehybrid": Architecture(
        recurrent="mamba2", recurrent_layers="no_kv_heads", head_norm="none", rope="switch",
        scales_logits="key",
    ),
    "nemotron_h": _NEMOTRON_H,
    "nemotron_h_moe": _NEMOTRON_H,
    "lfm2": _LFM2,
    "lfm2moe": replace(_LFM2, expert_gate="key"),
    "qwen35": _DELTA,
    "qwen35moe": _DELTA,
    "qwen4exp": replace(_DELTA, order="pooled", indexer="tensors", gathers_late=False),
    "qwen3next": replace(_DELTA, positions=1, gate_is_late=True, recurrent="delta_joint"),
    "rwkv6qwen2": Architecture(attention="", recurrent="qrwkv6", recurrent_layers="all"),
    "arwkv7": Architecture(attention="", recurrent="arwkv7", recurrent_layers="all"),
    "plamo2": Architecture(
        recurrent="mamba_by_heads", recurrent_layers="no_kv_heads", head_width="own", ffn="fused",
    ),
    "kimi-linear": Architecture(
        attention="mla", rope="none", recurrent="kimi_delta", recurrent_layers="no_kv_heads",
        expert_gate="key",
    ),
    "kimi-k3": Architecture(
        attention="mla", rope="none", gates_result=True, order="banked", recurrent="kimi_delta",
        recurrent_layers="no_kv_heads", expert_norm="key", expert_gate="key", ffn="bounded",
    ),
    "bailingmoe3": Architecture(
        attention="mla", gates_result=True, recurrent="bounded_delta", recurrent_layers="no_kv_heads",
        expert_norm="key", expert_gate="key", gathers_late=True, norms_before_gathering=True, positions=4,
    ),
    "minimax-01": Architecture(
        recurrent="lightning", recurrent_layers="interval", full_interval=8, order="normed_residual",
    ),
    # Encoders.
    "bert": replace(_BERT, has_position_table=True),
    "nomic-bert": replace(_BERT, rope="all", ffn="silu"),
    "nomic-bert-moe": replace(_BERT, rope="all", expert_norm="no"),
    "jina-bert-v2": replace(_BERT, ffn="fused_if_ungated"),
    "jina-bert-v3": replace(_BERT, rope="all"),
    "modern-bert": Architecture(
        norm="layer", head_norm="none", is_encoder=True, ffn="fused",
        window=Window(period=3, full_first=True, needs_key=True),
    ),
    "eurobert": replace(_PLAIN, is_encoder=True),
    "neo-bert": replace(_PLAIN, is_encoder=True, ffn="fused"),
    "llama-embed": replace(_PLAIN, is_encoder=True, has_idle_cache=True),
    # Diffusion: no cache, but logits.
    "dream": replace(_DIFFUSION, head_norm="none"),
    "llada": replace(_DIFFUSION, head_norm="none"),
    "llada-moe": replace(_DIFFUSION, expert_norm="no"),
    "rnd1": _DIFFUSION,
}  # fmt: skip
