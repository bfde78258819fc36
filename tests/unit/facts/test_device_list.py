from __future__ import annotations

import pytest

from llamaops.errors import ParseError
from llamaops.facts.device_list import parse_devices
from llamaops.schema.bounds import MIB


def test_none_is_an_empty_list() -> None:
    assert parse_devices("Available devices:\n  (none)\n") == ()
    assert parse_devices("Available devices:\n") == ()


def test_names_descriptions_and_memory() -> None:
    devices = parse_devices(
        "ggml_vulkan: Found 1 Vulkan devices:\nAvailable devices:\n"
        "  CUDA0: NVIDIA H200 (143156 MiB, 142000 MiB free)\n"
        "  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (7937 MiB, 0 MiB free)\n"
        "  RPC[10.0.0.2:50052]: RPC[10.0.0.2:50052] (1 MiB, 1 MiB free)\n"
        "  RPC0: 127.0.0.1:50052 (100 MiB, 50 MiB free)\n"
        "  BLAS: OpenBLAS (0 MiB, 0 MiB free)\n"
    )
    assert [(d.name, d.description, d.total_bytes // MIB, d.free_bytes // MIB) for d in devices] == [
        ("CUDA0", "NVIDIA H200", 143156, 142000),
        ("Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", 7937, 0),
        ("RPC[10.0.0.2:50052]", "RPC[10.0.0.2:50052]", 1, 1),
        ("RPC0", "127.0.0.1:50052", 100, 50),
        ("BLAS", "OpenBLAS", 0, 0),
    ]


@pytest.mark.parametrize(
    "text", ["", "error: unknown argument\n", "Available devices:\n  CUDA0: a card with 5 GB\n"]
)
def test_another_form_is_unparsed(text: str) -> None:
    with pytest.raises(ParseError):
        parse_devices(text)
