"""Does the server run what was planned, by its own word, its slots and its log?"""

from __future__ import annotations

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.checks.server import evidence_of
from llamaops.errors import NotKnownError
from llamaops.facts.launch import LaunchFacts, PlannedSlots
from llamaops.facts.load_log import LoadFacts
from llamaops.probes.server import ServerFacts
from llamaops.schema.fact import Fact, Known

Reported = dict[str, dict[str, int | bool]]


def reported(server: ServerFacts, load: LoadFacts) -> Reported:
    """Return slots, context of a slot, sharing and batch sizes by where each was reported."""
    found: Reported = {"slots": {}, "slot context": {}, "shared KV cache": {}, "batch": {}, "micro-batch": {}}
    if isinstance(server.props, Known):
        _put(found, "slots", "/props", server.props.value.total_slots)
        _put(found, "slot context", "/props", server.props.value.slot_context_tokens)
    if isinstance(server.slots, Known):
        slots = server.slots.value.slots
        _put(found, "slots", "/slots", len(slots))
        _put(
            found,
            "slot context",
            "/slots",
            min((s.context_tokens for s in slots if s.context_tokens), default=None),
        )
    logged: tuple[tuple[str, Fact[int] | Fact[bool]], ...] = (
        ("slots", load.n_slots),
        ("slot context", load.n_ctx_slot),
        ("shared KV cache", load.kv_unified),
        ("batch", load.n_batch),
        ("micro-batch", load.n_ubatch),
    )
    for name, fact in logged:
        _put(found, name, "log", fact.value if isinstance(fact, Known) else None)
    return found


def _put(found: Reported, name: str, place: str, value: int | None) -> None:
    if value is not None:
        found[name][place] = value


def reported_text(found: Reported) -> str:
    """Say in one line what runs; a figure on which places differ is shown with each place."""
    return ", ".join(f"{name} {_shown(places)}" for name, places in found.items() if places)


def _shown(places: dict[str, int | bool]) -> str:
    values = set(places.values())
    if len(values) == 1:
        value = values.pop()
        return ("yes" if value else "no") if isinstance(value, bool) else str(value)
    return " but ".join(f"{value} by {place}" for place, value in places.items())


@check(
    "server.plan-is-what-runs",
    title="Slots, context, sharing and batch sizes are the planned ones, wherever they are reported",
    boundary="api_response",
    remedy="compare the plan in the record with what runs: a configuration file, the fit step or a limit of "
    "the model changed it; say the values explicitly",
)
def plan_is_what_runs(launch: LaunchFacts, server: ServerFacts, load: LoadFacts) -> Verdict | NotApplicable:
    """Compare the plan with /props, /slots and the log, and those with each other."""
    plan = launch.planned
    if plan is None:
        return NotApplicable("nothing was planned")
    found = reported(server, load)
    if not any(found.values()):
        server.props.need()
        raise NotKnownError("absent", "nothing reports slots or context")
    wanted = _wanted(plan)
    wrong = [
        f"{name}: planned {_shown({'plan': want})}, {_shown(found[name])} reported"
        for name, want in wanted.items()
        if want is not None and any(not _same(name, want, value) for value in found[name].values())
    ]
    wrong += [f"{name}: {_shown(p)}" for name, p in found.items() if len(set(p.values())) > 1]
    text = reported_text(found)
    return Verdict(
        holds=not wrong,
        summary="; ".join(wrong) or f"runs as planned: {text}",
        expected=launch.plan,
        observed=text,
        evidence=evidence_of(server.props, server.slots),
    )


def _wanted(plan: PlannedSlots) -> dict[str, int | bool | None]:
    return {
        "slots": plan.slots,
        "slot context": plan.slot_context_tokens,
        # A cache of one slot is shared by nobody, whatever it is called.
        "shared KV cache": plan.kv_unified if plan.slots > 1 else None,
    }


def _same(name: str, want: int | bool, value: int | bool) -> bool:
    return bool(want) == bool(value) if name == "shared KV cache" else want == value
