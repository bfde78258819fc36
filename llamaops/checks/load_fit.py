"""Did the engine allocate what was predicted before it loaded?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.estimate.fit_facts import FitFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.schema.fact import Known

AGREEMENT = 0.01
OLDER = frozenset({"2023", "2024", "2025"})
OLDER_TEXT = "the formulas are those of builds of 2026, and this log is of an older one"
MIB = 2**20


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
        ("KV cache", ("KV cache", "windowed KV cache"), load.kv_buffers),
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
