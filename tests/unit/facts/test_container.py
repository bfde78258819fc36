from __future__ import annotations

import pytest

from llamaops.facts.container import IsolationFacts, own_namespace
from llamaops.facts.host import collect_host
from llamaops.schema.fact import Unknown
from tests.fakes import hosts
from tests.fakes.system import FakeSystem


def isolation(system: FakeSystem) -> IsolationFacts:
    return collect_host(system).isolation


def with_group(path: str, **more: object) -> FakeSystem:
    return hosts.fake({**hosts.common_files(), "/proc/self/cgroup": f"0::{path}\n"}, **more)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/docker/abc", "docker"),
        ("/system.slice/docker-0123abcd.scope", "docker"),
        ("/user.slice/user-1000.slice/libpod-77.scope", "podman"),
        ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope", "kubernetes"),
        ("/lxc.payload.web/init", "lxc"),
        ("/system.slice/docker-registry.service", "none"),
        ("/user.slice/user-1000.slice/session-1.scope", "none"),
    ],
)
def test_control_group_names(path: str, kind: str) -> None:
    assert isolation(with_group(path)).container.need() == kind


def test_an_image_booted_as_a_machine_is_no_container() -> None:
    system = hosts.fake({**hosts.common_files(), "/.dockerenv": "", "/proc/self/cgroup": "0::/\n"})
    found = isolation(system)
    assert found.container.need() == "none"
    assert found.container_signs.need() == ("docker: /.dockerenv",)


def test_the_same_marker_in_namespaces_of_its_own_is_one() -> None:
    system = hosts.fake({"/.dockerenv": ""}, links=hosts.OWN_NAMESPACES)
    assert isolation(system).container.need() == "docker"


def test_the_same_marker_is_believed_when_the_namespaces_cannot_be_told() -> None:
    assert isolation(hosts.fake({"/.dockerenv": ""}, links={})).container.need() == "docker"


@pytest.mark.parametrize(
    ("environ", "kind"),
    [
        ({"container": "podman"}, "podman"),
        ({"APPTAINER_NAME": "x.sif"}, "apptainer"),
        ({"container": "$(x)"}, "none"),
    ],
)
def test_variables(environ: dict[str, str], kind: str) -> None:
    assert isolation(with_group("/", environ=environ)).container.need() == kind


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"/sys/hypervisor/type": "xen\n"}, "xen"),
        ({"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "kvm"),
        ({"/sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "amazon"),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
                "/sys/class/dmi/id/product_name": "c7i.metal-24xl\n",
                "/proc/cpuinfo": hosts.x86_cpuinfo(),
            },
            "none",
        ),
        ({"/proc/cpuinfo": hosts.x86_cpuinfo(hypervisor=True)}, "some"),
    ],
)  # fmt: skip
def test_virtual_machines(files: dict[str, str], kind: str) -> None:
    assert isolation(hosts.fake(files)).virtual_machine.need() == kind


def test_a_processor_without_the_flag_and_no_firmware_decides_nothing() -> None:
    # Arm has no such flag, and a small board no DMI.
    fact = isolation(hosts.fake({"/proc/cpuinfo": hosts.GRACE_CPUINFO})).virtual_machine
    assert isinstance(fact, Unknown)


def test_namespaces() -> None:
    assert own_namespace(hosts.fake({}, links=hosts.OWN_NAMESPACES), "pid").need() is True
    assert own_namespace(hosts.fake({}), "pid").need() is False
    assert isinstance(own_namespace(hosts.fake({}, links={}), "pid"), Unknown)
