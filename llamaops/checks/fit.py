"""Will it fit, and does the engine say the same?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.estimate.fit_facts import FitFacts
from llamaops.schema.fact import Fact, Unknown

AGREEMENT = 0.01
MIB = 2**20
ROUNDING_MIB = 3
"""The engine rounds each of its figures to MiB."""


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"


def _lines_up(needed: Fact[int], low: int, room: Fact[int], where: str) -> Verdict:
    """Compare a need with the room for it; a lower bound that is too much is enough to say no."""
    available = room.need()
    if low > available:
        return Verdict(
            holds=False,
            summary=f"needs at least {_mib(low)} of {where}, {_mib(available)} are free",
            expected=f"at most {_mib(available)}",
            observed=_mib(low),
        )
    high = needed.need()
    fits = high <= available
    span = _mib(high) if high == low else f"{_mib(low)} to {_mib(high)}"
    return Verdict(
        holds=fits,
        summary=f"needs {span} of {where}, {_mib(available)} are free",
        expected=f"at most {_mib(available)}",
        observed=span,
    )


@check(
    "fit.memory-fits-host",
    title="What lies in host memory fits into what host and control group leave",
    boundary="host",
    remedy="lower --ctx-size or --parallel, take a narrower cache type, put layers on a card, or raise the "
    "memory limit of the container",
)
def memory_fits_host(fit: FitFacts) -> Verdict:
    """Ask that the upper end of the estimate is available; unknown where a part is."""
    return _lines_up(fit.host_bytes, fit.host_low_bytes, fit.host_available_bytes, "host memory")


@check(
    "fit.memory-fits-devices",
    title="What lies on cards fits into their free memory",
    boundary="host",
    remedy="lower --n-gpu-layers or --ctx-size, keep experts on the host (--n-cpu-moe), or free the card",
)
def memory_fits_devices(fit: FitFacts) -> Verdict | NotApplicable:
    """Ask that the upper end of the estimate is free on the cards; not asked where nothing goes there."""
    if fit.device_low_bytes == 0:
        return NotApplicable("nothing is planned for a card")
    return _lines_up(fit.device_bytes, fit.device_low_bytes, fit.device_free_bytes, "card memory")


@check(
    "fit.engine-agrees",
    title="The installed engine projects the same",
    boundary="binary",
    severity="advisory",
    remedy="trust the engine of the two for this build, and report the difference with the record",
)
def engine_agrees(fit: FitFacts) -> Verdict | NotApplicable:
    """Compare the sum that the engine projects; llama-fit-params speaks for another front end."""
    if isinstance(fit.engine, Unknown) and fit.engine.why == "not_attempted":
        return NotApplicable("the engine was not asked; --ask-engine does")
    answer = fit.engine.need()
    theirs = answer.model_mib + answer.context_mib + answer.compute_mib
    ours = [part for part in fit.parts if part.name != "output"]
    low = sum(part.low_bytes for part in ours) / MIB
    high = sum(part.high_bytes for part in ours) / MIB
    gap = max(0.0, theirs - high, low - theirs)
    why = ""
    if (answer.front_end == "server") != (fit.front_end == "server"):
        other = "llama-fit-params" if answer.front_end == "fit-params" else fit.front_end
        why = f"; {other} reserves results for a whole batch, the server one row for each slot"
    return Verdict(
        holds=gap <= max(ROUNDING_MIB, AGREEMENT * theirs),
        summary=f"worked out {high:,.0f} MiB, the engine projects {theirs:,.0f} MiB{why}",
        expected=f"{theirs:,.0f} MiB",
        observed=f"{high:,.0f} MiB",
    )
