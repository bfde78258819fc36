"""Predict what a load that is about to happen will take, so that the record can hold it against the log."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llamaops.estimate.fit_facts import FitFacts
from llamaops.estimate.plan import Build
from llamaops.estimate.resolve import FrontEnd, build_of, least_build_of
from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.host import HostFacts
from llamaops.launch.settings import LaunchSettings
from llamaops.operations.fit import FitRequest, fit_facts, read_model
from llamaops.operations.session import Session
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine


def front_end_of(program: str) -> FrontEnd:
    """Return which front end a program is."""
    return "server" if "server" in Path(program).name else "completion"


def add_fit(session: Session, machine: Machine, settings: LaunchSettings, front_end: FrontEnd) -> None:
    """Add the estimate to the record; `fit.prediction-agrees-with-load` compares it with the load."""
    model = read_model(machine, settings.model_path)
    if model is None or session.group(FitFacts) is not None:
        return
    binary = session.group(BinaryFacts)
    if settings.n_gpu_layers in {None, "auto"} and binary is not None and _has_devices(binary):
        settings = msgspec.structs.replace(settings, n_gpu_layers="all")
    build, least = (None, None) if binary is None else builds_of_binary(binary)
    request = FitRequest(
        model_path=settings.model_path,
        settings=settings,
        front_end=front_end,
        build=build,
        least_build=least,
    )
    host, accelerators = session.group(HostFacts), session.group(AcceleratorFacts)
    session.add("fit", fit_facts(model, request, host, accelerators, machine, seeks_room=False))


def builds_of_binary(binary: BinaryFacts) -> tuple[Build, Build]:
    """Return the habits of the build that a program says it is, and the least that it could take."""
    number = binary.version.build.value if isinstance(binary.version.build, Known) else None
    semver = binary.version.semver.value if isinstance(binary.version.semver, Known) else None
    return build_of(number, semver), least_build_of(number, semver)


def _has_devices(binary: BinaryFacts) -> bool:
    return isinstance(binary.devices, Known) and bool(binary.devices.value)
