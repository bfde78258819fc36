"""Wait for a server that somebody else started, for a bounded time, before it is asked anything."""

from __future__ import annotations

from llamaops.operations.session import Session
from llamaops.system.clock import Clock
from llamaops.system.http import HttpClient, HttpFailure

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


def await_ready(session: Session, client: HttpClient, clock: Clock, within_s: float) -> None:
    """Ask /health, without the key, until it answers 200 or the time is over; say in a step which it was.

    Nothing follows from it: the probes ask /health again, and judge.

    Args:
        session: The run.
        client: The client of that server.
        clock: Time.
        within_s: Seconds; 0 does not wait.
    """
    if within_s <= 0:
        return
    with session.step("wait", f"wait until the server is ready, at most {within_s:g} s") as step:
        began, pause = clock.monotonic(), FIRST_PAUSE_S
        while (answer := _answer(client)) != "200" and clock.monotonic() - began + pause <= within_s:
            clock.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        waited = clock.monotonic() - began
        ready = "ready" if answer == "200" else f"not ready, /health was last {answer}"
        step.detail = f"{ready}, after {waited:.1f} of at most {within_s:g} s"


def _answer(client: HttpClient) -> str:
    """Return the status of /health, or how asking it failed."""
    answer = client.fast_get("/health")
    return answer.kind if isinstance(answer, HttpFailure) else str(answer.status)
