from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.vulkan import collect_vulkan, parse_driver, parse_instance_version, parse_summary
from llamaops.schema.fact import Unknown
from llamaops.system.process import Signalled, StoppedAtBound
from tests.fakes import accelerators as fakes
from tests.fakes.system import FakeSystem, completed

ARGV = (fakes.VULKANINFO, "--summary")
ICD = '{"ICD": {"api_version": "1.3.255", "library_path": "libvulkan_radeon.so"}}'


def test_devices_in_both_forms_of_the_version() -> None:
    card, software = parse_summary(fakes.SUMMARY)
    assert (card.name, card.kind) == ("AMD Radeon RX 7900 XTX (RADV NAVI31)", "discrete_gpu")
    assert (card.driver, card.api_version, card.vendor_id) == ("radv Mesa 24.0.9", "1.3.274", "0x1002")
    assert (software.kind, software.api_version, software.driver) == ("cpu", "1.3.255", None)
    assert parse_instance_version(fakes.SUMMARY) == "1.3.275"


def test_no_device_is_an_empty_list_and_no_list_is_unparsed() -> None:
    assert parse_summary("Devices:\n========\n") == ()
    with pytest.raises(ParseError):
        parse_summary("ERROR: [Loader Message] Code 0 : vkCreateInstance\n")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"ICD": {}}'])
def test_a_description_without_a_library(text: str) -> None:
    with pytest.raises(ParseError):
        parse_driver(text)


def test_registered_drivers_and_the_loader() -> None:
    system = FakeSystem(
        files={
            "/usr/share/vulkan/icd.d/radeon.json": ICD,
            "/usr/share/vulkan/icd.d/readme.txt": "",
            "/home/u/.local/share/vulkan/icd.d/mine.json": "{",
            "/usr/lib64/libvulkan.so.1": "",
        },
        environ={"HOME": "/home/u"},
    )
    found = collect_vulkan(system)
    first, second = found.drivers.need()
    assert first.library.need() == "libvulkan_radeon.so"
    assert isinstance(second.library, Unknown)
    assert found.loader.need() == "/usr/lib64/libvulkan.so.1"
    assert isinstance(found.devices, Unknown)
    assert found.devices.why == "absent"


def test_a_variable_replaces_the_search() -> None:
    system = FakeSystem(
        files={"/usr/share/vulkan/icd.d/radeon.json": ICD, "/x/only.json": ICD},
        environ={"VK_DRIVER_FILES": "/x/only.json"},
    )
    assert [one.file for one in collect_vulkan(system).drivers.need()] == ["/x/only.json"]


@pytest.mark.parametrize(
    ("end", "why"), [(StoppedAtBound("wall_s", killed=True), "timed_out"), (Signalled(11), "failed")]
)
def test_a_driver_that_hangs_or_crashes_vulkaninfo(end: StoppedAtBound | Signalled, why: str) -> None:
    system = FakeSystem(
        commands={ARGV: completed(ARGV, stdout="part", end=end)}, on_path={"vulkaninfo": fakes.VULKANINFO}
    )
    fact = collect_vulkan(system).devices
    assert isinstance(fact, Unknown)
    assert fact.why == why
