"""Does every endpoint work or say why not, are wrong requests refused, and what is open to others?"""

from __future__ import annotations

from collections.abc import Iterable

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.sockets import ListeningSocket, OwnerFacts
from llamaops.probes.endpoint import EndpointState
from llamaops.probes.surface import SurfaceFacts, SurfaceRow
from llamaops.schema.fact import Known

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def _evidence(rows: list[SurfaceRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for row in rows for item in row.evidence))


@check(
    "surface.endpoints-work-or-say-why",
    title="Each endpoint works, refuses as documented, or is absent in this build",
    boundary="api_response",
    remedy="see the endpoint's own answer in the evidence and the end of the server's log",
)
def endpoints_work_or_say_why(surface: SurfaceFacts) -> Verdict:
    """Look for an endpoint whose answer contradicts what it promises."""
    rows = list(surface.rows.need())
    broken = [row for row in rows if row.meaning == "broken"]
    silent = [row for row in rows if row.meaning == "no_answer"]
    if silent and not broken:
        raise NotKnownError("timed_out", f"{silent[0].request}: {silent[0].detail}")
    said = "; ".join(f"{row.request}: {row.detail}" for row in broken[:4])
    counts = {kind: sum(1 for row in rows if row.meaning == kind) for kind in ("works", *_OTHERS)}
    good = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items() if count)
    return Verdict(
        holds=not broken,
        summary=f"{len(broken)} of {len(rows)} endpoints are broken: {said}"
        if broken
        else f"of {len(rows)}: {good}",
        expected="works, refuses as documented, needs the key, or absent in this build",
        observed=said or good,
        evidence=_evidence(broken or rows),
    )


_OTHERS = ("refuses_as_documented", "absent", "needs_key")


@check(
    "surface.enabled-endpoints-answer",
    title="Endpoints that were switched on are on",
    boundary="api_response",
    remedy="a configuration file or a wrapper drops flags: compare the command line with the process list",
)
def enabled_endpoints_answer(surface: SurfaceFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Compare /metrics, /slots and embeddings with what the server was started with."""
    wanted = {
        "GET /metrics": asked.metrics is True,
        "GET /slots": asked.slots is True,
        "POST /v1/embeddings": asked.embeddings,
        "POST /v1/rerank": asked.reranking,
    }
    rows = [row for row in surface.rows.need() if wanted.get(row.request)]
    if not rows:
        return NotApplicable("nothing was switched on")
    off = [row for row in rows if row.meaning not in {"works", "no_answer"}]
    observed = ", ".join(f"{row.request}: {row.detail}" for row in off) or "all of them answer"
    return Verdict(
        holds=not off,
        summary=observed,
        expected=", ".join(row.request for row in rows),
        observed=observed,
        evidence=_evidence(off or rows),
    )


@check(
    "surface.errors-follow-the-contract",
    title="Wrong requests are refused as documented, and unusual ones do no harm",
    boundary="api_response",
    remedy="see the answers in the evidence; clients that trust status codes will be misled",
)
def errors_follow_the_contract(surface: SurfaceFacts) -> Verdict:
    """Compare the answer to each wrong request with the documented ones."""
    rows = surface.errors.need()
    wrong = [row for row in rows if row.holds is False]
    silent = [row for row in rows if row.holds is None]
    if silent and not wrong:
        raise NotKnownError("timed_out", f"{silent[0].name}: {silent[0].detail}")
    said = "; ".join(f"{row.name}: {row.detail}, expected {row.expected}" for row in wrong)
    good = f"{len(rows)} wrong or unusual requests, each answered as documented"
    return Verdict(
        holds=not wrong,
        summary=said or good,
        expected="; ".join(f"{row.name}: {row.expected}" for row in rows),
        observed="; ".join(f"{row.name}: {row.status}" for row in rows),
        evidence=tuple(dict.fromkeys(item for row in wrong or rows for item in row.evidence)),
    )


def _beyond(asked: AskedFacts) -> bool:
    host = asked.host or ""
    return not (host in LOOPBACK or host.startswith("127."))


@check(
    "surface.no-doors-for-others",
    title="No built-in tools, proxy or changes of settings are open to others",
    boundary="api_response",
    remedy="start the server without --tools, --cors-proxy and --props, or keep it from everybody who should "
    "not run commands on this machine; a key does not replace TLS or a firewall",
)
def no_doors_for_others(surface: SurfaceFacts, asked: AskedFacts) -> Verdict:
    """Look for what lets a client do more than ask a model."""
    seen = surface.exposure.need()
    is_open: list[str] = []
    if _on(seen.tools):
        is_open.append("built-in tools (/tools)")
    if _on(seen.proxy):
        is_open.append("a proxy to other addresses (/cors-proxy)")
    if seen.props_change:
        is_open.append("POST /props, which changes the server")
    where = "beyond this machine" if _beyond(asked) else "on this machine"
    key = "with a key" if asked.api_key else "without a key"
    return Verdict(
        holds=not is_open,
        summary=f"open {where} {key}: {', '.join(is_open)}"
        if is_open
        else "tools, proxy and POST /props are off",
        expected="off",
        observed=", ".join(is_open) or "off",
    )


def _on(state: EndpointState) -> bool:
    return state == "works"


@check(
    "surface.exposed-with-care",
    title="A server beyond this machine asks for a key and keeps pages of other sites out",
    boundary="api_response",
    severity="advisory",
    remedy="require a key, put a proxy with TLS in front, and let only your own web origins in; /slots shows "
    "what others ask (--no-slots)",
)
def exposed_with_care(surface: SurfaceFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look at key, CORS, /slots and /props of a server that others can reach."""
    if not _beyond(asked):
        return NotApplicable("it listens on this machine only")
    seen = surface.exposure.need()
    faults = [] if asked.api_key else ["no key is used"]
    if seen.other_sites:
        faults.append("pages of any web site may read its answers (CORS)")
    if seen.slots_open:
        faults.append("/slots is open")
    if seen.props_open:
        faults.append("/props is open")
    if seen.slot_files in {"works", "refuses"} and not asked.api_key:
        faults.append("whoever asks may write and read files of slots (--slot-save-path)")
    if seen.loads_models and not asked.api_key:
        faults.append("whoever asks may load and unload models")
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or "a key is required, and other sites are kept out",
        expected="a key, and no other web sites",
        observed="; ".join(faults) or "as expected",
    )


@check(
    "surface.listens-where-asked",
    title="A server that already ran is reached at the address asked for, and at no other",
    boundary="api_response",
    severity="advisory",
    remedy="start it with --host 127.0.0.1 and put a proxy with TLS in front for other machines, or decide "
    "what is open: docs/exposure.md; with a router and a key, let no other user onto this machine",
)
def listens_where_asked(owner: OwnerFacts, asked: AskedFacts) -> Verdict:
    """Look for other addresses of the process that answers, and for its children that need no key."""
    listeners, addresses = owner.listeners.need(), owner.addresses.need()
    here = [item for item in listeners if item.port == owner.port and item.address in addresses]
    children = [item for item in listeners if item.of_child and _is_loopback(item.address)]
    wide = [item for item in listeners if not _is_loopback(item.address) and not _beyond(asked)]
    other = [item for item in listeners if item not in (*here, *children, *wide)]
    key = "a key is used" if asked.api_key else "no key is used"
    faults = [f"other machines reach it on {_places(wide)}, and {key}"] if wide else []
    faults += [f"it also listens on {_places(other)}"] if other else []
    if isinstance(owner.open_children, Known) and owner.open_children.value:
        faults.append(f"its children answer without the key on {', '.join(owner.open_children.value)}")
    programs = ", ".join(owner.programs.value) if isinstance(owner.programs, Known) else "a process"
    good = f"{programs} (pid {', '.join(map(str, owner.pids.need()))}) listens on {_places(listeners)}"
    return Verdict(
        holds=not faults,
        summary="; ".join(faults) or good,
        expected=f"{owner.host}:{owner.port} only",
        observed=_places(listeners),
    )


def _is_loopback(address: str) -> bool:
    return address in LOOPBACK or address.startswith("127.")


def _places(listeners: Iterable[ListeningSocket]) -> str:
    return ", ".join(dict.fromkeys(f"{item.address}:{item.port}" for item in listeners)) or "nothing"


@check(
    "surface.pages-are-kept-out",
    title="Web pages in a browser on this machine cannot ask a server that already ran",
    boundary="api_response",
    severity="advisory",
    remedy="start it with --cors-origins localhost, or with a key: llama-server lets any page ask by "
    "default; where no browser runs on this machine, --accept surface.pages-are-kept-out=REASON records that",
)
def pages_are_kept_out(surface: SurfaceFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look whether a page of any other site may read answers, where no key keeps it out."""
    if asked.via != "attached" or _beyond(asked):
        return NotApplicable("judged with what other machines reach")
    seen = surface.exposure.need()
    if seen.other_sites is None:
        raise NotKnownError("failed", "the answer to a page of another site did not come")
    is_open = seen.other_sites and not asked.api_key
    observed = "any page may ask and read the answers (CORS), and no key is used" if is_open else "kept out"
    return Verdict(
        holds=not is_open, summary=observed, expected="no page of another site, or a key", observed=observed
    )
