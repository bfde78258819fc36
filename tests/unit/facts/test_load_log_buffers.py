from __future__ import annotations

import pytest

from llamaops.facts.load_log_buffers import SOFTWARE, mib_to_bytes, place_of


@pytest.mark.parametrize(
    "name",
    [
        "CPU", "CPU_Mapped", "CPU_REPACK", "CPU_AARCH64", "AMX", "BLAS", "CPU_NEWKIND",
        "CUDA_Host", "ROCm_Host", "Vulkan_Host", "SYCL_Host",
    ],
)  # fmt: skip
def test_host_memory(name: str) -> None:
    assert place_of(name) == ("host", None, None)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("CUDA0", "CUDA0"),
        ("CUDA0_Split", "CUDA0"),
        ("ROCm1", "ROCm1"),
        ("MTL0_Mapped", "MTL0"),
        ("Metal", "Metal"),
        ("Vulkan10", "Vulkan10"),
    ],
)
def test_device_memory(name: str, device: str) -> None:
    assert place_of(name) == ("device", device, None)


def test_remote_memory() -> None:
    assert place_of("RPC0[10.0.0.2:50052]") == ("remote", "RPC0", "10.0.0.2:50052")
    assert place_of("RPC[CPU:50052]") == ("remote", "RPC", "CPU:50052")


@pytest.mark.parametrize("name", ["", "CUDA0_", "notCUDA0", "GPU?", "RPC0[", "CPUX"])
def test_anything_else_is_not_recognised(name: str) -> None:
    assert place_of(name)[0] == "unrecognised"


@pytest.mark.parametrize("text", ["llvmpipe (LLVM 15)", "Google SwiftShader", "Mesa lavapipe"])
def test_software_drivers(text: str) -> None:
    assert SOFTWARE.search(text)
    assert not SOFTWARE.search("NVIDIA GeForce RTX 3090")


def test_nonsense_sizes_are_nothing() -> None:
    assert mib_to_bytes("1.5") == 1572864
    assert mib_to_bytes("1.2.3") == 0
