"""Preflight: what is on this host, what each program really supports, and what would stop a server."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llamaops.checks import registry
from llamaops.facts.asked import AskedFacts
from llamaops.operations.choose import choose_bin_dir, choose_model, embedded_engine
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.operations.side_by_side import side_by_side
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine
from llamaops.system.paths import parent

if TYPE_CHECKING:  # each task below imports its own: the first starts programs before the last is loaded
    from llamaops.facts.accelerator import AcceleratorFacts
    from llamaops.facts.binaries import BinariesFacts
    from llamaops.facts.gguf_file import GgufFacts
    from llamaops.facts.host import HostFacts
    from llamaops.facts.model_identity import IdentityFacts

AREAS = ("host", "accelerator", "binary", "model", "identity", "knowledge")
NOT_COVERED = ("nothing was loaded: whether the model loads and generates is not shown by a preflight",)


def preflight(session: Session, machine: Machine, settings: Settings) -> None:
    """Collect host, accelerators, programs and, where one was named, the model, all side by side."""
    bin_dir = choose_bin_dir(settings, machine)
    embedded = None if bin_dir is not None else embedded_engine(machine)
    if embedded is not None:
        bin_dir = parent(embedded.path)
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
    tasks: dict[str, Callable[[], Any]] = {"binaries": lambda: _binaries(machine, bin_dir)}
    if model_path is not None:
        tasks["model"] = lambda: _model(machine, model_path)
    tasks["accelerators"] = lambda: _accelerators(machine)
    tasks["host"] = lambda: _host(machine, model_path)
    tasks["nothing"] = _load_the_rest

    def done(name: str, group: Any) -> None:  # noqa: ANN401 - each task has a type of its own
        if name == "model":
            session.add("model", group[0])
            session.add("identity", group[1])
        elif name != "nothing":
            session.add(name, group)
        if name == "accelerators":
            session.search_evidence()

    with session.step("look", "look at host, accelerators, programs and model, side by side"):
        seen = side_by_side(tasks, done=done)
    from llamaops.operations.knowledge import add_build_names, executed, preferred

    found = seen["binaries"].found
    loader = preferred(found.value if isinstance(found, Known) else ())
    add_build_names(session, machine, executed(loader))
    session.judge(*AREAS)


def _binaries(machine: Machine, bin_dir: str | None) -> BinariesFacts:
    from llamaops.facts.binaries import collect_binaries

    return collect_binaries(machine, bin_dir=bin_dir)


def _accelerators(machine: Machine) -> AcceleratorFacts:
    from llamaops.facts.accelerator import collect_accelerators

    return collect_accelerators(machine)


def _host(machine: Machine, model_path: str | None) -> HostFacts:
    from llamaops.facts.host import collect_host

    return collect_host(machine, model_path=model_path)


def _model(machine: Machine, model_path: str) -> tuple[GgufFacts, IdentityFacts]:
    from llamaops.facts.model_look import collect_model

    return collect_model(machine, model_path)


def _load_the_rest() -> None:
    """Load what judges and writes while the programs run."""
    registry.load(AREAS)
    for name in ("operations.knowledge", "render.markdown_text", "render.summary", "render.view"):
        importlib.import_module(f"llamaops.{name}")
