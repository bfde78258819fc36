from __future__ import annotations

import json

import pytest

from llamaops.errors import ParseError
from llamaops.facts.amd import collect_amd, parse_amd_smi, parse_rocm_smi, parse_target
from llamaops.schema.fact import Unknown
from tests.fakes import accelerators as fakes
from tests.fakes.system import completed

GIB = 1 << 30


def test_what_the_kernel_driver_shows() -> None:
    links = {"/sys/class/drm/card1/device": "/sys/devices/pci0000:00/0000:03:00.0"}
    # The fake resolves whole paths only, so the link is asked for by itself.
    found = collect_amd(fakes.fake(fakes.amd_files(), links=links))
    (device,) = found.devices.need()
    assert device.pci_address.need() == "0000:03:00.0"
    assert device.memory_total_bytes.need() == 24 * GIB
    assert device.shared_total_bytes.need() == 32 * GIB
    assert isinstance(device.name, Unknown)
    assert device.name.why == "absent"
    assert found.compute_targets.need() == ("gfx1100",)


def test_no_graphics_and_no_tool() -> None:
    found = collect_amd(fakes.fake())
    assert isinstance(found.devices, Unknown)
    assert isinstance(found.tool_devices, Unknown)
    assert (found.devices.why, found.tool_devices.why) == ("absent", "absent")


def test_another_vendor_is_not_listed() -> None:
    files = {"/sys/class/drm/card0/device/vendor": "0x8086\n"}
    assert collect_amd(fakes.fake(files)).devices.need() == ()


@pytest.mark.parametrize(
    ("number", "name"), [(90402, "gfx942"), (90010, "gfx90a"), (110001, "gfx1101"), (100306, "gfx1036")]
)
def test_targets(number: int, name: str) -> None:
    assert parse_target(f"simd_count 4\ngfx_target_version {number}\n") == name


def test_a_processor_node_is_no_target() -> None:
    assert parse_target("gfx_target_version 0\n") is None
    assert parse_target("") is None


ROCM = {
    "card0": {
        "VRAM Total Memory (B)": "25753026560",
        "VRAM Total Used Memory (B)": "27410432",
        "Card Series": "Radeon RX 7900 XTX",
    },
    "system": {"Driver version": "6.7.0"},
}


def test_rocm_smi_after_a_warning() -> None:
    (device,) = parse_rocm_smi("WARNING: AMD GPU device(s) is/are in a low-power state.\n" + json.dumps(ROCM))
    assert (device.index, device.name, device.memory_total_bytes) == (
        "card0",
        "Radeon RX 7900 XTX",
        25753026560,
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_amd_smi_in_both_forms(wrapped: bool) -> None:
    row = {"gpu": 0, "asic": {"market_name": "MI300X"}, "vram": {"size": {"value": 196592, "unit": "MB"}}}
    text = json.dumps({"gpu_data": [row]} if wrapped else [row])
    (device,) = parse_amd_smi(text)
    assert (device.name, device.memory_total_bytes) == ("MI300X", 196592 << 20)


@pytest.mark.parametrize("parse", [parse_rocm_smi, parse_amd_smi])
@pytest.mark.parametrize("text", ["", "No AMD GPUs", '"text"', '{"card0": '])
def test_other_text(parse: object, text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)  # type: ignore[operator]  # each is a function of a text


@pytest.mark.parametrize("text", ['{"card0": 5}', '{"gpu_data": {}}', '[{"asic": "x", "vram": []}]', "[1]"])
def test_json_of_another_shape_gives_no_device_or_is_unparsed(text: str) -> None:
    tool = "/opt/rocm/bin/amd-smi"
    argv = (tool, "static", "--asic", "--vram", "--json")
    system = fakes.fake(commands={argv: completed(argv, stdout=text)}, on_path={"amd-smi": tool})
    fact = collect_amd(system).tool_devices
    assert isinstance(fact, Unknown) or all(one.memory_total_bytes is None for one in fact.value)
