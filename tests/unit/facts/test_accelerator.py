from __future__ import annotations

import msgspec
import pytest

from llamaops.facts.accelerator import AcceleratorFacts, collect_accelerators
from llamaops.facts.seen_devices import nodes_of, seen_devices
from llamaops.schema.fact import Unknown
from tests.fakes import accelerators as fakes
from tests.fakes import nvml
from tests.fakes.system import FakeSystem

GIB = 1 << 30


def test_nothing_at_all_is_absent_with_all_that_was_looked_at() -> None:
    facts = collect_accelerators(fakes.fake())
    assert facts.pci_devices.need() == ()
    assert facts.device_nodes.need() == ()
    assert isinstance(facts.nvidia.devices, Unknown)
    assert facts.nvidia.devices.why == "absent"
    for part in ("libnvidia-ml", "/dev/nvidia", "PCI bus"):
        assert part in facts.nvidia.devices.detail
    assert seen_devices(facts) == []


def test_a_bus_that_was_not_seen_is_not_claimed_to_be_empty() -> None:
    facts = collect_accelerators(FakeSystem(commands=nvml.said(*nvml.MISSING)))
    assert isinstance(facts.pci_devices, Unknown)
    assert isinstance(facts.nvidia.devices, Unknown)
    assert "not seen" in facts.nvidia.devices.detail


def test_a_missing_library_beside_a_card_has_failed_and_is_not_absent() -> None:
    facts = collect_accelerators(fakes.fake(fakes.pci("0000:01:00.0", 0x10DE)))
    assert isinstance(facts.nvidia.devices, Unknown)
    assert facts.nvidia.devices.why == "failed"
    assert "0000:01:00.0" in facts.nvidia.devices.detail


def test_nobody_who_could_ask_is_not_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    from llamaops.system import nvml as real

    system = fakes.fake()
    monkeypatch.setattr(real, "argv", lambda: None)
    facts = collect_accelerators(system)
    assert isinstance(facts.nvidia.devices, Unknown)
    assert facts.nvidia.devices.why == "not_attempted"


def test_every_source_survives_a_round_trip() -> None:
    system = fakes.fake(
        fakes.amd_files(),
        links=fakes.amd_links(),
        nodes={path: fakes.node() for path in fakes.AMD_NODES},
        commands=nvml.said(*nvml.begun(1), *nvml.device(0)),
        environ={"CUDA_VISIBLE_DEVICES": "0"},
    )
    facts = collect_accelerators(system)
    assert msgspec.json.decode(msgspec.json.encode(facts), type=AcceleratorFacts) == facts
    assert [one.name for one in seen_devices(facts)] == ["NVIDIA Test 0", "AMD card1"]


def test_a_split_device_is_seen_as_its_parts() -> None:
    parts = [
        {"device": 0, "mig": 0, "query": "handle", "value": True},
        {"device": 0, "mig": 0, "query": "name", "value": "part"},
        {"device": 0, "mig": 0, "query": "memory", "value": {"total": 5, "free": 4, "used": 1}},
    ]
    commands = nvml.said(*nvml.begun(1), *nvml.device(0, mig_mode=[1, 1]), *parts)
    (seen,) = seen_devices(collect_accelerators(fakes.fake(commands=commands)))
    assert (seen.name, seen.total_bytes, seen.free_bytes) == ("part", 5, 4)


@pytest.mark.parametrize("answers", [{"mig_mode": [1, 1]}, {"compute_mode": 2}])
def test_a_device_that_may_not_compute_is_not_seen(answers: dict[str, object]) -> None:
    commands = nvml.said(*nvml.begun(1), *nvml.device(0, **answers))
    assert seen_devices(collect_accelerators(fakes.fake(commands=commands))) == []


def test_capability_files_are_not_what_an_interface_opens() -> None:
    nodes = {"/dev/nvidia0": fakes.node(), "/dev/nvidia-caps/nvidia-cap1": fakes.node(0o400, 0)}
    facts = collect_accelerators(fakes.fake(nodes=nodes))
    assert [node.path for node in nodes_of(facts, "nvidia")] == ["/dev/nvidia0"]
    assert len(facts.device_nodes.need()) == 2
