"""Ask a server everything that a selection holds, group by group, and judge it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from llamaops.facts.asked import AskedFacts
from llamaops.operations.session import Session
from llamaops.probes.concurrency import collect_concurrency
from llamaops.probes.health import probe_health
from llamaops.probes.models import ModelsAnswer
from llamaops.probes.more import collect_more
from llamaops.probes.props import PropsAnswer
from llamaops.probes.router import Router, RouterFacts, not_asked, probe_router
from llamaops.probes.selection import Selection
from llamaops.probes.server import Preparation, ServerFacts, collect_server
from llamaops.probes.sleep import LONGEST_IDLE_S, Sleeper, SleepFacts, probe_falls_asleep, probe_found_asleep
from llamaops.probes.surface import collect_surface
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, not_attempted, not_selected
from llamaops.system.http import HttpClient

AREAS = ("server", "concurrency", "surface", "features", "router", "sleep")
"""Areas of checks that judge what is collected here."""
CROWD = frozenset({"concurrency", "late-request"})
SURFACE = frozenset({"surface", "errors", "exposure"})
MORE = frozenset({"disconnect", "reasoning", "structured", "tools", "context", "pool-exhaustion"})
NOT_COVERED = {
    "surface": "chat completions only; other endpoints were not asked",
    "context": "the whole context of a slot, structured output and tools were not tried (--level full)",
    "concurrency": "one request at a time: slots, batching and a shared KV cache under load were not tried",
}


def not_covered(selection: Selection) -> tuple[str, ...]:
    """Return what a verification of this selection does not cover."""
    return tuple(text for probe, text in NOT_COVERED.items() if probe not in selection)


def ask_everything(
    session: Session,
    client: HttpClient,
    asked: AskedFacts,
    selection: Selection,
    *,
    max_tokens: int,
    log_says_asleep: Callable[[], bool] | None = None,
) -> None:
    """Ask single requests, then several at once, and add what they gave to the record.

    Args:
        session: The run.
        client: For the server's origin.
        asked: The run as asked for, with the models that may be loaded.
        selection: The probes to ask.
        max_tokens: Bound on the tokens of each long answer.
        log_says_asleep: Whether the server's log says that it sleeps; none where the log is not seen.
    """
    before = _Before(client, asked, selection)
    preparation = Preparation(next(iter(asked.models), None), before.meet)
    server = collect_server(client, asked, max_tokens=max_tokens, selection=selection, prepare=preparation)
    session.add("server", server)
    if before.router.there:
        session.add("router", _router(before.router, server, selection))
    if selection.ids & CROWD:
        session.add("concurrency", collect_concurrency(client, server, selection, unified=asked.kv_unified))
    if selection.ids & SURFACE:
        session.add("surface", collect_surface(client, server, selection))
    if selection.ids & MORE:
        session.add("more", collect_more(client, server, selection, unified=asked.kv_unified))
    sleep = before.sleep or _sleep(client, asked, server, selection, log_says_asleep)
    if sleep is not None:
        session.add("sleep", sleep)
    if selection.ids & {*CROWD, *SURFACE, *MORE, "sleep"}:
        session.add("server", _still_healthy(client, server))
    _narrow_promise(session, server)


class _Before:
    """What has to be done before the first request that generates: a router's list, a server that sleeps."""

    def __init__(self, client: HttpClient, asked: AskedFacts, selection: Selection) -> None:
        self._client = client
        self._sleep = "sleep" in selection and not _is_waited_for(asked)
        """Whether to look at a server that is found asleep; one that is waited for shows it at the end."""
        self._model = next(iter(asked.models), asked.alias)
        self.router = Router(client, asked.models)
        self.sleep: SleepFacts | None = None

    def meet(self, models: Fact[ModelsAnswer], props: Fact[PropsAnswer]) -> Fact[ModelsAnswer]:
        """Wake what sleeps, load what was named, and return the models anew."""
        if isinstance(props, Known) and props.value.is_sleeping and self._sleep:
            self.sleep = probe_found_asleep(Sleeper(self._client, self._model))
        return self.router.meet(models, props)


def _router(router: Router, server: ServerFacts, selection: Selection) -> RouterFacts:
    """Ask each model of a router, where that was selected and the router still answers."""
    if "router" not in selection:
        return not_asked(router, not_selected(selection.why_not("router")))
    chat = server.outcome("chat")
    if isinstance(chat, Known) and chat.value.state == "unreachable":
        return not_asked(router, not_attempted(f"nobody answers any more: {chat.value.detail}"))
    return probe_router(router)


def _sleep(
    client: HttpClient,
    asked: AskedFacts,
    server: ServerFacts,
    selection: Selection,
    log_says_asleep: Callable[[], bool] | None,
) -> SleepFacts | None:
    """Wait until a server of ours sleeps that was told to, and wake it; none where it was not."""
    idle_s = asked.sleep_idle_s
    if "sleep" not in selection or not _is_waited_for(asked) or not isinstance(server.chat, Known):
        return None
    name = server.request_model
    sleeper = Sleeper(client, name.value if isinstance(name, Known) else None, log_says=log_says_asleep)
    return probe_falls_asleep(
        sleeper, idle_s or 0, scrape=asked.metrics is True and selection.level == "full"
    )


def _is_waited_for(asked: AskedFacts) -> bool:
    """Whether the server was told to sleep soon enough for us to wait for it."""
    return asked.sleep_idle_s is not None and 0 < asked.sleep_idle_s <= LONGEST_IDLE_S


def _still_healthy(client: HttpClient, server: ServerFacts) -> ServerFacts:
    """Ask /health again, now that more requests were made, and put its answer in the place of the last."""
    answer, health = probe_health(client, bounds=Bounds(wall_s=10.0), name="health-after")
    others = tuple(item for item in server.endpoints if item.probe != "health-after")
    return msgspec.structs.replace(server, endpoints=(*others, answer), health_after=health)


def _narrow_promise(session: Session, server: ServerFacts) -> None:
    """Take back what a server without chat cannot show: it is one for embeddings or for ranking."""
    if server.has_no_chat:
        lost = {"generated_output", "concurrency"}
        session.promised = tuple(name for name in session.promised if name not in lost)
        session.not_covered.append("the server has no chat: generated text and slots were not tried")
