"""Did the engine allocate what was predicted before it loaded?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.estimate.fit_facts import FitFacts
from llamaops.facts.lifecycle import LifecycleFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.schema.fact import Known

AGREEMENT = 0.01
OLDER = frozenset({"2023", "2024", "2025"})
OLDER_TEXT = "the formulas are those of builds of 2026, and this log is of an older one"
MIB = 2**20
OWN_SLACK, OWN_SHARE = 128 * MIB, 0.1
"""What a process may hold beyond its buffers: vocabulary, threads, heap; seen are 15 to 70 MiB."""


def _mib(size: int) -> str:
    return f"{size / MIB:,.1f} MiB"


@check(
    "fit.prediction-agrees-with-load",
    title="The engine allocated what was predicted",
    boundary="model_load",
    severity="advisory",
    remedy="report it as a defect of llamaops, with the record: it has the formula of the part that differs",
)
def prediction_agrees(fit: FitFacts, load: LoadFacts) -> Verdict | NotApplicable:
    """Compare caches, state and compute of the load log with the prediction, to 1 % of the predicted sum.

    Weights are left out: with memory mapping the log shows a span of the file.
    """
    pairs = (
        ("KV cache", ("KV cache", "windowed KV cache", "indexer cache"), load.kv_buffers),
        ("recurrent state", ("recurrent state",), load.state_buffers),
        ("compute", ("compute",), load.compute_buffers),
        ("output", ("output",), load.output_buffers),
    )
    seen, worst, off = [], 0, 0
    total = sum(part.high_bytes for part in fit.parts)
    for name, parts, fact in pairs:
        if not isinstance(fact, Known) or not fact.value:
            continue
        real = sum(buffer.size_bytes for buffer in fact.value)
        low = sum(part.low_bytes for part in fit.parts if part.name in parts)
        high = sum(part.high_bytes for part in fit.parts if part.name in parts)
        gap = max(0, real - high, low - real)
        seen.append(f"{name} {_mib(high)} predicted, {_mib(real)} allocated")
        off += gap
        worst = max(worst, gap)
    if not seen:
        return NotApplicable("the load log shows no buffers at its verbosity")
    if isinstance(load.era, Known) and load.era.value in OLDER:
        raise NotKnownError("unsupported", f"{OLDER_TEXT}: {'; '.join(seen)}")
    return Verdict(
        holds=off <= AGREEMENT * total,
        summary="; ".join(seen),
        expected=f"within {100 * AGREEMENT:g} % of {_mib(total)}",
        observed=f"{_mib(off)} apart",
    )


@check(
    "fit.process-memory-is-as-predicted",
    title="The process holds no more memory than was predicted",
    boundary="model_load",
    severity="advisory",
    remedy="report it with the record; until then leave so much more room on this host",
)
def process_memory_is_as_predicted(
    fit: FitFacts, load: LoadFacts, lifecycle: LifecycleFacts
) -> Verdict | NotApplicable:
    """Compare what the process holds of its own, when ready, with the predicted buffers and what it copied.

    Less is no sign of anything: pages that were not touched yet are not resident. With a card the driver
    holds memory that nobody can predict.
    """
    if any(part.place == "device" for part in fit.parts):
        return NotApplicable("with a card, its driver holds host memory of its own")
    if not isinstance(lifecycle.ready_s, Known):
        return NotApplicable("the server did not become ready")
    if isinstance(load.era, Known) and load.era.value in OLDER:
        raise NotKnownError("unsupported", OLDER_TEXT)
    memory = lifecycle.memory_when_ready.need()
    buffers = load.weight_buffers.value if isinstance(load.weight_buffers, Known) else ()
    copied = sum(one.size_bytes for one in buffers if not one.name.endswith("_Mapped"))
    predicted = sum(part.high_bytes for part in fit.parts if part.name != "weights")
    most = predicted + copied + max(OWN_SLACK, int(OWN_SHARE * (predicted + copied)))
    return Verdict(
        holds=memory.own_bytes <= most,
        summary=f"{_mib(predicted)} of buffers predicted, {_mib(copied)} of weights copied; it holds "
        f"{_mib(memory.own_bytes)} of its own and {_mib(memory.file_bytes)} of files",
        expected=f"at most {_mib(most)} of its own",
        observed=f"{_mib(memory.own_bytes)} of its own",
    )
