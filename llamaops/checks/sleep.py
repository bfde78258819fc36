"""Does a server that sleeps when nobody asks wake for a request, and not for somebody who only looks?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.probes.sleep import SleepFacts, SleepLook
from llamaops.probes.usable_text import MEANING


@check(
    "sleep.falls-asleep",
    title="A server that is told to sleep when nobody asks does so, and says so",
    boundary="api_response",
    remedy="somebody else asks it, or a monitor wakes it: /slots, /tokenize and on some builds /metrics do",
)
def falls_asleep(sleep: SleepFacts) -> Verdict | NotApplicable:
    """Compare what /props and the log say with the time that was given."""
    if sleep.idle_s is None:
        return NotApplicable("it slept already when we came")
    log = {
        True: "its log says that it sleeps",
        False: "its log does not say so",
        None: "its log was not seen",
    }
    seen = (
        f"/props says that it sleeps {sleep.asleep_after_s:.1f} s after our last request"
        if sleep.asleep_after_s is not None
        else f"/props says for {sleep.waited_s:.1f} s that it is awake"
    )
    # A log without that line may come from a build that words it otherwise: it contradicts only an "awake".
    return Verdict(
        holds=sleep.asleep_after_s is not None,
        summary=f"told to sleep after {sleep.idle_s} s; {seen}; {log[sleep.log_says_asleep]}",
        expected=f"is_sleeping in /props {sleep.idle_s} s after the last request",
        observed=seen,
    )


@check(
    "sleep.wakes-and-answers",
    title="A request wakes a sleeping server and is answered within the bound",
    boundary="api_response",
    remedy="read the end of the server's log: waking loads the model again, which needs the memory again",
)
def wakes_and_answers(sleep: SleepFacts) -> Verdict | NotApplicable:
    """Ask for usable text from the request that found it asleep, and for /props to say awake afterwards."""
    answer = sleep.woken
    if answer is None:
        return NotApplicable("it was not seen to sleep")
    if answer.state in {"no_answer", "loading"}:
        raise NotKnownError("timed_out", f"the request that had to wake it: {answer.detail}")
    faults = [] if answer.state == "works" else [answer.detail]
    if sleep.problem is not None:
        faults.append(f"the answer holds {MEANING[sleep.problem]}")
    if not faults and sleep.asleep_afterwards:
        faults.append("it answered, and /props says right afterwards that it sleeps")
    good = f"answered {answer.elapsed_s:.2f} s after it was asked, loading included"
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or good,
        expected="usable text within 120 s, and is_sleeping false",
        observed="; ".join(faults) or good,
        evidence=answer.evidence,
    )


@check(
    "sleep.looking-does-not-wake",
    title="Asking a sleeping server for /health, /v1/models or /props leaves it asleep",
    boundary="api_response",
    severity="advisory",
    remedy="a monitor that asks what wakes the server keeps it awake: let it ask only what does not",
)
def looking_does_not_wake(sleep: SleepFacts) -> Verdict | NotApplicable:
    """Look at what /props said after each question; what /metrics did is told, and judged by nobody."""
    if not sleep.looks:
        return NotApplicable("it was not seen to sleep")
    if any(look.still_asleep is None for look in sleep.looks):
        raise NotKnownError("absent", "/props does not say whether it sleeps")
    woke = [look.answer.request for look in sleep.looks if look.still_asleep is False]
    silent = [look.answer.request for look in sleep.looks if look.answer.state != "works"]
    faults = [f"{', '.join(woke[:1])} woke it"] if woke else []
    faults += [f"{', '.join(silent)} did not answer"] if silent else []
    good = f"{', '.join(look.answer.request for look in sleep.looks)} left it asleep"
    return Verdict(
        holds=not faults,
        summary=("; ".join(faults) or good) + _scraped(sleep.scrape),
        expected="asleep after each",
        observed="; ".join(faults) or good,
    )


def _scraped(look: SleepLook | None) -> str:
    if look is None or look.answer.state != "works" or look.still_asleep is None:
        return ""
    return f"; GET /metrics {'left it asleep' if look.still_asleep else 'woke it: a scraper keeps it awake'}"
