"""A server that sleeps (--sleep-idle-seconds): what leaves it asleep, and does a request wake it in time?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from llamaops.probes.chat import OTHER_PROMPT, PATH, parse_chat, request_body
from llamaops.probes.endpoint import QUICK, EndpointAnswer, ask, parsed
from llamaops.probes.health import probe_health
from llamaops.probes.metrics import probe_metrics
from llamaops.probes.models import probe_models
from llamaops.probes.props import probe_props
from llamaops.probes.registry import probe
from llamaops.probes.usable_text import TextProblem
from llamaops.schema.bounds import KIB, MIB, Bounds
from llamaops.schema.fact import Known
from llamaops.schema.shape import Shape
from llamaops.system.http import HttpClient

LONGEST_IDLE_S = 30
"""A server that is told to sleep later than this is not waited for."""
MARGIN_S = 8.0
"""How much longer than told a server may take to fall asleep: it looks once a second, and cleans up."""
LOOK_EVERY_S = 0.5
WAKE_S = 120.0
TOKENS = 16


class SleepLook(Shape, frozen=True, kw_only=True):
    """One question to a server that slept, and whether it slept on."""

    answer: EndpointAnswer
    """What it came to."""
    still_asleep: bool | None
    """What /props said afterwards; none where it did not say."""


class SleepFacts(Shape, frozen=True, kw_only=True):
    """A server that puts its model away when nobody asks."""

    idle_s: int | None
    """Seconds after which it was told to sleep (--sleep-idle-seconds); none for a server found asleep."""
    found_asleep: bool
    """Whether it slept when we came."""
    asleep_after_s: float | None = None
    """Seconds after our last request until /props said that it sleeps; none where that was not seen."""
    waited_s: float = 0.0
    """How long was waited for it."""
    log_says_asleep: bool | None = None
    """Whether its log says that it went to sleep; none where the log was not seen."""
    looks: tuple[SleepLook, ...] = ()
    """/health, /v1/models and /props, which must not wake it."""
    scrape: SleepLook | None = None
    """/metrics, which wakes some builds; only where we wait for a second sleep."""
    woken: EndpointAnswer | None = None
    """The chat request that had to wake it."""
    problem: TextProblem | None = None
    """What is wrong with the text; none if usable."""
    asleep_afterwards: bool | None = None
    """What /props said right after the answer."""


class Sleeper(NamedTuple):
    """Where and with what is asked."""

    client: HttpClient
    model: str | None
    wake_s: float = WAKE_S
    log_says: Callable[[], bool] | None = None
    """Whether the log's last word is that it sleeps."""

    def asleep(self) -> bool | None:
        """Return what /props says."""
        props = probe_props(self.client.without_evidence(), bounds=QUICK)[1]
        return props.value.is_sleeping if isinstance(props, Known) else None

    def log_word(self) -> bool | None:
        """Return what the log says; None where it is not seen."""
        return None if self.log_says is None else self.log_says()


@probe(
    "sleep",
    sends=f"only to a server that sleeps: GET /health, /v1/models and /props, and then POST {PATH}",
    proves="looking leaves it asleep, and a request wakes it and is answered within the bound",
    does_not_prove="that there will be memory for waking it at another time",
    tokens=f"at most {TOKENS}",
    seconds="one answer and a load, at most 120; where we started it, also the time until it sleeps, "
    f"if that is at most {LONGEST_IDLE_S}",
    level="standard",
)
def probe_found_asleep(sleeper: Sleeper) -> SleepFacts:
    """Look at a server that sleeps, and wake it."""
    return _looked_at_and_woken(sleeper, SleepFacts(idle_s=None, found_asleep=True))


def probe_falls_asleep(
    sleeper: Sleeper, idle_s: int, *, scrape: bool, margin_s: float = MARGIN_S
) -> SleepFacts:
    """Wait until a server of ours sleeps, look, and wake it; with `scrape` a second time by /metrics.

    Units: seconds.
    """
    waited_s, after_s = _wait_asleep(sleeper, idle_s + margin_s)
    facts = SleepFacts(
        idle_s=idle_s,
        found_asleep=False,
        asleep_after_s=after_s,
        waited_s=waited_s,
        log_says_asleep=sleeper.log_word(),
    )
    if after_s is None:
        return facts
    facts = _looked_at_and_woken(sleeper, facts)
    if not scrape or facts.woken is None or facts.woken.state != "works":
        return facts
    if _wait_asleep(sleeper, idle_s + margin_s)[1] is None:
        return facts
    from msgspec.structs import replace

    return replace(facts, scrape=_look(sleeper, probe_metrics(sleeper.client, bounds=QUICK)[0]))


def _wait_asleep(sleeper: Sleeper, bound_s: float) -> tuple[float, float | None]:
    """Ask /props until it says asleep; return how long was waited, and when it said so."""
    began = sleeper.client.now()
    while (passed := sleeper.client.now() - began) < bound_s:
        if sleeper.asleep():
            return round(passed, 3), round(passed, 3)
        time.sleep(LOOK_EVERY_S)
    return round(passed, 3), None


def _look(sleeper: Sleeper, answer: EndpointAnswer) -> SleepLook:
    return SleepLook(answer=answer, still_asleep=sleeper.asleep())


def _looked_at_and_woken(sleeper: Sleeper, facts: SleepFacts) -> SleepFacts:
    from msgspec.structs import replace

    client = sleeper.client
    looks = (
        _look(sleeper, probe_health(client, bounds=QUICK)[0]),
        _look(sleeper, probe_models(client, bounds=QUICK)[0]),
        _look(sleeper, probe_props(client, bounds=QUICK)[0]),
    )
    bounds = Bounds(wall_s=sleeper.wake_s, keep_bytes=64 * KIB, total_bytes=2 * MIB)
    body = request_body(OTHER_PROMPT, max_tokens=TOKENS, model=sleeper.model)
    asked = ask(client, "sleep", "POST", PATH, bounds=bounds, body=body)
    woken, chat = parsed(asked, lambda data: parse_chat(data, prompt=OTHER_PROMPT, max_tokens=TOKENS))
    return replace(
        facts,
        looks=looks,
        woken=woken,
        problem=chat.value.problem if isinstance(chat, Known) else None,
        asleep_afterwards=sleeper.asleep(),
    )
