"""Predict what a load that is about to happen will take, so that the record can hold it against the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from llamaops.estimate.fit_facts import FitFacts
from llamaops.estimate.resolve import EVERY_LAYER, FrontEnd
from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.capabilities import fold
from llamaops.facts.host import HostFacts
from llamaops.launch.settings import LaunchSettings
from llamaops.operations.fit import FitRequest, builds_of, fit_facts, read_model
from llamaops.operations.session import Session
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine

# Of the operator's own flags, those that change the estimate: the members of the request, and their values
# where the flag is a switch.
RANKS: dict[str, object] = {"embeddings": True, "pooling": "rank"}
SWITCHES: dict[str, dict[str, object]] = {
    "--swa-full": {"full_window_cache": True},
    "--no-kv-offload": {"offloads_cache": False}, "-nkvo": {"offloads_cache": False},
    "--cpu-moe": {"cpu_moe_layers": EVERY_LAYER}, "-cmoe": {"cpu_moe_layers": EVERY_LAYER},
    "--embedding": {"embeddings": True}, "--embeddings": {"embeddings": True},
    "--rerank": RANKS, "--reranking": RANKS,
}  # fmt: skip
VALUES = {
    "--n-cpu-moe": "cpu_moe_layers", "-ncmoe": "cpu_moe_layers",
    "--mmproj": "mmproj", "-mm": "mmproj",
    "--flash-attn": "flash_attn", "-fa": "flash_attn",
    "--pooling": "pooling",
}  # fmt: skip
NOT_PREDICTED = frozenset(
    {"--model-draft", "-md", "--spec-draft-model", "--lora", "--lora-scaled", "--control-vector",
     "--control-vector-scaled", "--override-tensor", "-ot", "--tensor-split", "-ts", "--split-mode", "-sm",
     "--rpc", "--model-vocoder", "-mv"}
)  # fmt: skip
"""Flags after which more, or elsewhere, is allocated than the estimate knows of."""


def front_end_of(program: str) -> FrontEnd:
    """Return which front end a program is."""
    return "server" if "server" in Path(program).name else "completion"


def add_fit(session: Session, machine: Machine, settings: LaunchSettings, front_end: FrontEnd) -> None:
    """Add the estimate to the record; `fit.prediction-agrees-with-load` compares it with the load."""
    model = read_model(machine, settings.model_path)
    if model is None or session.group(FitFacts) is not None:
        return
    unknown = [word for word in settings.extra if fold(word) in NOT_PREDICTED]
    if unknown:
        session.not_covered.append(
            f"memory was not predicted: what {unknown[0]} takes is not known beforehand"
        )
        return
    own = own_flags(settings.extra)
    settings = msgspec.structs.replace(
        settings,
        flash_attn=own.pop("flash_attn", settings.flash_attn),
        embeddings=own.pop("embeddings", settings.embeddings),
    )
    binary = session.group(BinaryFacts)
    if settings.n_gpu_layers in {None, "auto"} and binary is not None and _has_devices(binary):
        settings = msgspec.structs.replace(settings, n_gpu_layers="all")
    build, least = (None, None) if binary is None else builds_of(binary.version)
    request = FitRequest(
        model_path=settings.model_path,
        settings=settings,
        front_end=front_end,
        build=build,
        least_build=least,
        **own,
    )
    host, accelerators = session.group(HostFacts), session.group(AcceleratorFacts)
    session.add("fit", fit_facts(model, request, host, accelerators, machine, seeks_room=False))


def own_flags(words: tuple[str, ...]) -> dict[str, Any]:
    """Return what the operator's own flags change of the request; the last of several counts, as usual."""
    found: dict[str, Any] = {}
    for word, value in zip(words, (*words, "")[1:], strict=True):
        name = fold(word)
        if name in SWITCHES:
            found |= SWITCHES[name]
        elif name in VALUES:
            found[VALUES[name]] = int(value) if VALUES[name] == "cpu_moe_layers" else value
    return found


def _has_devices(binary: BinaryFacts) -> bool:
    return isinstance(binary.devices, Known) and bool(binary.devices.value)
