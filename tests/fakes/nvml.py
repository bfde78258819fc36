"""What the child that asks NVML prints."""

from __future__ import annotations

import json
from typing import Any

from llamaops.system import nvml
from llamaops.system.process import Completed, End
from tests.fakes.system import completed

GIB = 1 << 30


def lines(*answers: dict[str, Any]) -> str:
    return "".join(json.dumps(answer) + "\n" for answer in answers)


def said(
    *answers: dict[str, Any], end: End | None = None, more: str = ""
) -> dict[tuple[str, ...], Completed]:
    """Return the commands of a FakeSystem on which the child printed these lines."""
    argv = nvml.argv()
    assert argv is not None
    return {tuple(argv): completed(argv, stdout=lines(*answers) + more, end=end)}


def begun(count: int) -> list[dict[str, Any]]:
    return [
        {"query": "library", "value": "libnvidia-ml.so.1"},
        {"query": "init", "value": True},
        {"query": "driver_version", "value": "550.54.15"},
        {"query": "cuda_version", "value": 12040},
        {"query": "count", "value": count},
    ]


def device(index: int, **answers: Any) -> list[dict[str, Any]]:
    """One device with its answers; an integer under `error` of a pair is NVML's code."""
    told = {
        "name": f"NVIDIA Test {index}",
        "memory": {"total": 24 * GIB, "free": 23 * GIB, "used": GIB},
        "compute_mode": 0,
        "mig_mode": [0, 0],
        "processes": [],
        **answers,
    }
    return [{"device": index, "query": query, "value": value} for query, value in told.items()]


MISSING = [{"query": "library", "code": 12, "text": "libnvidia-ml.so.1: no such library"}]
