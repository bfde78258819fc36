from __future__ import annotations

from typing import Any

import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.accelerator import AcceleratorFacts, collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.host import collect_host
from llamaops.schema.finding import Finding
from llamaops.system.process import StoppedAtBound
from tests.fakes import accelerators as fakes
from tests.fakes import hosts, nvml
from tests.fakes.system import FakeSystem, completed

GIB = 1 << 30
SEEN = "accelerator.is-seen-when-asked"
BARE, BOX = collect_host(hosts.bare_metal()), collect_host(hosts.docker())
CARD = nvml.said(*nvml.begun(1), *nvml.device(0))
HANGS = nvml.said(
    {"query": "library", "value": "x"}, {"query": "init"}, end=StoppedAtBound("wall_s", killed=True)
)


def facts(*args: Any, **more: Any) -> AcceleratorFacts:
    return collect_accelerators(fakes.fake(*args, **more))


def judge(id_: str, *groups: object) -> Finding | None:
    (check,) = (one for one in all_checks(["accelerator"]) if one.id == id_)
    return run_check(check, {type(group): group for group in groups})


def status(id_: str, *groups: object) -> str:
    finding = judge(id_, *groups)
    return "not applicable" if finding is None else finding.status


def test_every_check_is_about_the_host_and_only_what_was_asked_for_is_required() -> None:
    checks = all_checks(["accelerator"])
    assert {one.boundary for one in checks} == {"host"}
    assert [one.id for one in checks if one.severity == "required"] == [SEEN]


@pytest.mark.parametrize(
    "asked",
    [
        AskedFacts(),
        AskedFacts(n_gpu_layers="0"),
        AskedFacts(n_gpu_layers="auto"),
        AskedFacts(expect_device="CPU"),
        AskedFacts(n_gpu_layers="99", expect_device="none"),
    ],
)
def test_nothing_was_asked_for(asked: AskedFacts) -> None:
    assert status(SEEN, facts(), asked) == "not applicable"


@pytest.mark.parametrize(
    ("device", "expected"),
    [("CUDA0", "passed"), ("cuda", "passed"), ("ROCm0", "failed"), ("SYCL0", "failed"), ("Metal", "failed")],
)
def test_the_family_that_was_asked_for_counts(device: str, expected: str) -> None:
    assert status(SEEN, facts(commands=CARD), AskedFacts(expect_device=device)) == expected


def test_any_family_does_for_a_number_of_layers() -> None:
    asked = AskedFacts(n_gpu_layers="99")
    assert status(SEEN, facts(commands=CARD), asked) == "passed"
    assert status(SEEN, facts(fakes.amd_files(), links=fakes.amd_links()), asked) == "passed"
    finding = judge(SEEN, facts(), asked)
    assert finding is not None
    assert (finding.status, finding.observed) == ("failed", "none")


def test_a_driver_that_hangs_is_unknown_and_not_no_card() -> None:
    finding = judge(SEEN, facts(commands=HANGS), AskedFacts(n_gpu_layers="all"))
    assert finding is not None
    assert (finding.status, finding.why) == ("unknown", "timed_out")


def test_a_card_without_a_library_is_unknown_and_not_seen() -> None:
    assert (
        status(SEEN, facts(fakes.pci("0000:01:00.0", 0x10DE)), AskedFacts(expect_device="CUDA0")) == "unknown"
    )


def test_a_card_whose_files_are_closed_to_us_is_not_seen_and_the_group_is_named() -> None:
    found = facts(
        fakes.amd_files(),
        links=fakes.amd_links(),
        nodes={path: fakes.node(gid=148) for path in fakes.AMD_NODES},
        unreadable=fakes.AMD_NODES,
    )
    finding = judge(SEEN, found, AskedFacts(expect_device="ROCm0"))
    assert finding is not None
    assert finding.status == "failed"
    assert "--group-add 148" in (finding.remedy or "")


VULKAN_ARGV = (fakes.VULKANINFO, "--summary")
READY = {
    "/usr/share/vulkan/icd.d/lvp.json": '{"ICD": {"library_path": "libvulkan_lvp.so"}}',
    "/usr/lib64/libvulkan.so.1": "",
}


def vulkan(summary: str, **more: Any) -> AcceleratorFacts:
    commands = {**nvml.said(*nvml.MISSING), VULKAN_ARGV: completed(VULKAN_ARGV, stdout=summary)}
    return facts(READY, commands=commands, on_path={"vulkaninfo": fakes.VULKANINFO}, **more)


def test_vulkan() -> None:
    asked = AskedFacts(expect_device="Vulkan0")
    software = fakes.SUMMARY[: fakes.SUMMARY.index("GPU0")] + fakes.SUMMARY[fakes.SUMMARY.index("GPU1") :]
    assert status(SEEN, vulkan(fakes.SUMMARY), asked) == "passed"
    assert status(SEEN, vulkan(software), asked) == "failed"
    # The operator lets the engine take a software device: its own list decides.
    chosen = vulkan(software, environ={"GGML_VK_VISIBLE_DEVICES": "0"})
    assert status(SEEN, chosen, asked) == "not applicable"


def test_vulkan_without_vulkaninfo_is_neither_seen_nor_missing() -> None:
    asked = AskedFacts(expect_device="Vulkan0")
    assert status(SEEN, facts(READY), asked) == "not applicable"
    finding = judge(SEEN, facts(), asked)
    assert finding is not None
    assert finding.status == "failed"


def test_registered_drivers_are_no_device_for_a_number_of_layers() -> None:
    assert status(SEEN, facts(READY), AskedFacts(n_gpu_layers="99")) == "failed"


def test_nodes() -> None:
    id_ = "accelerator.nodes-are-accessible"
    nodes = {"/dev/dri/renderD128": fakes.node(gid=992), "/dev/nvidia-caps/nvidia-cap1": fakes.node(0o400, 0)}
    assert status(id_, facts()) == "not applicable"
    assert status(id_, facts(nodes=nodes, unreadable=["/dev/nvidia-caps/nvidia-cap1"])) == "passed"
    finding = judge(id_, facts(nodes=nodes, unreadable=["/dev/dri/renderD128"]))
    assert finding is not None
    assert finding.status == "failed"
    assert "the group render (992)" in (finding.remedy or "")
    assert "do not open the files to everybody" in (finding.remedy or "")


def test_a_node_of_root_alone() -> None:
    found = facts(nodes={"/dev/kfd": fakes.node(0o600, 0)}, unreadable=["/dev/kfd"])
    finding = judge("accelerator.nodes-are-accessible", found)
    assert finding is not None
    assert "root alone" in (finding.remedy or "")


@pytest.mark.parametrize(
    ("vendor", "driver", "expected"),
    [
        (0x10DE, "nvidia", "passed"),
        (0x10DE, "nouveau", "failed"),
        (0x10DE, None, "failed"),
        (0x10DE, "vfio-pci", "not applicable"),
        (0x1002, "amdgpu", "passed"),
        (0x1002, "radeon", "failed"),
        (0x8086, "xe", "passed"),
        (0x1A03, "ast", "not applicable"),
    ],
)
def test_driver_is_bound(vendor: int, driver: str | None, expected: str) -> None:
    links = fakes.bound("0000:01:00.0", driver) if driver else {}
    assert (
        status("accelerator.driver-is-bound", facts(fakes.pci("0000:01:00.0", vendor), links=links))
        == expected
    )


def test_driver_is_bound_on_a_bus_that_was_not_seen() -> None:
    found = collect_accelerators(FakeSystem(commands=nvml.said(*nvml.MISSING)))
    assert status("accelerator.driver-is-bound", found) == "unknown"


@pytest.mark.parametrize(
    ("text", "host", "remedy"),
    [
        ("Driver/library version mismatch", BARE, "restart the machine or reload"),
        ("Unknown Error", BOX, "restart the container"),
        ("Unknown Error", BARE, "kernel log"),
        ("Driver Not Loaded", BARE, "modprobe nvidia"),
    ],
)
def test_a_driver_that_does_not_answer(text: str, host: object, remedy: str) -> None:
    answers: list[dict[str, Any]] = [
        {"query": "library", "value": "x"},
        {"query": "init", "code": 999, "text": text},
    ]
    finding = judge("accelerator.driver-answers", facts(commands=nvml.said(*answers)), host)
    assert finding is not None
    assert finding.status == "failed"
    assert remedy in (finding.remedy or "")


def test_driver_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from llamaops.system import nvml as real

    id_ = "accelerator.driver-answers"
    assert status(id_, facts(commands=CARD), BARE) == "passed"
    assert status(id_, facts(), BARE) == "not applicable"
    system = fakes.fake()
    monkeypatch.setattr(real, "argv", lambda: None)
    assert status(id_, collect_accelerators(system), BARE) == "unknown"


def test_memory_is_free() -> None:
    id_ = "accelerator.memory-is-free"
    assert status(id_, facts()) == "not applicable"
    assert status(id_, facts(commands=CARD)) == "passed"
    memory = {"total": 24 * GIB, "free": 3 * GIB, "used": 21 * GIB}
    held = nvml.device(0, memory=memory, processes=[{"pid": 42, "used": 20 * GIB}])
    finding = judge(id_, facts(commands=nvml.said(*nvml.begun(1), *held)))
    assert finding is not None
    assert (finding.status, finding.severity) == ("failed", "advisory")
    assert "3.00 GiB of 24.00 GiB free" in finding.summary
    assert "process 42 20.00 GiB" in finding.summary


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("CUDA_VISIBLE_DEVICES", "", "failed"),
        ("CUDA_VISIBLE_DEVICES", "-1", "failed"),
        ("CUDA_VISIBLE_DEVICES", "NoDevFiles", "failed"),
        ("NVIDIA_VISIBLE_DEVICES", "void", "failed"),
        ("HIP_VISIBLE_DEVICES", "-1", "failed"),
        ("CUDA_VISIBLE_DEVICES", "0,1", "passed"),
        ("NVIDIA_VISIBLE_DEVICES", "all", "passed"),
        ("GGML_VK_VISIBLE_DEVICES", "0", "passed"),
        ("HSA_OVERRIDE_GFX_VERSION", "", "not applicable"),
    ],
)
def test_variables(name: str, value: str, expected: str) -> None:
    found = facts(environ={name: value})
    assert status("accelerator.no-visibility-variable-hides-it", found) == expected


def test_passthrough() -> None:
    id_ = "accelerator.container-has-passthrough"
    links = fakes.bound("0000:01:00.0", "nvidia")
    card = fakes.pci("0000:01:00.0", 0x10DE)
    assert status(id_, facts(card, links=links), BARE) == "not applicable"
    assert status(id_, facts(), BOX) == "not applicable"
    assert status(id_, facts(card, links=links, nodes={"/dev/nvidia0": fakes.node(0o666)}), BOX) == "passed"
    finding = judge(id_, facts(card, links=links), BOX)
    assert finding is not None
    assert finding.status == "failed"
    assert "--gpus all" in (finding.remedy or "")
    unseen = collect_accelerators(FakeSystem(commands=nvml.said(*nvml.MISSING)))
    assert status(id_, unseen, BOX) == "unknown"
