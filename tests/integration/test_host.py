"""The machine that the tests run on: whatever it is, these laws hold."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from llamaops.facts.accelerator import collect_accelerators
from llamaops.facts.host import HostFacts, collect_host
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")


@pytest.fixture
def host(tmp_path: Path) -> HostFacts:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    with Machine() as machine:
        return collect_host(machine, model_path=str(model))


def test_memory_obeys_its_laws(host: HostFacts) -> None:
    memory = host.memory
    assert 0 < memory.available_bytes.need() <= memory.total_bytes.need()
    assert memory.effective_available_bytes.need() <= memory.available_bytes.need()
    assert memory.effective_available_bytes.need() <= memory.effective_total_bytes.need()
    assert memory.total_bytes.need() == pytest.approx(psutil.virtual_memory().total)
    if isinstance(memory.cgroup_limit_bytes, Known):
        assert memory.effective_total_bytes.need() <= memory.cgroup_limit_bytes.value


def test_processors_agree_with_the_kernel(host: HostFacts) -> None:
    assert host.cpu.affinity_cpus.need() == len(os.sched_getaffinity(0))
    assert host.cpu.threads.need() >= host.cpu.affinity_cpus.need()
    assert 0 < host.cpu.effective_cpus.need() <= host.cpu.affinity_cpus.need()
    assert set(host.cpu.flags.need()).isdisjoint(host.cpu.missing_flags.need())


def test_limits_agree_with_the_c_library(host: HostFacts) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = host.limits.open_files.need()
    assert (limit.soft, limit.hard) == tuple(
        None if one == resource.RLIM_INFINITY else one for one in (soft, hard)
    )


def test_the_model_folder(host: HostFacts, tmp_path: Path) -> None:
    told = os.statvfs(tmp_path)
    assert host.model_folder.readable.need() is True
    assert host.model_folder.free_bytes.need() == pytest.approx(told.f_bavail * told.f_frsize, rel=0.1)
    assert str(tmp_path).startswith(host.model_folder.mount_point.need().rstrip("/") or "/")


def test_nothing_of_a_usual_linux_is_unparsed(host: HostFacts) -> None:
    groups = [host.os, host.cpu, host.memory, host.limits, host.isolation, host.model_folder]
    facts = [getattr(group, name) for group in groups for name in group.__struct_fields__]
    assert [fact for fact in facts if isinstance(fact, Unknown) and fact.why in {"unparsed", "failed"}] == []


def test_reading_the_host_starts_no_process_and_takes_no_time() -> None:
    with Machine() as machine:
        began = time.process_time()
        collect_host(machine)
        assert time.process_time() - began < 0.5


def test_the_accelerators_of_this_machine_are_read_within_their_bounds() -> None:
    with Machine() as machine:
        facts = collect_accelerators(machine)
    for card in facts.nvidia.devices.value if isinstance(facts.nvidia.devices, Known) else ():
        if isinstance(card.memory_free_bytes, Known):
            assert card.memory_free_bytes.value <= card.memory_total_bytes.need()
    assert isinstance(facts.device_nodes, Known)
