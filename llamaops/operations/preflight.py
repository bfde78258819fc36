"""Preflight: what is on this host, what each program really supports, and what would stop a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathlib import Path

from llamaops.facts.accelerator import collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import collect_binaries
from llamaops.facts.host import collect_host
from llamaops.facts.model_look import collect_model
from llamaops.operations.choose import choose_bin_dir, choose_model, embedded_engine
from llamaops.operations.knowledge import add_build_names, executed, preferred
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.operations.side_by_side import side_by_side
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine

NOT_COVERED = ("nothing was loaded: whether the model loads and generates is not shown by a preflight",)


def preflight(session: Session, machine: Machine, settings: Settings) -> None:
    """Collect host, accelerators, programs and, where one was named, the model, all side by side."""
    bin_dir = choose_bin_dir(settings, machine)
    embedded = None if bin_dir is not None else embedded_engine(machine)
    if embedded is not None:
        bin_dir = str(Path(embedded.path).parent)
        session.note(f"no llama.cpp on PATH: looking at the {embedded.origin}")
    # A model is only judged where one was named, or where everything is embedded anyway.
    choice = choose_model(settings, machine) if settings.model is not None or embedded else None
    model_path = choice.path if choice else None
    promised: tuple[BoundaryName, ...] = (
        ("host", "binary", "model_file") if model_path else ("host", "binary")
    )
    session.begin(promised, NOT_COVERED)
    session.add(
        "asked",
        AskedFacts(
            via="preflight",
            model_path=model_path,
            ctx_size=settings.ctx_size,
            parallel=settings.parallel,
            n_gpu_layers=settings.n_gpu_layers,
            threads=settings.threads,
            expect_device=settings.expect_device,
        ),
    )
    tasks: dict[str, Callable[[], Any]] = {
        "binaries": lambda: collect_binaries(machine, bin_dir=bin_dir),
        "accelerators": lambda: collect_accelerators(machine),
        "host": lambda: collect_host(machine, model_path=model_path),
    }
    if model_path is not None:
        tasks["model"] = lambda: collect_model(machine, model_path)
    with session.step("look", "look at host, accelerators, programs and model, side by side"):
        seen = side_by_side(tasks)
    if model_path is not None:
        seen["model"], seen["identity"] = seen["model"]
    for name in ("host", "accelerators", "binaries", "model", "identity"):
        if name in seen:
            session.add(name, seen[name])
    found = seen["binaries"].found
    loader = preferred(found.value if isinstance(found, Known) else ())
    add_build_names(session, machine, executed(loader))
    session.judge("host", "accelerator", "binary", "model", "identity", "knowledge")
