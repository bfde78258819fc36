"""From the settings of a run to the load that the estimator takes; the rules of `launch.settings.resolve`.

Source: llama_context's constructor and the server's own defaults of llama.cpp.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from llamaops.estimate.architectures import ARCHITECTURES
from llamaops.estimate.model import Model
from llamaops.estimate.plan import Build, Load
from llamaops.facts.ggml_types import BLOCKS
from llamaops.launch.settings import (
    DEFAULT_BATCH_TOKENS,
    DEFAULT_UBATCH_TOKENS,
    MAX_TOKENS,
    LaunchSettings,
    Plan,
    resolve,
)

FrontEnd = Literal["server", "completion", "bench"]
TYPE_IDS = {name.lower(): number for number, (name, _, _) in BLOCKS.items()}
F16 = 1
SHALLOW = 100
"""Smaller build numbers come from a clone without history and tell nothing."""
LAST_WITHOUT_MIXING, LAST_VERSION_WITHOUT_MIXING, LAST_BY_SEQUENCE = 11434, (0, 5, 0), 10434
FIRST_WITH_MIXING = 11669
"""The first build that was seen to mix inputs; those between have either habit."""
OLDEST = Build(
    takes_embeddings=False,
    mixes_inputs=False,
    pads_encoders=False,
    gathers_states=False,
    rotates_cache=False,
    projects_rows=False,
    heeds_storage=False,
    norms_by_mean=False,
)
"""What takes least: the habits of builds before spring 2026."""
EVERY_LAYER = 10**6
POOLINGS = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}
NO_FLASH = frozenset({"grok"})


def load_for(  # noqa: PLR0913 - what an operator can set
    model: Model,
    settings: LaunchSettings,
    *,
    front_end: FrontEnd = "server",
    host_experts: int = 0,
    offloads_cache: bool = True,
    full_window_cache: bool = False,
    pooling: str | None = None,
    card: str = "",
    build: Build | None = None,
) -> tuple[str, Load]:
    """Return the plan in words, and the load."""
    settings = _each_in_full(model, settings, front_end)
    plan = resolve(
        settings,
        n_ctx_train=model.trained_context if model.trained_context > 0 else None,
        slots="auto" if front_end == "server" else "single",
    )
    context = plan.n_ctx or 0
    sequence = plan.n_ctx_seq or context
    embeddings = settings.embeddings
    n_batch, n_ubatch = _batch(model, settings, plan)
    one_each = front_end == "server" and not embeddings and not _has_two_halves(model)
    load = Load(
        context_tokens=context,
        sequence_tokens=sequence,
        slots=plan.n_slots,
        is_unified=plan.kv_unified,
        batch_tokens=min(n_ubatch, context) if context else n_ubatch,
        outputs=plan.n_slots if one_each else n_batch,
        key_type=TYPE_IDS.get(settings.cache_type_k or "f16", F16),
        value_type=TYPE_IDS.get(settings.cache_type_v or "f16", F16),
        flash_attention=settings.flash_attn != "off" and model.architecture not in NO_FLASH,
        full_window_cache=full_window_cache,
        embeddings=embeddings,
        pooling=model.number("pooling_type") if pooling is None else POOLINGS.get(pooling, 0),
        card=card,
        flash_is_auto=settings.flash_attn in {None, "auto"} and not _is_quantized(settings.cache_type_v),
        gpu_layers=_gpu_layers(model, settings.n_gpu_layers),
        offloads_cache=offloads_cache,
        host_experts=host_experts,
        build=build or Build(),
    )
    return plan.text, load


def _each_in_full(model: Model, settings: LaunchSettings, front_end: FrontEnd) -> LaunchSettings:
    """Return the settings of a completion whose slots each get the whole context where none is asked for.

    Source: common_params_fit_impl; of a server `resolve` does the same.
    """
    slots = settings.parallel or 1
    if front_end != "completion" or settings.ctx_size or settings.kv_unified or slots == 1:
        return settings
    context = model.trained_context * slots
    return replace(settings, ctx_size=context if 0 < context <= MAX_TOKENS else None)


def _is_quantized(cache_type: str | None) -> bool:
    return BLOCKS[TYPE_IDS.get(cache_type or "f16", F16)][1] > 1


def _batch(model: Model, settings: LaunchSettings, plan: Plan) -> tuple[int, int]:
    """Return batch and physical batch; the context cuts the batch only of a model that looks back only.

    Units: tokens. Source: llama_context's constructor.
    """
    architecture = ARCHITECTURES.get(model.architecture)
    looks_ahead = architecture is not None and architecture.looks_ahead
    if model.value("attention.causal", default=True) and not looks_ahead:
        return plan.n_batch, plan.n_ubatch
    batch = settings.batch_size or DEFAULT_BATCH_TOKENS
    ubatch = min(batch, settings.ubatch_size or DEFAULT_UBATCH_TOKENS)
    return (ubatch if settings.embeddings else batch), ubatch


def build_of(number: int | None, semver: str | None) -> Build:
    """Return the habits of a build; one that does not say which it is counts as recent.

    Source: measured on b10434 and b11669 (0.7.0), read in the source of b11434 (0.5.0). Between those the
    larger need is taken.
    """
    parts = tuple(int(part) for part in (semver or "").split(".") if part.isdecimal())
    if number is not None and number > SHALLOW:
        return Build(
            mixes_inputs=number > LAST_WITHOUT_MIXING,
            pads_encoders=number > LAST_WITHOUT_MIXING,
            gathers_states=number > LAST_WITHOUT_MIXING,
            projects_rows=number > LAST_BY_SEQUENCE,
            heeds_storage=number > LAST_BY_SEQUENCE,
            presses_apart=number > LAST_BY_SEQUENCE,
            norms_by_mean=number > LAST_BY_SEQUENCE,
            caches_unused_layers=number <= LAST_BY_SEQUENCE,
            loads_drafts=number < LAST_BY_SEQUENCE,
        )
    recent = not parts or parts > LAST_VERSION_WITHOUT_MIXING
    return Build(mixes_inputs=recent, pads_encoders=recent, gathers_states=recent)


def least_build_of(number: int | None, semver: str | None) -> Build:
    """Return the habits that take least of all builds that it could be; those of `build_of` where it is told.

    Source: as of `build_of`.
    """
    found = build_of(number, semver)
    if number is not None and number > SHALLOW:
        is_between = LAST_WITHOUT_MIXING < number < FIRST_WITH_MIXING
        return (
            replace(found, mixes_inputs=False, pads_encoders=False, gathers_states=False)
            if is_between
            else found
        )
    return found if semver else OLDEST


def _has_two_halves(model: Model) -> bool:
    """Return whether there are encoder and decoder: then rows of a whole batch may be wanted."""
    architecture = ARCHITECTURES.get(model.architecture)
    return architecture is not None and architecture.order in {"decoder", "encoder_half"}


def _gpu_layers(model: Model, text: str | None) -> int:
    """Return how many units go to the card; without being told, none: the engine would use a card it has."""
    if text is None or text == "auto":
        return 0
    units = model.blocks * model.loops + 1
    return units if text == "all" else min(max(0, int(text)), units)
