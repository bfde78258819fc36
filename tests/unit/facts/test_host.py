from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from llamaops.facts.host import HostFacts, collect_host
from llamaops.schema.fact import Known, Unknown
from llamaops.schema.shape import Shape
from tests.fakes import hosts
from tests.fakes.system import FakeSystem, completed

GIB = hosts.GIB
KINDS: list[Callable[[], FakeSystem]] = [
    hosts.bare_metal,
    hosts.docker,
    hosts.docker_v1,
    hosts.nested_slice,
    hosts.kubernetes,
    hosts.lxc,
    hosts.wsl,
    hosts.virtual_machine,
    hosts.nothing,
]


def every_fact(group: Shape) -> list[Known[object] | Unknown]:
    found: list[Known[object] | Unknown] = []
    for name in group.__struct_fields__:
        value = getattr(group, name)
        if isinstance(value, Known | Unknown):
            found.append(value)
        elif isinstance(value, Shape):
            found += every_fact(value)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_host_is_read_and_survives_a_round_trip(kind: Callable[[], FakeSystem]) -> None:
    facts = collect_host(kind(), model_path="/srv/models/a.gguf")
    assert msgspec.json.decode(msgspec.json.encode(facts), type=HostFacts) == facts


def test_a_bare_server() -> None:
    host = collect_host(hosts.bare_metal())
    assert host.os.name.need() == "Ubuntu 24.04.1 LTS"
    assert host.os.libc.need() == "glibc 2.39"
    assert host.os.kernel.need() == "Linux 6.1.0"
    assert (host.cpu.sockets.need(), host.cpu.cores.need(), host.cpu.threads.need()) == (2, 4, 8)
    assert host.cpu.effective_cpus.need() == 8
    assert host.cpu.numa_nodes.need() == 2
    assert host.cpu.steal_share.need() == 0.1
    assert host.memory.total_bytes.need() == 65536000 * 1024
    assert host.memory.effective_available_bytes.need() == 51200000 * 1024
    assert host.memory.bound_by.need() == "host"
    assert isinstance(host.memory.cgroup_limit_bytes, Unknown)
    assert host.memory.cgroup_limit_bytes.why == "absent"
    assert host.memory.transparent_huge_pages.need() == "madvise"
    assert host.isolation.container.need() == "none"
    assert host.isolation.virtual_machine.need() == "none"
    assert host.limits.open_files.need().soft == 1024
    assert host.limits.address_space_bytes.need().soft is None
    assert host.limits.may_lock_any_memory.need() is False


def test_a_container_limit_binds_before_the_host_does() -> None:
    host = collect_host(hosts.docker())
    assert host.memory.cgroup_limit_bytes.need() == 4 * GIB
    assert host.memory.cgroup_headroom_bytes.need() == 3 * GIB  # 4 - 2 used + 1 reclaimable
    assert host.memory.effective_available_bytes.need() == 3 * GIB
    assert host.memory.effective_total_bytes.need() == 4 * GIB
    assert host.memory.bound_by.need() == "/sys/fs/cgroup/memory.max"
    assert host.memory.cgroup_swap_limit_bytes.need() == 0
    assert host.cpu.quota_cpus.need() == 1.5
    assert host.cpu.effective_cpus.need() == 1.5
    assert host.cpu.throttled_periods.need() == 9034
    assert host.isolation.container.need() == "docker"


def test_a_limit_above_what_is_free_leaves_the_host_binding() -> None:
    host = collect_host(hosts.docker(limit=str(400 * GIB)))
    assert host.memory.bound_by.need() == "host"
    assert host.memory.effective_available_bytes.need() == 51200000 * 1024


def test_usage_above_the_limit_leaves_nothing_rather_than_less() -> None:
    host = collect_host(hosts.docker(limit=str(GIB), current=5 * GIB))
    assert host.memory.effective_available_bytes.need() == 0


def test_version_1_in_a_container() -> None:
    host = collect_host(hosts.docker_v1())
    assert host.memory.cgroup_version.need() == 1
    assert host.memory.cgroup_limit_bytes.need() == 2 * GIB
    assert host.memory.cgroup_reclaimable_bytes.need() == 1 << 20
    assert host.cpu.quota_cpus.need() == 2.5


def test_an_ancestor_with_less_room_is_the_limit() -> None:
    host = collect_host(hosts.nested_slice())
    assert host.memory.bound_by.need() == "/sys/fs/cgroup/ai.slice/memory.max"
    assert host.memory.cgroup_headroom_bytes.need() == GIB + GIB // 2
    assert host.cpu.quota_cpus.need() == 2.0
    assert host.cpu.quota_periods.need() == 100


def test_an_ancestor_that_the_container_cannot_see_still_limits_it() -> None:
    host = collect_host(hosts.kubernetes())
    assert host.memory.cgroup_limit_bytes.need() == 3 * GIB
    assert host.memory.effective_available_bytes.need() == 2 * GIB
    assert host.isolation.container.need() == "kubernetes"


def test_a_quota_that_cannot_be_seen_is_not_a_quota_that_is_absent() -> None:
    host = collect_host(hosts.kubernetes())  # mounts memory, not cpu
    assert isinstance(host.cpu.quota_cpus, Unknown)
    assert host.cpu.quota_cpus.why == "refused"
    assert isinstance(host.cpu.effective_cpus, Unknown)


def test_lxc() -> None:
    host = collect_host(hosts.lxc())
    assert host.isolation.container.need() == "lxc"
    assert host.memory.cgroup_limit_bytes.need() == 16 * GIB


@pytest.mark.parametrize(
    ("kind", "machine"), [(hosts.wsl, "wsl2"), (hosts.virtual_machine, "kvm"), (hosts.bare_metal, "none")]
)
def test_virtual_machines(kind: Callable[[], FakeSystem], machine: str) -> None:
    host = collect_host(kind())
    assert host.isolation.virtual_machine.need() == machine
    assert host.isolation.container.need() == "none"


def test_a_host_that_shows_nothing_gives_reasons_and_no_value() -> None:
    host = collect_host(hosts.nothing())
    assert isinstance(host.memory.effective_available_bytes, Unknown)
    assert host.memory.effective_available_bytes.why == "absent"
    assert isinstance(host.cpu.effective_cpus, Unknown)
    assert isinstance(host.isolation.virtual_machine, Unknown)


def test_another_system_is_unsupported_and_not_absent() -> None:
    host = collect_host(FakeSystem(sysname="FreeBSD"))
    assert host.os.kernel.need() == "FreeBSD 6.1.0"
    unknown = [fact for fact in every_fact(host) if isinstance(fact, Unknown)]
    assert {fact.why for fact in unknown} == {"unsupported", "not_attempted"}
    assert len(unknown) > 40


def test_macos_is_asked_through_sysctl_and_vm_stat() -> None:
    from llamaops.facts.host_darwin import SYSCTL, VM_STAT

    sysctl = (
        "hw.memsize: 68719476736\nhw.physicalcpu: 12\nhw.logicalcpu: 12\nhw.packages: 1\n"
        "hw.optional.neon: 1\nhw.optional.arm.FEAT_DotProd: 1\nhw.optional.arm.FEAT_SME: 0\n"
        "machdep.cpu.brand_string: Apple M2 Max\nkern.osproductversion: 14.5\n"
        "vm.swapusage: total = 2048.00M  used = 512.00M  free = 1536.00M  (encrypted)\n"
        "vm.loadavg: { 2,10 2.00 1.90 }\n"
    )
    vm_stat = (
        "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free: 1000.\n"
        'Pages active: 5.\nPages inactive: 2000.\nPages speculative: 10.\n"Translation faults": 7.\n'
    )
    host = collect_host(
        FakeSystem(
            sysname="Darwin",
            machine="arm64",
            commands={
                SYSCTL: completed(SYSCTL, stdout=sysctl),
                VM_STAT: completed(VM_STAT, stdout=vm_stat),
            },
        )
    )
    assert host.cpu.model.need() == "Apple M2 Max"
    assert host.cpu.flags.need() == ("asimd", "asimddp")
    assert host.cpu.load_1min.need() == 2.1
    assert host.memory.total_bytes.need() == 64 * GIB
    assert host.memory.available_bytes.need() == 3010 * 16384
    assert host.memory.swap_free_bytes.need() == 1536 << 20
    assert host.os.name.need() == "macOS 14.5"
