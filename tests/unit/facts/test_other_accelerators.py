"""Intel, Apple, the bus, device files and compilers: small parsers, one file."""

from __future__ import annotations

import json

import pytest

from llamaops.errors import ParseError
from llamaops.facts.apple import PROFILER, WIRED_LIMIT, collect_apple
from llamaops.facts.device_nodes import collect_device_nodes, parse_groups
from llamaops.facts.intel import collect_intel, parse_sycl_ls, parse_xpu_smi
from llamaops.facts.pci_devices import collect_pci
from llamaops.facts.toolkits import collect_toolkits, collect_variables, parse_version
from llamaops.schema.fact import Known, Unknown
from llamaops.system.process import Exited
from tests.fakes import accelerators as fakes
from tests.fakes.system import FakeSystem, completed

GIB = 1 << 30


def test_the_bus_lists_display_devices_with_and_without_a_driver() -> None:
    files = {
        **fakes.pci("0000:01:00.0", 0x10DE, 0x030200),
        **fakes.pci("0000:02:00.0", 0x1002, 0x120000),
        **fakes.pci("0000:03:00.0", 0x1234),
        **fakes.pci("0000:04:00.0", 0x10DE, 0x040300),  # the sound of a card
        "/sys/bus/pci/devices/0000:03:00.0/boot_vga": "1\n",
    }
    system = fakes.fake(files, links=fakes.bound("0000:01:00.0", "nouveau"))
    first, second, third = collect_pci(system).need()
    assert (first.vendor, first.kind, first.driver.need()) == ("nvidia", "3d", "nouveau")
    assert (second.vendor, second.kind) == ("amd", "accelerator")
    assert isinstance(second.driver, Unknown)
    assert second.driver.why == "absent"
    assert (third.vendor, third.boot_display) == ("qemu", True)


def test_nodes_with_owner_group_and_permission() -> None:
    nodes = {
        "/dev/kfd": fakes.node(gid=148),
        "/dev/dri/renderD128": fakes.node(gid=992),
        "/dev/nvidiactl": fakes.node(0o666, 0),
    }
    system = fakes.fake({"/dev/nullx": ""}, nodes=nodes, unreadable=["/dev/kfd"])
    found = {one.path: one for one in collect_device_nodes(system).need()}
    assert set(found) == set(nodes)
    assert (found["/dev/kfd"].mode, found["/dev/kfd"].gid, found["/dev/kfd"].group) == (
        "crw-rw----",
        148,
        None,
    )
    assert (found["/dev/kfd"].accessible, found["/dev/nvidiactl"].accessible) == (False, True)
    assert found["/dev/dri/renderD128"].group == "render"


def test_a_folder_is_no_node() -> None:
    assert collect_device_nodes(fakes.fake({"/dev/nvidia-caps/x": ""})).need() == ()


def test_groups() -> None:
    assert parse_groups("root:x:0:\n+::::\nvideo:x:44:a,b\n") == {0: "root", 44: "video"}
    with pytest.raises(ParseError):
        parse_groups("")


def test_intel() -> None:
    files = {
        "/sys/class/drm/card0/device/vendor": "0x8086\n",
        "/sys/class/drm/card0/lmem_total_bytes": f"{GIB}\n",
    }
    found = collect_intel(fakes.fake(files))
    assert found.devices.need()[0].memory_total_bytes.need() == GIB
    assert isinstance(found.sycl_devices, Unknown)
    rows = {
        "device_list": [
            {"device_id": 0, "device_name": "Arc A770", "memory_physical_size_byte": "16225243136"}
        ]
    }
    assert parse_xpu_smi(json.dumps(rows))[0].memory_total_bytes == 16225243136
    assert parse_sycl_ls("[opencl:cpu][opencl:0] Intel\nwarning\n[level_zero:gpu][level_zero:0] Arc\n") == (
        "[opencl:cpu][opencl:0] Intel",
        "[level_zero:gpu][level_zero:0] Arc",
    )


def test_apple() -> None:
    row = {
        "sppci_model": "Apple M2 Max",
        "sppci_cores": "38",
        "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
    }
    system = FakeSystem(
        sysname="Darwin",
        commands={
            PROFILER: completed(PROFILER, stdout=json.dumps({"SPDisplaysDataType": [row]})),
            WIRED_LIMIT: completed(WIRED_LIMIT, stdout="0\n"),
        },
    )
    found = collect_apple(system)
    assert (found.devices.need()[0].cores, found.wired_limit_mib.need()) == (38, 0)
    elsewhere = collect_apple(FakeSystem()).devices
    assert isinstance(elsewhere, Unknown)
    assert elsewhere.why == "unsupported"


NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n"


def test_compilers_on_path_and_where_installers_put_them() -> None:
    nvcc, hipcc = ("/usr/local/cuda/bin/nvcc", "--version"), ("/x/hipcc", "--version")
    system = FakeSystem(
        files={"/usr/local/cuda/bin/nvcc": ""},
        on_path={"hipcc": "/x/hipcc"},
        commands={nvcc: completed(nvcc, stdout=NVCC), hipcc: completed(hipcc, stderr="no", end=Exited(1))},
    )
    first, second = collect_toolkits(system).need()
    assert (first.name, first.version.need()) == ("nvcc", "12.4")
    assert second.path == "/x/hipcc"
    assert isinstance(second.version, Unknown)
    assert second.version.why == "failed"


def test_no_compiler_is_an_empty_list() -> None:
    assert collect_toolkits(FakeSystem()).need() == ()


def test_a_version_that_is_not_there() -> None:
    with pytest.raises(ParseError):
        parse_version("usage: nvcc", ("release ",))


def test_variables_that_are_set_also_when_empty() -> None:
    fact = collect_variables(FakeSystem(environ={"CUDA_VISIBLE_DEVICES": "", "SECRET_KEY": "x", "PATH": "/"}))
    assert isinstance(fact, Known)
    assert [(one.name, one.value) for one in fact.value] == [("CUDA_VISIBLE_DEVICES", "")]
