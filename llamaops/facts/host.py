"""The host: operating system, processor, memory, limits, isolation, and the model's folder."""

from __future__ import annotations

from msgspec.structs import replace

from llamaops.facts.cgroup import collect_membership, find_groups
from llamaops.facts.container import IsolationFacts, collect_isolation
from llamaops.facts.derive import all_unknown
from llamaops.facts.host_cpu import CpuFacts, collect_linux_cpu
from llamaops.facts.host_limits import LimitFacts, collect_limits
from llamaops.facts.host_memory import MemoryFacts, collect_linux_memory
from llamaops.facts.host_os import OsFacts, collect_linux_os, kernel_facts
from llamaops.facts.model_folder import ModelFolderFacts, collect_model_folder
from llamaops.facts.mounts import collect_mounts
from llamaops.schema.fact import Source, Unknown
from llamaops.schema.shape import Shape
from llamaops.system.ports import System


class HostFacts(Shape, frozen=True, kw_only=True):
    """The machine that llama.cpp is to run on, as a process of ours sees it."""

    os: OsFacts
    """Operating system."""
    cpu: CpuFacts
    """Processor and our share of it."""
    memory: MemoryFacts
    """Memory and the limit on our share of it."""
    limits: LimitFacts
    """Limits of the process."""
    isolation: IsolationFacts
    """Container and virtual machine."""
    model_folder: ModelFolderFacts
    """Where the model lies; not attempted when no model was named."""


def collect_host(system: System, *, model_path: str | None = None) -> HostFacts:
    """Read the host; nothing is changed, and only macOS needs a command for it.

    Units: seconds, bytes, processors. Raises: nothing for a state of the machine.
    """
    name = system.uname().sysname
    if name == "Linux":
        return _collect_linux(system, model_path)
    unsupported = Unknown(
        why="unsupported",
        detail=f"llamaops has no source for this on {name}",
        source=Source(kind="library", name="uname"),
    )
    if name == "Darwin":
        from llamaops.facts.host_darwin import collect_darwin

        os_facts, cpu, memory = collect_darwin(system)
    else:
        kernel, architecture = kernel_facts(system)
        os_facts = replace(all_unknown(OsFacts, unsupported), kernel=kernel, architecture=architecture)
        cpu, memory = all_unknown(CpuFacts, unsupported), all_unknown(MemoryFacts, unsupported)
    return HostFacts(
        os=os_facts,
        cpu=cpu,
        memory=memory,
        limits=all_unknown(LimitFacts, unsupported),
        isolation=all_unknown(IsolationFacts, unsupported),
        model_folder=collect_model_folder(system, model_path, unsupported),
    )


def _collect_linux(system: System, model_path: str | None) -> HostFacts:
    mounts, membership = collect_mounts(system), collect_membership(system)
    return HostFacts(
        os=collect_linux_os(system),
        cpu=collect_linux_cpu(system, find_groups(system, "cpu", membership, mounts)),
        memory=collect_linux_memory(system, find_groups(system, "memory", membership, mounts)),
        limits=collect_limits(system),
        isolation=collect_isolation(system, membership, mounts),
        model_folder=collect_model_folder(system, model_path, mounts),
    )
