"""What the operator asked for: the other side of most comparisons."""

from __future__ import annotations

from llamaops.schema.shape import Shape


class AskedFacts(Shape, frozen=True, kw_only=True):
    """The run as it was asked for; None means that the operator left it to the engine or to us.

    These are plain values, not facts: what was asked is always known.
    """

    via: str = "server"
    """`completion`, `server` (we start it) or `attached` (it already runs)."""
    model_path: str | None = None
    """The model file as given."""
    binary_path: str | None = None
    """The program that is to be run, as resolved."""
    alias: str | None = None
    """The one-time alias by which our own server is told from another one."""
    host: str | None = None
    """Address asked for."""
    port: int | None = None
    """Port asked for; 0 is any free one."""
    ctx_size: int | None = None
    """Tokens asked for with --ctx-size."""
    parallel: int | None = None
    """Slots asked for with --parallel."""
    kv_unified: bool | None = None
    """Whether a KV cache shared by all slots was asked for."""
    n_gpu_layers: str | None = None
    """As given: a number, `auto` or `all`."""
    threads: int | None = None
    """Threads asked for with --threads."""
    mlock: bool = False
    """Whether the model is to be locked in memory (--mlock, or a load mode with mlock)."""
    expect_device: str | None = None
    """Device that has to hold weights, such as `Vulkan0` or `CUDA`; a prefix of the device name."""
    max_tokens: int | None = None
    """Bound on generated tokens."""
    api_key: bool = False
    """Whether a key is used; never the key."""
    metrics: bool | None = None
    """Whether /metrics was switched on; None when we do not know (a server that already ran)."""
    slots: bool | None = None
    """Whether /slots was left on; None when we do not know."""
    embeddings: bool = False
    """Whether the server was started for embeddings."""
    reranking: bool = False
    """Whether the server was started for ranking documents (--reranking)."""
    models: tuple[str, ...] = ()
    """Names of models to ask a running server for (--model); a router may load them for it."""
    sleep_idle_s: int | None = None
    """Seconds of idleness after which the server was told to sleep (--sleep-idle-seconds)."""
