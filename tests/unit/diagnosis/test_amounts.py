"""Amounts in the words of people and tools."""

from __future__ import annotations

import pytest

from llamaops.diagnosis.amounts import amounts


def told(text: str, kind: str = "host-facts") -> dict[str, float]:
    return {name: round(value, 1) for name, value, _number, _line in amounts(text, kind)}


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("ram_mib: 32768", "host-facts", {"ram_total_mib": 32768.0}),
        ("MemTotal:       32768000 kB", "inspect", {"ram_total_mib": 32000.0}),
        ("MemAvailable: 1024000 kB", "inspect", {"ram_free_mib": 1000.0}),
        ("mac: {chip: M2 Pro, memory_gib: 32}", "host-facts", {"ram_total_mib": 32768.0}),
        ("resources: {limits: {memory: 6Gi}}", "config", {"memory_limit_mib": 6144.0}),
        ("limits:\n  memory: 6Gi", "config", {"memory_limit_mib": 6144.0}),
        ("docker run -m 6g image -m /m.gguf", "command", {"memory_limit_mib": 6144.0}),
        ('limits:\n  cpu: "2"', "config", {"cpu_limit": 2.0}),
        ("limits: {cpu: 500m}", "config", {"cpu_limit": 0.5}),
        ("docker run --cpus=4 image", "command", {"cpu_limit": 4.0}),
        ("CPUQuota=250%", "unit-file", {"cpu_limit_percent": 250.0}),
        ("MemoryMax=8G", "unit-file", {"memory_limit_mib": 8192.0}),
        ("memory.max: 8589934592", "host-facts", {"memory_limit_mib": 8192.0}),
        (
            "gpu: {vram_mib: 8188, used_mib: 700}",
            "host-facts",
            {"vram_total_mib": 8188.0, "vram_used_mib": 700.0},
        ),
        (
            "file: {size_bytes: 1048576, expected_bytes: 2097152}",
            "host-facts",
            {"model_mib": 1.0, "model_expected_mib": 2.0},
        ),
        ("-rw-r--r-- 1 a a 4294967296 Jan  5 09:00 m.gguf", "inspect", {"model_mib": 4096.0}),
        ("print_info: file size   = 4.00 GiB (4.5 BPW)", "log", {"model_mib": 4096.0}),
        (
            "cpu: {model: x, cores: 8, threads: 16}",
            "host-facts",
            {"cores_physical": 8.0, "cores_logical": 16.0},
        ),
        ("Core(s) per socket:  8\nSocket(s):  2", "inspect", {"cores_per_socket": 8.0, "sockets": 2.0}),
    ],
)
def test_what_is_told(text: str, kind: str, expected: dict[str, float]) -> None:
    assert told(text, kind) == expected


@pytest.mark.parametrize(
    "text",
    [
        "shared_gpu_memory_mib: 1740",
        "gpu_memory_bandwidth_util: 2",
        "swap_mib: 4096",
        "port: 8080",
        "model: {architecture: granite}",
        "CUDA0 KV buffer size = 300.00 MiB",
    ],
)
def test_what_counts_something_else(text: str) -> None:
    assert told(text) == {}
