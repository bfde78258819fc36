"""From settings to a command line that this build understands, and its place in the record."""

from __future__ import annotations

import msgspec

from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.capabilities import Capabilities
from llamaops.launch.argv import Command, default_slots, launch_facts
from llamaops.launch.settings import LaunchSettings, Plan, resolve
from llamaops.operations.predict import add_fit, front_end_of
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.schema.fact import Known, Source
from llamaops.system.environment import engine_variables
from llamaops.system.free_port import free_port
from llamaops.system.machine import Machine


def engine_settings(
    settings: Settings, model_path: str, port: int, extra: tuple[str, ...] = ()
) -> LaunchSettings:
    """Return what is asked of the engine, from the settings of the run."""
    return LaunchSettings(
        model_path=model_path,
        host=settings.host,
        port=port,
        ctx_size=settings.ctx_size,
        parallel=settings.parallel,
        kv_unified=settings.kv_unified,
        batch_size=settings.batch_size,
        ubatch_size=settings.ubatch_size,
        n_gpu_layers=settings.n_gpu_layers,
        flash_attn=settings.flash_attn,
        cache_type_k=settings.cache_type_k,
        cache_type_v=settings.cache_type_v,
        threads=settings.threads,
        api_key_file=settings.api_key_file,
        extra=extra,
    )


def capabilities_of(binary: BinaryFacts) -> Capabilities | None:
    """Return what the binary's own help offers; None when it could not be read."""
    return binary.capabilities.value if isinstance(binary.capabilities, Known) else None


def plan_of(command: Command, capabilities: Capabilities | None, n_ctx_train: int | None) -> Plan:
    """Return what the engine will make of the settings.

    With nothing asked, some builds divide the model's own context among slots with a KV cache each
    (b10068, b10434), and others give it to each of them (0.5.0): that is left to the engine.
    """
    plan = resolve(command.settings, n_ctx_train=n_ctx_train, slots=default_slots(capabilities))
    if command.settings.ctx_size or plan.kv_unified or plan.n_slots == 1:
        return plan
    return msgspec.structs.replace(plan, n_ctx=None, n_ctx_seq=None, n_ctx_slot=None, notes=())


def add_launch(
    session: Session,
    command: Command,
    capabilities: Capabilities | None,
    machine: Machine,
    plan: Plan | None = None,
) -> None:
    """Add the command line to the record and judge it before anything starts."""
    session.add(
        "launch",
        launch_facts(
            command,
            capabilities=capabilities,
            source=Source(kind="computed", name="settings and the program's --help"),
            plan=plan,
            removed_variables=engine_variables(machine.environ),
        ),
    )
    session.judge("launch")
    add_fit(session, machine, command.settings, front_end_of(command.argv[0]))


def pick_port(host: str) -> int:
    """Return a free port; see ADR 0007 for why we pick it and not the server."""
    return free_port(host)
