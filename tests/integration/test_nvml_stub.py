"""The real binding on a stand-in library that is compiled here: devices, MIG, errors, hangs, crashes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llamaops.facts.nvidia import NvidiaFacts, collect_nvidia
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Unknown
from llamaops.system import nvml
from llamaops.system.machine import Machine

GIB = 1 << 30
SOURCE = Path(__file__).parent.parent / "data" / "nvml" / "stub_nvml.c"
Ask = Callable[..., NvidiaFacts]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of libnvidia-ml")
    folder = tmp_path_factory.mktemp("nvml")
    target = folder / "libnvidia-ml.so.1"
    soname = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", soname, "-o", str(target), str(SOURCE)], check=True, timeout=60
    )
    return folder


@pytest.fixture
def ask(library: Path) -> Ask:
    def asked(**variables: str) -> NvidiaFacts:
        environ = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library)}
        with Machine(
            {**environ, **{f"NVIDIA_STUB_{name}": value for name, value in variables.items()}}
        ) as machine:
            return collect_nvidia(machine)

    return asked


def test_two_devices_and_their_parts(ask: Ask) -> None:
    facts = ask()
    assert facts.driver_version.need() == "550.54.15"
    assert facts.cuda_version.need() == "12.4"
    split, desktop = facts.devices.need()
    assert split.name.need() == "NVIDIA A100-SXM4-40GB"
    assert split.mig_enabled.need() is True
    assert [part.memory_total_bytes.need() for part in split.mig_devices] == [20 * GIB, 20 * GIB]
    assert split.mig_devices[0].uuid.need().startswith("MIG-")
    assert split.ecc_enabled.need() is True
    assert split.compute_capability.need() == "8.0"
    assert desktop.pci_address.need() == "0000:41:00.0"
    assert desktop.mig_devices == ()
    assert isinstance(desktop.mig_enabled, Unknown)
    assert desktop.mig_enabled.why == "unsupported"
    assert desktop.display_active.need() is True
    assert desktop.power_limit_w.need() == 450.0
    assert desktop.power_draw_w.need() == 431.5
    assert desktop.throttle_reasons.need() == ("power_cap", "software_thermal")
    assert (desktop.pci_link.need(), desktop.pci_link_max.need()) == ((1, 8), (4, 16))


def test_reserved_memory_is_not_counted_as_used(ask: Ask) -> None:
    card = ask().devices.need()[1]
    assert card.memory_used_bytes.need() == 20 * GIB
    assert card.memory_free_bytes.need() == 24 * GIB - 20 * GIB - GIB // 2


def test_an_older_library_is_asked_the_older_question(ask: Ask) -> None:
    card = ask(FAIL="nvmlDeviceGetMemoryInfo_v2=13").devices.need()[1]
    assert card.memory_used_bytes.need() == 20 * GIB + GIB // 2


def test_only_our_own_processes_have_a_name(ask: Ask) -> None:
    ours, gone = ask(PID=str(os.getpid())).devices.need()[1].processes.need()
    assert ours.used_bytes == 19 * GIB
    # In a process namespace of our own the driver's number would name somebody else.
    in_container = "4026531836" not in os.readlink("/proc/self/ns/pid")
    assert (ours.name is None) == in_container
    assert (gone.used_bytes, gone.name) == (None, None)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nvmlDeviceGetName", "name"),
        ("nvmlDeviceGetUUID", "uuid"),
        ("nvmlDeviceGetPciInfo_v3", "pci_address"),
        ("nvmlDeviceGetCudaComputeCapability", "compute_capability"),
        ("nvmlDeviceGetPersistenceMode", "persistence"),
        ("nvmlDeviceGetEnforcedPowerLimit", "power_limit_w"),
        ("nvmlDeviceGetPowerUsage", "power_draw_w"),
        ("nvmlDeviceGetTemperature", "temperature_celsius"),
        ("nvmlDeviceGetCurrPcieLinkWidth", "pci_link"),
        ("nvmlDeviceGetComputeRunningProcesses_v3", "processes"),
    ],
)
def test_one_call_that_fails_costs_one_fact(ask: Ask, call: str, field: str) -> None:
    first, second = ask(FAIL=f"{call}@1=15").devices.need()
    lost = [name for name in second.__struct_fields__ if _lost(second, name) and not _lost_without(name)]
    assert lost == [field]
    assert not _lost(first, field)
    assert getattr(second, field).why == "failed"


def _lost(device: object, name: str) -> bool:
    return isinstance(getattr(device, name), Unknown)


def _lost_without(name: str) -> bool:
    """Say whether the second device never has it."""
    return name in {"mig_enabled", "ecc_enabled", "ecc_uncorrected_errors"}


@pytest.mark.parametrize(
    ("failure", "why", "words"),
    [
        ("nvmlInitWithFlags=9", "failed", "Driver Not Loaded"),
        ("nvmlInitWithFlags=18", "failed", "mismatch"),
        ("nvmlInitWithFlags=4", "refused", "Insufficient"),
        ("nvmlDeviceGetCount_v2=1", "failed", "Uninitialized"),
    ],
)
def test_a_driver_that_does_not_answer(ask: Ask, failure: str, why: str, words: str) -> None:
    devices = ask(FAIL=failure).devices
    assert isinstance(devices, Unknown)
    assert (devices.why, words in devices.detail) == (why, True)


def test_a_lost_card_keeps_its_place(ask: Ask) -> None:
    lost, fine = ask(FAIL="nvmlDeviceGetHandleByIndex_v2@0=15").devices.need()
    assert isinstance(lost.name, Unknown)
    assert fine.name.need() == "NVIDIA GeForce RTX 4090"


def test_a_call_that_hangs_is_cut_off(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "BOUNDS", Bounds(wall_s=2.0, grace_s=0.5))
    began = time.monotonic()
    first, second = ask(HANG="nvmlDeviceGetPowerUsage@0").devices.need()
    assert time.monotonic() - began < 8
    assert first.name.need() == "NVIDIA A100-SXM4-40GB"
    assert isinstance(first.power_draw_w, Unknown)
    assert first.power_draw_w.why == "timed_out"
    assert isinstance(second.name, Unknown)
    assert second.name.why == "not_attempted"


def test_a_library_that_crashes_takes_only_its_child_with_it(ask: Ask) -> None:
    first = ask(CRASH="nvmlDeviceGetTemperature@0").devices.need()[0]
    assert first.power_draw_w.need() == 52.0
    assert isinstance(first.temperature_celsius, Unknown)
    assert first.temperature_celsius.why == "failed"


def test_without_the_library_it_is_absent(tmp_path: Path) -> None:
    with Machine({"PATH": "/nonexistent", "LD_LIBRARY_PATH": str(tmp_path)}) as machine:
        devices = collect_nvidia(machine).devices
    if not isinstance(devices, Unknown):
        pytest.skip("this machine has the real library")
    assert devices.why == "absent"


def test_a_file_that_is_no_library_has_failed(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    with Machine({"PATH": "/nonexistent", "LD_LIBRARY_PATH": str(tmp_path)}) as machine:
        devices = collect_nvidia(machine).devices
    assert isinstance(devices, Unknown)
    assert devices.why == "failed"
