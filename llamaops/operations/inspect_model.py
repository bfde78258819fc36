"""Inspect a model file: what it is, whether all of it is there, what belongs to it and what knows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import msgspec

from llamaops.facts import gguf_probe
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import facts_of
from llamaops.facts.identity_derive import identity_of
from llamaops.operations.session import Session
from llamaops.system.machine import Machine

if TYPE_CHECKING:
    from llamaops.facts.companions import Use
    from llamaops.facts.gguf_probe import Probe
    from llamaops.system.ports import System

NOT_COVERED = ("the tensor data itself: its length is checked, its values are not read",)


REMOTE = ("hf:", "https://", "http://")
Meter = Callable[[str], Callable[[int, int], None] | None]


def _no_meter(_label: str) -> None:
    return None


class InspectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at beyond the header; everything else stays cheap."""

    path: str
    companions: dict[Use, list[str]] = {}
    """Projectors, adapters and drafts to hold against the model."""
    ctx_size: int | None = None
    """Context that is meant to be used."""
    template: bool = False
    """Whether to compile and render the chat templates."""
    template_files: tuple[str, ...] = ()
    """Further templates; the first is the one that would be used."""
    sha256: bool = False
    """Whether to compute digests; one that is remembered for an unchanged file counts."""
    expect_sha256: tuple[str, ...] = ()
    """Digests that the files must have; these are always computed anew."""
    deep: bool = False
    """Whether to read all tensor data."""
    meter: Meter = _no_meter
    """Makes what shows the progress of something that takes long."""
    program: str | None = None
    """Program whose build has to know the model."""


def inspect_model(session: Session, machine: Machine, request: InspectRequest) -> None:
    """Read the header of a model, add what was asked for to the record, and judge it."""
    session.begin(("model_file",), () if request.deep else NOT_COVERED)
    session.add("asked", AskedFacts(via="inspect", model_path=request.path, ctx_size=request.ctx_size))
    if request.path.startswith(REMOTE):
        _inspect_remote(session, machine, request.path)
        return
    probe = _look(session, machine, request.path)
    session.judge("model", "identity")  # what follows may take long, and be interrupted
    areas: list[str] = []
    if _has_companions(machine, probe, request):
        from llamaops.facts.companions import collect_companions

        with session.step("companions", "look at the files that belong to the model"):
            session.add("companions", collect_companions(machine, probe, request.companions))
        areas.append("companions")
    if request.template or request.template_files:
        from llamaops.facts.templates import collect_templates

        with session.step("templates", "compile the chat templates and render fixed conversations"):
            session.add("templates", collect_templates(machine, probe, request.template_files))
        areas.append("template")
    if request.sha256 or request.expect_sha256:
        _add_digests(session, machine, probe, request)
        areas.append("digest")
    if request.deep:
        from llamaops.facts.tensor_values import collect_tensor_values

        with session.step("tensor-values", "read all tensor data"):
            values = collect_tensor_values(machine, probe, progress=request.meter("tensor data"))
            session.add("tensor_values", values)
        areas.append("values")
    if request.program is not None:
        from llamaops.operations.knowledge import add_build_names

        with session.step("build-names", f"look for the model's names in the files of {request.program}"):
            add_build_names(session, machine, request.program, always=True)
        areas.append("knowledge")
    if areas:
        session.judge(*areas)


def _look(session: Session, system: System, path: str) -> Probe:
    with session.step("inspect", f"read the header of {path}"):
        probe = gguf_probe.look(system, path)
        session.add("model", facts_of(probe))
        session.add("identity", identity_of(system, probe))
    return probe


def _inspect_remote(session: Session, machine: Machine, path: str) -> None:
    """Read the header of a file on a web server by range requests."""
    from llamaops.facts.hub_reference import parse_reference
    from llamaops.system.remote_file import RemoteSystem, hub_endpoint

    url = parse_reference(path).url(hub_endpoint(machine.environ)) if path.startswith("hf:") else path
    remote = RemoteSystem(machine)
    try:
        _look(session, cast("System", remote), url)
    finally:
        remote.close()
    session.not_covered.append(
        f"the rest of the file: {remote.bytes_read} of {remote.bytes_there} bytes were read by range requests"
    )
    session.judge("model", "identity")


def _add_digests(session: Session, machine: Machine, probe: Probe, request: InspectRequest) -> None:
    from llamaops.facts.model_digest import collect_digests
    from llamaops.system.digest import Digester

    paths = [part.path for part in probe.parts] or [probe.path]
    digester = Digester(
        dict(machine.environ), remembered=not request.expect_sha256, progress=request.meter("SHA-256")
    )
    with session.step("digest", f"compute the SHA-256 of {len(paths)} file{'s' if len(paths) > 1 else ''}"):
        session.add("digests", collect_digests(machine, probe.path, paths, digester, request.expect_sha256))


def _has_companions(machine: Machine, probe: Probe, request: InspectRequest) -> bool:
    """Say whether there is something beside the model; most folders hold nothing, and cost nothing."""
    if any(request.companions.values()):
        return True
    return probe.kind == "model" and any(
        word in name.lower() and name.lower().endswith(".gguf")
        for name in gguf_probe.names_beside(machine, probe.path)
        for word in ("mmproj", "lora", "adapter", "draft", "eagle3", "dflash", "-mtp")
        if name != probe.path.rsplit("/", 1)[-1]
    )
