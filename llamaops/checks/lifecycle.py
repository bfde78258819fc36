"""Did our server come up on the address asked for, and did it leave nothing behind?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.facts.lifecycle import LifecycleFacts
from llamaops.schema.fact import Known


@check(
    "lifecycle.port-was-free",
    title="Nobody else holds the address asked for",
    boundary="api_response",
    remedy="choose another --port (0 picks a free one), or stop the program that holds it",
)
def port_was_free(lifecycle: LifecycleFacts) -> Verdict:
    """Ask that the port was free before the start: an older server would answer /health happily."""
    holder = lifecycle.port_holder.need()
    return Verdict(
        holds=not holder,
        summary=f"{lifecycle.address} is held by {holder}" if holder else f"{lifecycle.address} was free",
        expected=f"{lifecycle.address} free before the start",
        observed=holder or "free",
    )


@check(
    "lifecycle.becomes-ready",
    title="The server becomes ready within its bound",
    boundary="api_response",
    remedy="read the first error line and the end of the log in this record; raise --ready-timeout only if "
    "the log shows that it was still loading",
)
def becomes_ready(lifecycle: LifecycleFacts) -> Verdict | NotApplicable:
    """Ask for ready: our process alive, and /health with 200 after the load."""
    if isinstance(lifecycle.port_holder, Known) and lifecycle.port_holder.value:
        return NotApplicable("not started: the port was taken")
    last = lifecycle.health[-1].answer if lifecycle.health else "no answer"
    if isinstance(lifecycle.ready_s, Known):
        return Verdict(
            holds=True,
            summary=f"ready after {lifecycle.ready_s.value:.2f} s",
            expected="/health 200 from our own live process",
            observed=f"ready after {lifecycle.ready_s.value:.2f} s",
        )
    if lifecycle.elsewhere:
        places = ", ".join(lifecycle.elsewhere)
        return Verdict(
            holds=False,
            remedy="the program or a wrapper ignores --host or --port: find out which before you expose it",
            summary=f"its log says ready, but it listens on {places} and not on {lifecycle.address}",
            expected=f"listening on {lifecycle.address}",
            observed=f"listening on {places}",
        )
    end = lifecycle.end.value if isinstance(lifecycle.end, Known) else "still running"
    error = lifecycle.first_error.value if isinstance(lifecycle.first_error, Known) else "none in the log"
    return Verdict(
        holds=False,
        remedy=_remedy_of(end),
        summary=f"not ready: process {end}; last health answer: {last}; first error: {error}",
        expected="/health 200 from our own live process",
        observed=f"process {end}; last health answer {last}; first error: {error}",
    )


def _remedy_of(end: str) -> str | None:
    """Return a better remedy than the general one where the end itself tells the cause."""
    if "SIGILL" in end:
        return (
            "this build uses processor instructions that this CPU lacks: take a build for this CPU "
            "(for the embedded engine: llamaops fetch engine)"
        )
    if "SIGKILL" in end:
        return "look for the kernel's out-of-memory killer (dmesg), and lower the memory that is needed"
    return None


@check(
    "lifecycle.stays-alive",
    title="The server stays alive while it is being verified",
    boundary="api_response",
    remedy="read the end of the log in this record: the process died after it had said it was ready",
)
def stays_alive(lifecycle: LifecycleFacts) -> Verdict | NotApplicable:
    """Ask that the process did not end by itself after it was ready."""
    if not isinstance(lifecycle.ready_s, Known):
        return NotApplicable("it never became ready")
    end = lifecycle.end.value if isinstance(lifecycle.end, Known) else "still serving"
    return Verdict(
        holds=not lifecycle.died_while_serving,
        summary=f"ended by itself after it was ready: {end}" if lifecycle.died_while_serving else f"{end}",
        expected="alive until llamaops stops it",
        observed=end,
    )


@check(
    "lifecycle.leaves-nothing-behind",
    title="The server stops when asked and leaves no process behind",
    boundary="api_response",
    severity="advisory",
    remedy="expect the same under a service manager: give it a stop timeout and kill the whole group",
)
def leaves_nothing_behind(lifecycle: LifecycleFacts) -> Verdict | NotApplicable:
    """Tell how stopping went; whatever was left has been killed."""
    if lifecycle.stop in {"still_serving", "not_started"}:
        return NotApplicable("it was not stopped")
    good = {"first_sigterm", "ended_by_itself"} | ({"second_sigterm"} if lifecycle.client_at_stop else set())
    clean = lifecycle.stop in good and not lifecycle.left
    took = f"{lifecycle.stop_s.need():.2f} s"
    observed = f"{lifecycle.stop.replace('_', ' ')} in {took}, {len(lifecycle.left)} descendants left"
    if lifecycle.client_at_stop:
        observed += "; a request ran on purpose"
    return Verdict(
        holds=clean,
        summary=observed,
        expected="gone after the first SIGTERM, no descendant left",
        observed=observed,
    )
