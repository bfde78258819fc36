from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.accelerator import AcceleratorFacts, collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.derive import all_unknown, computed
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.host import HostFacts, collect_host
from llamaops.schema.fact import not_attempted
from llamaops.schema.finding import Finding
from tests.fakes import accelerators, hosts, nvml
from tests.fakes.system import FakeSystem

GIB = hosts.GIB


def model(tensor_bytes: int | None) -> GgufFacts:
    facts = all_unknown(GgufFacts, not_attempted("no header was read"))
    return facts if tensor_bytes is None else replace(facts, tensor_bytes=computed(tensor_bytes, "test"))


def gpu(free: int | None = None) -> AcceleratorFacts:
    if free is None:
        return collect_accelerators(accelerators.fake())
    memory = {"total": 24 * GIB, "free": free, "used": 24 * GIB - free}
    commands = nvml.said(*nvml.begun(1), *nvml.device(0, memory=memory))
    return collect_accelerators(accelerators.fake(commands=commands))


def judge(id_: str, *groups: object) -> Finding | None:
    (check,) = (one for one in all_checks(["host"]) if one.id == id_)
    return run_check(check, {type(group): group for group in groups})


def status(id_: str, *groups: object) -> str:
    finding = judge(id_, *groups)
    return "not applicable" if finding is None else finding.status


def changed(system: FakeSystem, files: Mapping[str, str | bytes | OSError], **more: object) -> HostFacts:
    return collect_host(hosts.fake({**system.files, **files}, **more))


BARE, BOX, NOTHING = (collect_host(one()) for one in (hosts.bare_metal, hosts.docker, hosts.nothing))


def test_every_check_is_about_the_host() -> None:
    assert {one.boundary for one in all_checks(["host"])} == {"host"}
    assert len(all_checks(["host"])) == 11


def test_memory_is_known() -> None:
    assert status("host.memory-is-known", BARE) == "passed"
    assert status("host.memory-is-known", NOTHING) == "unknown"
    finding = judge("host.memory-is-known", BOX)
    assert finding is not None
    assert "control group limit of 4.00 GiB" in finding.summary
    assert "/sys/fs/cgroup/memory.max" in finding.summary


def test_limits_are_known() -> None:
    assert status("host.limits-are-known", BARE) == "passed"
    assert status("host.limits-are-known", NOTHING) == "unknown"


def test_instruction_sets() -> None:
    assert status("host.cpu-can-run-llamacpp", BARE) == "passed"
    assert status("host.cpu-can-run-llamacpp", NOTHING) == "unknown"
    old = changed(hosts.bare_metal(), {"/proc/cpuinfo": hosts.x86_cpuinfo().replace(" avx2", "")})
    finding = judge("host.cpu-can-run-llamacpp", old)
    assert finding is not None
    assert (finding.status, finding.severity) == ("failed", "advisory")
    assert "lacks avx2" in finding.summary
    arm = changed(hosts.bare_metal(), {"/proc/cpuinfo": hosts.GRACE_CPUINFO}, machine="aarch64")
    assert status("host.cpu-can-run-llamacpp", arm) == "passed"
    assert (
        status("host.cpu-can-run-llamacpp", collect_host(FakeSystem(machine="riscv64"))) == "not applicable"
    )


@pytest.mark.parametrize(
    ("host", "weights", "expected"),
    [
        (BARE, 40 * GIB, "passed"),
        (BARE, 60 * GIB, "failed"),
        (BOX, 2 * GIB, "passed"),
        (BOX, 4 * GIB, "failed"),  # the host has 48 GiB free, the container's limit leaves 3
        (BOX, None, "unknown"),
        (NOTHING, GIB, "unknown"),
    ],
)
def test_memory_holds_model(host: HostFacts, weights: int | None, expected: str) -> None:
    assert status("host.memory-holds-model", host, model(weights), AskedFacts(), gpu()) == expected


def test_the_binding_limit_and_the_remedy_are_named() -> None:
    finding = judge("host.memory-holds-model", BOX, model(8 * GIB), AskedFacts(), gpu())
    assert finding is not None
    assert finding.remedy is not None
    assert "container's memory limit" in finding.remedy
    assert "/sys/fs/cgroup/memory.max" in finding.summary
    assert "on top" in finding.summary
    on_host = judge("host.memory-holds-model", BARE, model(80 * GIB), AskedFacts(), gpu())
    assert on_host is not None
    assert "free on the host" in on_host.summary
    assert "container" not in (on_host.remedy or "")


def test_memory_of_a_device_counts_unless_the_cpu_was_asked_for() -> None:
    big = model(20 * GIB)
    assert status("host.memory-holds-model", BOX, big, AskedFacts(), gpu(23 * GIB)) == "passed"
    assert (
        status("host.memory-holds-model", BOX, big, AskedFacts(n_gpu_layers="0"), gpu(23 * GIB)) == "failed"
    )
    assert status("host.memory-holds-model", BOX, big, AskedFacts(), gpu(GIB)) == "failed"


def with_model(mounts: str, **more: object) -> HostFacts:
    files = {"/proc/self/mountinfo": mounts, "/m/a.gguf": "GGUF"}
    return collect_host(hosts.fake(files, **more), model_path="/m/a.gguf")


def test_model_file_is_readable() -> None:
    assert status("host.model-file-is-readable", BARE) == "not applicable"
    assert status("host.model-file-is-readable", with_model(hosts.ROOT_MOUNT)) == "passed"
    closed = with_model(hosts.ROOT_MOUNT, unreadable=["/m/a.gguf"])
    assert status("host.model-file-is-readable", closed) == "failed"
    missing = collect_host(hosts.bare_metal(), model_path="/m/none.gguf")
    assert status("host.model-file-is-readable", missing) == "unknown"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        (hosts.ROOT_MOUNT, "passed"),
        (hosts.ROOT_MOUNT + "9 24 0:9 / /m rw - nfs4 nas:/m rw\n", "failed"),
        (hosts.ROOT_MOUNT + "9 24 0:9 / /m rw - tmpfs tmpfs rw\n", "failed"),
        (hosts.ROOT_MOUNT + "9 24 0:9 / /m rw - 9p drvfs rw\n", "failed"),
        ("nothing\n", "unknown"),
    ],
)
def test_model_folder_is_local(mounts: str, expected: str) -> None:
    assert status("host.model-folder-is-local", with_model(mounts)) == expected


def test_swap() -> None:
    def host(text: str) -> HostFacts:
        return changed(hosts.bare_metal(), {"/proc/meminfo": text})

    table = "MemTotal: 1000 kB\nMemAvailable: {0} kB\nSwapTotal: 900 kB\nSwapFree: {1} kB\n"
    assert status("host.swap-is-not-needed", host(table.format(500, 800))) == "passed"
    assert status("host.swap-is-not-needed", host(table.format(100, 100))) == "failed"
    assert status("host.swap-is-not-needed", host("MemTotal: 1 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")) == (
        "not applicable"
    )
    assert status("host.swap-is-not-needed", NOTHING) == "unknown"


def test_memlock() -> None:
    id_, mlock = "host.memlock-allows-mlock", AskedFacts(mlock=True)
    assert status(id_, BARE, AskedFacts(), model(GIB)) == "not applicable"
    assert status(id_, BARE, mlock, model(GIB)) == "failed"
    assert status(id_, BARE, mlock, model(60000)) == "passed"
    assert status(id_, BARE, mlock, model(None)) == "unknown"
    able = changed(hosts.bare_metal(), hosts.common_files(capabilities="0000000000004000"))
    assert status(id_, able, mlock, model(GIB)) == "passed"


def test_threads() -> None:
    id_ = "host.threads-within-quota"
    assert status(id_, BARE, AskedFacts()) == "not applicable"
    assert status(id_, BARE, AskedFacts(threads=8)) == "passed"
    assert status(id_, BARE, AskedFacts(threads=9)) == "failed"
    assert status(id_, NOTHING, AskedFacts(threads=1)) == "unknown"
    finding = judge(id_, BOX, AskedFacts())  # a quota of 1.5 and two cores that the engine would take
    assert finding is not None
    assert (finding.status, finding.remedy) == ("failed", "set --threads 1 and measure again")
    assert "9034 of 9120 periods" in finding.summary


def test_open_files() -> None:
    assert status("host.open-files-limit", BARE) == "passed"
    assert status("host.open-files-limit", NOTHING) == "unknown"
    low = changed(hosts.bare_metal(), {"/proc/self/limits": hosts.LIMITS.replace(" 1024  ", " 256   ")})
    assert status("host.open-files-limit", low) == "failed"


def test_commit_limit() -> None:
    id_ = "host.commit-limit-allows-model"
    assert status(id_, BARE, model(GIB)) == "not applicable"
    strict = changed(hosts.bare_metal(), {"/proc/sys/vm/overcommit_memory": "2\n"})
    assert status(id_, strict, model(GIB)) == "passed"
    assert status(id_, strict, model(30 * GIB)) == "failed"
    assert status(id_, NOTHING, model(GIB)) == "unknown"
