"""What can be asked of an engine, checked before anything starts, and what the engine makes of it.

The engine reads `8k` as 8 and `1e3` as 1 without a word, binds port 99999 as 34463, pads contexts to
256 and splits or shares them between slots. So numbers are checked here, and the effective values are
worked out here and later compared with what the engine reports.
"""

from __future__ import annotations

import re
from typing import Literal

from llamaops.errors import UsageError
from llamaops.schema.shape import Shape

PAD_TOKENS = 256
DEFAULT_BATCH_TOKENS = 2048
DEFAULT_UBATCH_TOKENS = 512
AUTO_SLOTS = 4
MAX_SLOTS = 256
MAX_PORT = 65535
MAX_TOKENS = 2**31 - 1
MAX_SEED = 2**32 - 1
CACHE_TYPES = frozenset({"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"})
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class LaunchSettings(Shape, frozen=True, kw_only=True):
    """What is asked of one engine; None leaves it to the engine. Checked by `validate`."""

    model_path: str
    """The model file; an empty path would start a router that answers 200 for ever."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 0
    """Port to listen on; 0 lets the caller pick a free one before the start."""
    exposed: bool = False
    """Whether the operator decided to listen beyond loopback."""
    alias: str | None = None
    """One-time name by which our own server is told from another one."""
    ctx_size: int | None = None
    """Context in tokens, for all slots together."""
    parallel: int | None = None
    """Slots."""
    kv_unified: bool | None = None
    """Whether all slots share one KV cache."""
    batch_size: int | None = None
    """Logical batch in tokens."""
    ubatch_size: int | None = None
    """Physical batch in tokens."""
    n_gpu_layers: str | None = None
    """A number, `auto` or `all`."""
    device: str | None = None
    """Devices to offload to, or `none`."""
    flash_attn: str | None = None
    """`on`, `off` or `auto`."""
    cache_type_k: str | None = None
    """Type of the K cache."""
    cache_type_v: str | None = None
    """Type of the V cache."""
    load_mode: str | None = None
    """`auto`, `mmap`, `none`, `mlock` or `dio`."""
    threads: int | None = None
    """Threads for generation."""
    seed: int | None = None
    """Seed of the sampler."""
    metrics: bool | None = None
    """Whether /metrics is on."""
    slots: bool | None = None
    """Whether /slots is on."""
    embeddings: bool = False
    """Whether the server serves embeddings."""
    api_key_file: str | None = None
    """File with API keys; a key never goes on a command line, where every user of the host sees it."""
    warmup: bool = True
    """Whether the engine runs the model once before it is ready."""
    evidence: bool = True
    """Whether to ask for the verbosity that shows where the weights lie."""
    extra: tuple[str, ...] = ()
    """The operator's own flags, as given after `--`."""


class Plan(Shape, frozen=True, kw_only=True):
    """What the engine will make of the settings, as far as it can be told beforehand."""

    n_ctx: int | None
    """Context of all sequences; none where the engine decides by the memory that is free."""
    n_ctx_seq: int | None
    """Context that memory is paid for, for each sequence."""
    n_slots: int
    """Slots."""
    n_ctx_slot: int | None
    """Context that a slot will report, capped by what the model was trained for."""
    kv_unified: bool
    """Whether all slots share one KV cache."""
    n_batch: int
    """Logical batch in tokens."""
    n_ubatch: int
    """Physical batch in tokens."""
    notes: tuple[str, ...] = ()
    """Differences between what was asked and what will be, in one sentence each."""

    @property
    def text(self) -> str:
        """Return the plan in one line."""
        ctx = "the engine's choice" if self.n_ctx is None else f"{self.n_ctx} tokens"
        slot = "" if self.n_ctx_slot is None else f" of {self.n_ctx_slot}"
        shared = "sharing one KV cache" if self.kv_unified else "with a KV cache each"
        plural = "s" if self.n_slots > 1 else ""
        return (
            f"context {ctx}, {self.n_slots} slot{plural}{slot} {shared}, batch {self.n_batch}/{self.n_ubatch}"
        )


def plain_number(flag: str, text: str, *, low: int, high: int) -> int:
    """Read a whole number in plain decimal digits.

    Raises: UsageError for `8k`, `1e3`, `0x100` (the engine would read 8, 1 and 0) and out of range.
    """
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise UsageError(
            f"{flag} {text!r}: not a plain whole number",
            hint="the engine would read only its first digits; write it out, such as 8192",
        )
    return in_range(flag, int(text), low=low, high=high)


def in_range(flag: str, value: int, *, low: int, high: int) -> int:
    """Return the value.

    Raises: UsageError when it is out of range.
    """
    if not low <= value <= high:
        raise UsageError(f"{flag} {value}: has to be from {low} to {high}")
    return value


_RANGES: tuple[tuple[str, str, int, int], ...] = (
    ("port", "--port", 0, MAX_PORT),
    ("parallel", "--parallel", 1, MAX_SLOTS),
    ("ctx_size", "--ctx-size", 0, MAX_TOKENS),
    ("batch_size", "--batch-size", 1, MAX_TOKENS),
    ("ubatch_size", "--ubatch-size", 1, MAX_TOKENS),
    ("threads", "--threads", 1, 4096),
    ("seed", "--seed", -1, MAX_SEED),
)
_WORDS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("flash_attn", "--flash-attn", frozenset({"on", "off", "auto"})),
    ("cache_type_k", "--cache-type-k", CACHE_TYPES),
    ("cache_type_v", "--cache-type-v", CACHE_TYPES),
    ("load_mode", "--load-mode", frozenset({"auto", "mmap", "none", "mlock", "mmap+mlock", "dio"})),
)


def validate(settings: LaunchSettings) -> LaunchSettings:
    """Return the settings when they can be meant.

    Raises: UsageError that names the flag.
    """
    if not settings.model_path.strip():
        raise UsageError(
            "--model is empty", hint="without a model llama-server becomes a router; name a file"
        )
    for name, flag, low, high in _RANGES:
        value = getattr(settings, name)
        if value is not None:
            in_range(flag, value, low=low, high=high)
    for name, flag, words in _WORDS:
        word = getattr(settings, name)
        if word is not None and word not in words:
            raise UsageError(f"{flag} {word!r}: has to be one of {', '.join(sorted(words))}")
    if settings.n_gpu_layers is not None and settings.n_gpu_layers not in {"auto", "all"}:
        plain_number("--n-gpu-layers", settings.n_gpu_layers, low=-1, high=100_000)
    _check_exposure(settings)
    _check_quantized_cache(settings)
    return settings


def _check_exposure(settings: LaunchSettings) -> None:
    if "," in settings.host or not settings.host.strip():
        raise UsageError(f"--host {settings.host!r}: one address", hint="use 127.0.0.1")
    if settings.host not in LOOPBACK and not settings.host.startswith("127.") and not settings.exposed:
        raise UsageError(
            f"--host {settings.host} would serve beyond this machine",
            hint="use 127.0.0.1, or say that exposure was decided",
        )


def _check_quantized_cache(settings: LaunchSettings) -> None:
    quantized = settings.cache_type_v not in {None, "f32", "f16", "bf16"}
    if quantized and settings.flash_attn == "off":
        raise UsageError(
            f"--cache-type-v {settings.cache_type_v} with --flash-attn off: a quantized V cache needs it",
            hint="use --flash-attn on, or --cache-type-v f16",
        )


def resolve(
    settings: LaunchSettings, *, n_ctx_train: int | None, slots: Literal["auto", "single"] = "auto"
) -> Plan:
    """Work out what the engine will make of the settings.

    Units: tokens. `slots`: what a build does without --parallel: `auto` is four slots sharing one KV
    cache (since late 2025), `single` is one slot. The fit step may still lower a context that was not
    asked for.
    """
    n_slots = settings.parallel or (AUTO_SLOTS if slots == "auto" else 1)
    # Where the server chooses the slots, it shares the cache whatever was asked (server.cpp).
    unified = bool(settings.kv_unified) or (settings.parallel is None and slots == "auto")
    asked = settings.ctx_size or n_ctx_train
    if asked is not None and not settings.ctx_size and not unified and slots == "auto":
        asked *= n_slots  # with nothing asked and a split cache the engine gives each slot the whole
    n_ctx = None if asked is None else pad(asked)
    n_ctx_seq = n_ctx
    if n_ctx is not None and not unified:
        n_ctx_seq = pad(n_ctx // n_slots)
        n_ctx = n_ctx_seq * n_slots
    slot = n_ctx_seq if n_ctx_train is None or n_ctx_seq is None else min(n_ctx_seq, n_ctx_train)
    n_batch, n_ubatch = _batches(settings, asked)
    return Plan(
        n_ctx=n_ctx,
        n_ctx_seq=n_ctx_seq,
        n_slots=n_slots,
        n_ctx_slot=slot,
        kv_unified=unified,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        notes=tuple(_notes(settings, n_ctx, n_ctx_seq, n_ctx_train, unified=unified, n_slots=n_slots)),
    )


def pad(tokens: int) -> int:
    """Round up to the 256 tokens that contexts come in; at least one block."""
    return max(PAD_TOKENS, -(-tokens // PAD_TOKENS) * PAD_TOKENS)


def _batches(settings: LaunchSettings, n_ctx: int | None) -> tuple[int, int]:
    n_batch = settings.batch_size or DEFAULT_BATCH_TOKENS
    n_ubatch = settings.ubatch_size or DEFAULT_UBATCH_TOKENS
    if settings.embeddings:
        n_batch = min(n_batch, n_ubatch)
    if n_ctx is not None:
        n_batch = min(n_batch, n_ctx)
    return n_batch, min(n_batch, n_ubatch)


def _notes(
    settings: LaunchSettings,
    n_ctx: int | None,
    n_ctx_seq: int | None,
    n_ctx_train: int | None,
    *,
    unified: bool,
    n_slots: int,
) -> list[str]:
    notes = []
    if settings.ctx_size and n_ctx and n_ctx != settings.ctx_size:
        notes.append(
            f"--ctx-size {settings.ctx_size} becomes {n_ctx}: contexts come in blocks of {PAD_TOKENS}"
        )
    if n_ctx_seq and n_ctx_train and n_ctx_seq > n_ctx_train:
        notes.append(
            f"a slot is capped at the trained {n_ctx_train} tokens, and memory is paid for {n_ctx_seq}"
        )
    if unified and settings.kv_unified is False:
        notes.append("--no-kv-unified has no effect without --parallel")
    if unified and n_slots > 1:
        notes.append(f"{n_slots} slots share the context: together they hold no more than one")
    return notes
