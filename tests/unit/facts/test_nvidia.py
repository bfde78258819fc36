from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.nvidia import collect_nvidia, cuda_version, parse_smi, sysfs_address, throttle_reasons
from llamaops.schema.fact import Unknown
from tests.fakes import hosts, nvml
from tests.fakes.system import FakeSystem, completed

GIB = 1 << 30
SMI = "/usr/bin/nvidia-smi"
QUERY = (
    SMI,
    "--query-gpu=name,uuid,pci.bus_id,memory.total,memory.free,memory.used,compute_cap,driver_version",
    "--format=csv,noheader,nounits",
)


def test_numbers_become_words() -> None:
    assert cuda_version(12040) == "12.4"
    assert sysfs_address("00000000:C1:00.0") == "0000:c1:00.0"
    assert throttle_reasons(0) == ()
    assert throttle_reasons(0x44) == ("power_cap", "hardware_thermal")
    assert throttle_reasons(0x1000) == ("0x1000",)


def test_a_device_without_memory_of_its_own() -> None:
    answers = nvml.device(0)
    answers[1] = {"device": 0, "query": "memory", "code": 3, "text": "Not Supported"}
    found = collect_nvidia(FakeSystem(commands=nvml.said(*nvml.begun(1), *answers))).devices.need()[0]
    assert isinstance(found.memory_total_bytes, Unknown)
    assert found.memory_total_bytes.why == "unsupported"
    assert found.name.need() == "NVIDIA Test 0"


def holder(uid: int, links: dict[str, str]) -> str | None:
    import os

    files: dict[str, str | bytes | OSError] = {"/proc/42/comm": "llama-server\n"}
    stats = {
        "/proc/42": os.stat_result((0o40555, 1, 1, 1, uid, 0, 0, 0, 0, 0)),
        "/proc/self": os.stat_result((0o40555, 1, 1, 1, 1000, 0, 0, 0, 0, 0)),
    }
    answers = nvml.device(0, processes=[{"pid": 42, "used": GIB}])
    system = FakeSystem(files=files, stats=stats, links=links, commands=nvml.said(*nvml.begun(1), *answers))
    (process,) = collect_nvidia(system).devices.need()[0].processes.need()
    assert (process.pid, process.used_bytes) == (42, GIB)
    return process.name


def test_the_name_of_a_process_is_told_for_our_own_user_alone() -> None:
    assert holder(1000, hosts.FIRST_NAMESPACES) == "llama-server"
    assert holder(0, hosts.FIRST_NAMESPACES) is None


def test_in_a_container_the_number_is_of_another_namespace() -> None:
    assert holder(1000, hosts.OWN_NAMESPACES) is None


def test_nvidia_smi_is_read_when_the_library_cannot_be_loaded() -> None:
    row = "NVIDIA L4, GPU-1, 00000000:3B:00.0, 23034, 22500, 534, 8.9, 550.54\n"
    system = FakeSystem(
        commands={**nvml.said(*nvml.MISSING), QUERY: completed(QUERY, stdout=row)},
        on_path={"nvidia-smi": SMI},
    )
    found = collect_nvidia(system)
    (device,) = found.devices.need()
    assert device.name.need() == "NVIDIA L4"
    assert device.memory_total_bytes.need() == 23034 << 20
    assert found.driver_version.need() == "550.54"
    assert isinstance(device.ecc_enabled, Unknown)


def test_nvidia_smi_is_not_run_when_the_library_answers() -> None:
    def never(_argv: object) -> object:
        raise AssertionError("nvidia-smi was run")

    system = FakeSystem(
        commands={**nvml.said(*nvml.begun(0)), QUERY: never},  # type: ignore[dict-item]  # raises
        on_path={"nvidia-smi": SMI},
    )
    assert collect_nvidia(system).devices.need() == ()


@pytest.mark.parametrize(
    "text",
    ["No devices were found\n", "NVIDIA-SMI has failed because it couldn't talk to the driver\n", "a,b\n"],
)
def test_a_message_is_not_a_table(text: str) -> None:
    with pytest.raises(ParseError):
        parse_smi(text)


def test_memory_that_nvidia_smi_does_not_know() -> None:
    row = "NVIDIA GB10, GPU-1, 0000000F:01:00.0, [N/A], [N/A], [N/A], 12.1, 580.1\n"
    system = FakeSystem(
        commands={**nvml.said(*nvml.MISSING), QUERY: completed(QUERY, stdout=row)},
        on_path={"nvidia-smi": SMI},
    )
    (device,) = collect_nvidia(system).devices.need()
    assert isinstance(device.memory_total_bytes, Unknown)
