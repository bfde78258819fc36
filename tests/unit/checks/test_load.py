from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from llamaops.checks import load as checks
from llamaops.checks.registry import NotApplicable, Verdict, all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.schema.fact import Fact, Known, Source, not_attempted
from tests.unit.facts.load_logs import YEAR_2024, YEAR_2025, parsed, read, stored

SOURCE = Source(kind="file", name="model")


def status(check_id: str, load: LoadFacts, asked: AskedFacts | None = None) -> str:
    """Return the status that the registry gives, or `not applicable`."""
    check = next(c for c in all_checks(["load"]) if c.id == check_id)
    groups: dict[type, object] = {LoadFacts: load}
    if asked is not None:
        groups[AskedFacts] = asked
    finding = run_check(check, groups)
    return "not applicable" if finding is None else finding.status


LOADED = "load.model-is-loaded"
DEVICE = "load.weights-on-expected-device"
FALLBACK = "load.no-silent-cpu-fallback"
CONTEXT = "load.context-as-asked"
SLOTS = "load.slots-as-asked"
ERRORS = "load.no-errors-after-load"
HARDWARE = "load.device-is-hardware"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("b11669-default", "passed"),
        ("b11669-completion", "passed"),
        ("b11669-bad-magic", "failed"),
        ("b11669-bad-template", "failed"),
        ("b11669-router", "failed"),
        ("b11669-port-in-use", "unknown"),
    ],
)
def test_model_is_loaded(log: str, expected: str) -> None:
    assert status(LOADED, read(log)) == expected


def test_a_failed_load_says_why() -> None:
    assert "invalid magic characters" in checks.model_is_loaded(read("b11669-bad-magic")).summary


@pytest.mark.parametrize(
    ("log", "asked", "expected"),
    [
        ("b10434-rpc-offload20", AskedFacts(n_gpu_layers="20"), "passed"),
        ("b10434-rpc-offload20", AskedFacts(expect_device="RPC0"), "passed"),
        ("b10434-llvmpipe", AskedFacts(expect_device="vulkan"), "passed"),
        ("b10434-llvmpipe", AskedFacts(expect_device="Vulkan1"), "failed"),
        ("b10434-llvmpipe", AskedFacts(expect_device="CUDA"), "failed"),
        ("b10434-llvmpipe", AskedFacts(n_gpu_layers="0"), "failed"),
        # All layers are called offloaded, and every byte is in host memory.
        ("b10434-cpu-claims-offload", AskedFacts(n_gpu_layers="all"), "failed"),
        ("b10434-cpu-claims-offload", AskedFacts(expect_device="Vulkan0", n_gpu_layers="99"), "failed"),
        ("b10434-cpu-claims-offload", AskedFacts(expect_device="CPU"), "passed"),
        ("b11669-completion", AskedFacts(n_gpu_layers="0"), "passed"),
        ("b11669-default", AskedFacts(n_gpu_layers="99"), "unknown"),
        ("b11669-default", AskedFacts(n_gpu_layers="0"), "unknown"),
        ("b11669-completion", AskedFacts(), "not applicable"),
        ("b11669-completion", AskedFacts(n_gpu_layers="auto"), "not applicable"),
        ("2025", AskedFacts(expect_device="Vulkan0"), "passed"),
    ],
)
def test_weights_on_expected_device(log: str, asked: AskedFacts, expected: str) -> None:
    assert status(DEVICE, read(log), asked) == expected


def test_pinned_host_memory_is_no_device() -> None:
    text = YEAR_2024.replace("     CUDA0 buffer", " CUDA_Host buffer").replace(
        "     CUDA1 buffer", " CUDA_Host buffer"
    )
    assert status(DEVICE, parsed(text), AskedFacts(expect_device="CUDA")) == "failed"
    assert status(DEVICE, parsed(YEAR_2024), AskedFacts(expect_device="CUDA")) == "passed"


def test_a_device_number_is_not_a_prefix_of_another() -> None:
    text = YEAR_2024.replace("CUDA0 buffer", "CUDA10 buffer").replace("CUDA1 buffer", "CUDA11 buffer")
    assert status(DEVICE, parsed(text), AskedFacts(expect_device="CUDA1")) == "failed"


def test_the_engine_s_count_is_called_no_proof() -> None:
    verdict = checks.weights_on_expected_device(
        read("b10434-cpu-claims-offload"), AskedFacts(n_gpu_layers="99")
    )
    assert isinstance(verdict, Verdict)
    assert "31/31 offloaded layers proves nothing" in verdict.summary


def test_buffers_of_no_size_are_no_device() -> None:
    text = stored("b10434-llvmpipe").replace(
        "Vulkan0 model buffer size =    92.10", "Vulkan0 model buffer size =     0.00"
    )
    assert status(DEVICE, parsed(text), AskedFacts(n_gpu_layers="all")) == "failed"


@pytest.mark.parametrize(
    ("log", "asked", "expected"),
    [
        ("b10434-llvmpipe", AskedFacts(n_gpu_layers="all"), "passed"),
        ("b10434-cpu-claims-offload", AskedFacts(n_gpu_layers="99"), "failed"),
        ("b11669-default", AskedFacts(n_gpu_layers="99"), "unknown"),
        ("b11669-default", AskedFacts(n_gpu_layers="0"), "not applicable"),
    ],
)
def test_no_silent_cpu_fallback(log: str, asked: AskedFacts, expected: str) -> None:
    assert status(FALLBACK, read(log), asked) == expected


def test_the_engine_s_own_warning_is_enough() -> None:
    text = "warning: no usable GPU found, --gpu-layers option will be ignored\n" + stored("b11669-default")
    assert status(FALLBACK, parsed(text), AskedFacts(n_gpu_layers="99")) == "failed"


@pytest.mark.parametrize(
    ("log", "asked", "expected"),
    [
        ("b10434-rpc-offload20", AskedFacts(ctx_size=2048, parallel=2), "passed"),
        ("b10434-rpc-offload20", AskedFacts(ctx_size=4096, parallel=2), "failed"),
        ("b10434-rpc-offload20", AskedFacts(ctx_size=1024, parallel=2), "failed"),
        ("b10434-llvmpipe", AskedFacts(ctx_size=1000, parallel=3), "passed"),
        ("b11669-completion", AskedFacts(via="completion", ctx_size=200), "passed"),
        ("b11669-default", AskedFacts(ctx_size=2048), "passed"),
        ("b11669-default", AskedFacts(ctx_size=4096), "unknown"),
        ("b11669-default", AskedFacts(), "not applicable"),
        ("2024", AskedFacts(ctx_size=8192, parallel=2), "passed"),
    ],
)
def test_context_as_asked(log: str, asked: AskedFacts, expected: str) -> None:
    assert status(CONTEXT, read(log), asked) == expected


@pytest.mark.parametrize(
    ("log", "asked", "expected"),
    [
        ("b11669-default", AskedFacts(parallel=4, kv_unified=True), "passed"),
        ("b11669-default", AskedFacts(parallel=2), "failed"),
        ("b11669-default", AskedFacts(parallel=4, kv_unified=False), "failed"),
        ("b11669-bad-magic", AskedFacts(parallel=4), "unknown"),
        ("b11669-default", AskedFacts(), "not applicable"),
        ("b11669-completion", AskedFacts(via="completion", parallel=1), "not applicable"),
    ],
)
def test_slots_as_asked(log: str, asked: AskedFacts, expected: str) -> None:
    assert status(SLOTS, read(log), asked) == expected


def test_no_errors_after_load() -> None:
    failing = stored("b11669-default") + "0.04.000.000 E srv  update_slots: Context size has been exceeded.\n"
    assert status(ERRORS, read("b11669-default")) == "passed"
    assert status(ERRORS, parsed(failing)) == "failed"
    assert status(ERRORS, read("b11669-port-in-use")) == "unknown"


@pytest.mark.parametrize(
    "line",
    [
        "state_read_meta: failed to find 49 available cells in kv cache",
        "state_seq_set_data: error loading state: failed to restore kv cache",
        "srv          load: failed to restore state with size 1130292",
    ],
)
def test_a_kept_prompt_that_finds_no_room_is_no_error(line: str) -> None:
    begun = stored("b11669-default")
    assert status(ERRORS, parsed(f"{begun}0.04.000.000 E {line}\n")) == "passed"
    assert status(ERRORS, parsed(f"{begun}0.04.000.000 E srv load: failed to restore anything\n")) == "failed"


def test_device_is_hardware() -> None:
    assert status(HARDWARE, parsed(YEAR_2025)) == "passed"
    assert status(HARDWARE, read("b10434-llvmpipe")) == "failed"
    assert status(HARDWARE, read("b11669-default")) == "unknown"
    assert status(HARDWARE, read("b11669-completion")) == "not applicable"


def model_of(tensor_bytes: Fact[int]) -> GgufFacts:
    return cast("GgufFacts", SimpleNamespace(tensor_bytes=tensor_bytes))


@pytest.mark.parametrize(
    ("log", "mib", "holds"),
    [
        ("b11669-completion", 92.1, True),
        ("b10434-rpc-offload20", 92.1, True),
        ("b11669-completion", 400.0, False),
        ("b11669-completion", 20.0, False),
    ],
)
def test_buffers_match_model(log: str, mib: float, holds: bool) -> None:
    tensors = Known(value=int(mib * 2**20), source=SOURCE)
    assert checks.buffers_match_model(read(log), model_of(tensors)).holds is holds


def test_buffers_without_a_file_are_not_judged() -> None:
    check = next(c for c in all_checks(["load"]) if c.id == "load.buffers-match-model")
    groups: dict[type, object] = {
        LoadFacts: read("b11669-completion"),
        GgufFacts: model_of(not_attempted("no header was read")),
    }
    finding = run_check(check, groups)
    assert finding is not None
    assert finding.status == "unknown"


def test_not_applicable_says_why() -> None:
    answer = checks.slots_as_asked(read("b11669-default"), AskedFacts())
    assert isinstance(answer, NotApplicable)
    assert answer.summary
