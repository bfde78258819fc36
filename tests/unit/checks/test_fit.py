"""Whether a load fits is asked of the upper end; a lower bound that is too much is enough to say no."""

from __future__ import annotations

from typing import Any

import msgspec

from llamaops.checks.fit import engine_agrees, memory_fits_devices, memory_fits_host
from llamaops.checks.load_fit import OWN_SLACK, prediction_agrees
from llamaops.checks.registry import NotApplicable, Verdict, all_checks, run_check
from llamaops.estimate.fit_facts import EngineAnswer, FitFacts, MemoryPart
from llamaops.facts.load_log import parse_load_log
from llamaops.facts.load_log_buffers import Buffer
from llamaops.facts.process_memory import ProcessMemory
from llamaops.schema.fact import Source, Unknown, known, not_attempted
from tests.unit.checks.test_lifecycle import lifecycle

MIB = 2**20
SOURCE = Source(kind="computed", name="test")
GAP = Unknown(why="unsupported", detail="an indexer's caches are not worked out", source=SOURCE)


def part(name: str, size_mib: int, high_mib: int | None = None, place: str = "host") -> MemoryPart:
    high = size_mib if high_mib is None else high_mib
    values: dict[str, Any] = {"place": place}
    return MemoryPart(name=name, low_bytes=size_mib * MIB, high_bytes=high * MIB, formula="test", **values)


def fit(**changes: Any) -> FitFacts:
    values: dict[str, Any] = {
        "model_path": "m.gguf",
        "architecture": "llama",
        "is_described": True,
        "front_end": "server",
        "plan": "context 4096 tokens",
        "context_tokens": 4096,
        "slots": 4,
        "parts": (part("weights", 800), part("KV cache", 100), part("compute", 50), part("output", 1)),
        "host_bytes": known(951 * MIB, SOURCE),
        "host_low_bytes": 951 * MIB,
        "device_bytes": known(0, SOURCE),
        "device_low_bytes": 0,
        "host_available_bytes": known(2000 * MIB, SOURCE),
        "device_free_bytes": known(0, SOURCE),
        "prompt_cache_bytes": known(0, SOURCE),
        "room": not_attempted("not sought"),
        "engine": not_attempted("not asked"),
        "naive_bytes": 0,
    }
    return FitFacts(**{**values, **changes})


def holds(found: Verdict | NotApplicable) -> bool:
    assert isinstance(found, Verdict)
    return found.holds


def status(name: str, *groups: object) -> str:
    found = next(check for check in all_checks() if check.id == name)
    finding = run_check(found, {type(group): group for group in groups})
    return "not applicable" if finding is None else finding.status


def test_it_fits_where_the_upper_end_is_free() -> None:
    assert holds(memory_fits_host(fit()))
    assert not holds(memory_fits_host(fit(host_available_bytes=known(950 * MIB, SOURCE))))


def test_an_unknown_part_makes_the_answer_unknown_but_never_a_pass() -> None:
    assert status("fit.memory-fits-host", fit(host_bytes=GAP)) == "unknown"
    short = fit(host_bytes=GAP, host_available_bytes=known(100 * MIB, SOURCE))
    assert status("fit.memory-fits-host", short) == "failed"


def test_unknown_room_is_no_pass() -> None:
    assert status("fit.memory-fits-host", fit(host_available_bytes=GAP)) == "unknown"


def test_cards_are_asked_only_where_something_goes_there() -> None:
    assert isinstance(memory_fits_devices(fit()), NotApplicable)
    on_card = fit(device_low_bytes=10 * MIB, device_bytes=known(12 * MIB, SOURCE))
    assert not holds(memory_fits_devices(on_card))
    roomy = msgspec.structs.replace(on_card, device_free_bytes=known(13 * MIB, SOURCE))
    assert holds(memory_fits_devices(roomy))


def answer(**changes: Any) -> EngineAnswer:
    values: dict[str, Any] = {
        "program": "llama-server",
        "front_end": "server",
        "model_mib": 800,
        "context_mib": 100,
        "compute_mib": 50,
    }
    return EngineAnswer(**{**values, **changes})


def test_the_engine_agrees_within_its_rounding() -> None:
    assert isinstance(engine_agrees(fit()), NotApplicable)
    assert holds(engine_agrees(fit(engine=known(answer(compute_mib=51), SOURCE))))
    assert not holds(engine_agrees(fit(engine=known(answer(compute_mib=150), SOURCE))))
    assert status("fit.engine-agrees", fit(engine=GAP)) == "unknown"


def test_another_front_end_is_named_as_the_reason() -> None:
    found = engine_agrees(fit(engine=known(answer(front_end="fit-params", compute_mib=300), SOURCE)))
    assert isinstance(found, Verdict)
    assert not found.holds
    assert "one row for each slot" in found.summary
    found = engine_agrees(fit(front_end="bench", engine=known(answer(compute_mib=30), SOURCE)))
    assert isinstance(found, Verdict)
    assert "bench reserves results for a whole batch, the server one row" in found.summary


def load(**buffers: int) -> Any:
    facts = parse_load_log("", SOURCE)
    made = {
        f"{name}_buffers": known(
            (Buffer(name="CPU", size_bytes=size * MIB, place="host"),), Source(kind="command", name="log")
        )
        for name, size in buffers.items()
    }
    return msgspec.structs.replace(facts, **made)


def test_a_load_that_took_what_was_predicted_agrees() -> None:
    assert holds(prediction_agrees(fit(), load(kv=100, compute=50)))
    found = prediction_agrees(fit(), load(kv=100, compute=90))
    assert isinstance(found, Verdict)
    assert not found.holds
    assert "compute 50.0 MiB predicted, 90.0 MiB allocated" in found.summary


def test_a_band_agrees_with_whatever_lies_in_it() -> None:
    wide = fit(parts=(part("weights", 800), part("compute", 50, 120)))
    assert holds(prediction_agrees(wide, load(compute=100)))
    assert not holds(prediction_agrees(wide, load(compute=150)))


def test_a_log_without_buffers_is_no_evidence() -> None:
    assert isinstance(prediction_agrees(fit(), load()), NotApplicable)
    assert status("fit.prediction-agrees-with-load", fit(), load()) == "not applicable"


def holding(own_bytes: int, file_bytes: int = 800 * MIB) -> Any:
    memory = ProcessMemory(resident_bytes=own_bytes + file_bytes, own_bytes=own_bytes, file_bytes=file_bytes)
    return lifecycle(memory_when_ready=known(memory, SOURCE))


def weights(*buffers: tuple[str, int]) -> Any:
    found = tuple(Buffer(name=name, size_bytes=size * MIB, place="host") for name, size in buffers)
    return msgspec.structs.replace(load(), weight_buffers=known(found, SOURCE))


PROCESS = "fit.process-memory-is-as-predicted"
PREDICTED = 151 * MIB


def test_a_process_holds_its_buffers_and_what_it_copied() -> None:
    mapped = weights(("CPU_Mapped", 800), ("CPU_REPACK", 50))
    assert status(PROCESS, fit(), mapped, holding(PREDICTED + 50 * MIB + OWN_SLACK)) == "passed"
    assert status(PROCESS, fit(), mapped, holding(PREDICTED + 51 * MIB + OWN_SLACK)) == "failed"
    assert status(PROCESS, fit(), mapped, holding(20 * MIB)) == "passed", "not touched yet"


def test_weights_that_are_not_mapped_are_its_own() -> None:
    assert status(PROCESS, fit(), weights(("CPU", 800)), holding(PREDICTED + 800 * MIB, 9 * MIB)) == "passed"
    assert status(PROCESS, fit(), weights(("CPU_Mapped", 800)), holding(PREDICTED + 800 * MIB)) == "failed"


def test_process_memory_is_not_judged_where_it_says_nothing() -> None:
    card = fit(parts=(part("weights", 800, place="device"),))
    assert status(PROCESS, card, weights(), holding(1)) == "not applicable"
    late = lifecycle(ready_s=Unknown(why="absent", detail="never ready", source=SOURCE))
    assert status(PROCESS, fit(), weights(), late) == "not applicable"
    assert status(PROCESS, fit(), weights(), lifecycle()) == "unknown"
    old = msgspec.structs.replace(weights(), era=known("2024", SOURCE))
    assert status(PROCESS, fit(), old, holding(1)) == "unknown"
