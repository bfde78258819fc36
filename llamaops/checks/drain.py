"""What became of a request that ran when its server was stopped?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.probes.drain import GRACE_S, DrainFacts

HOW = {
    "done": "it finished",
    "error_event": "it got an error event",
    "closed": "its connection was closed in an orderly way",
    "cut": "its connection was closed",
    "timed_out": "it hung",
}


@check(
    "drain.running-request-ends",
    title="A request that runs when the server is stopped ends in the grace time, and nothing is left",
    boundary="api_response",
    remedy="stop the clients first, then the server; see how it was stopped in the record",
)
def running_request_ends(drain: DrainFacts) -> Verdict | NotApplicable:
    """Ask that it finished or failed, within the bound, and that no process was left."""
    if drain.ended == "not_running":
        return NotApplicable("no request was running when the server was stopped")
    after = drain.ended_s if drain.ended_s is not None else GRACE_S
    left = f", {len(drain.left)} processes were left" if drain.left else ", nothing left"
    observed = f"{HOW[drain.ended]} {after:.2f} s after the stop began, {drain.pieces} pieces in all{left}"
    stop = drain.stop.replace("_", " ")
    return Verdict(
        holds=drain.ended != "timed_out" and after <= GRACE_S and not drain.left,
        summary=f"{observed}; the server was stopped by {stop}",
        expected=f"an end within {GRACE_S:.0f} s, and nothing left",
        observed=observed,
    )
