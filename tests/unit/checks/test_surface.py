"""Endpoints, wrong requests and open doors are judged by what each is documented to do."""

from __future__ import annotations

import msgspec
import pytest

from llamaops.checks.registry import NotApplicable, Verdict
from llamaops.checks.surface import (
    enabled_endpoints_answer,
    endpoints_work_or_say_why,
    errors_follow_the_contract,
    exposed_with_care,
    listens_where_asked,
    no_doors_for_others,
    pages_are_kept_out,
)
from llamaops.errors import NotKnownError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.sockets import ListeningSocket, OwnerFacts
from llamaops.probes.endpoint import EndpointState
from llamaops.probes.surface import ErrorRow, Exposure, Meaning, SurfaceFacts, SurfaceRow
from llamaops.schema.fact import Known, Source, not_attempted

SOURCE = Source(kind="http", name="made for a test")
HERE = AskedFacts(host="127.0.0.1", metrics=True)
BEYOND = AskedFacts(host="0.0.0.0")


def row(request: str, meaning: Meaning) -> SurfaceRow:
    return SurfaceRow(request=request, meaning=meaning, status=200, detail="what it said", evidence=("ev-1",))


def error(holds: bool | None) -> ErrorRow:
    return ErrorRow(name="a wrong body", holds=holds, status=200, detail="HTTP 200", expected="HTTP 400")


def exposure(
    tools: EndpointState = "switched_off", *, props_change: bool = False, other_sites: bool = True
) -> Exposure:
    return Exposure(
        tools=tools, proxy="absent", props_change=props_change, other_sites=other_sites, slots_open=True,
        props_open=True,
    )  # fmt: skip


def facts(*rows: SurfaceRow, errors: tuple[ErrorRow, ...] = (), seen: Exposure | None = None) -> SurfaceFacts:
    return SurfaceFacts(
        rows=Known(value=rows, source=SOURCE),
        errors=Known(value=errors, source=SOURCE),
        exposure=not_attempted("x") if seen is None else Known(value=seen, source=SOURCE),
    )


def holds(found: Verdict | NotApplicable) -> bool:
    assert isinstance(found, Verdict)
    return found.holds


def test_refusals_and_absence_are_no_faults() -> None:
    rows = [row("a", "works"), row("b", "refuses_as_documented"), row("c", "absent"), row("d", "needs_key")]
    found = endpoints_work_or_say_why(facts(*rows))
    assert found.holds
    assert "1 works, 1 refuses as documented, 1 absent, 1 needs key" in found.summary


def test_a_broken_endpoint_is_named_and_silence_is_unknown() -> None:
    found = endpoints_work_or_say_why(facts(row("a", "works"), row("GET /b", "broken")))
    assert not found.holds
    assert "GET /b" in found.summary
    with pytest.raises(NotKnownError, match="GET /b"):
        endpoints_work_or_say_why(facts(row("a", "works"), row("GET /b", "no_answer")))


def test_what_was_switched_on_has_to_be_on() -> None:
    assert holds(enabled_endpoints_answer(facts(row("GET /metrics", "works")), HERE))
    off = facts(row("GET /metrics", "refuses_as_documented"))
    assert not holds(enabled_endpoints_answer(off, HERE))
    assert isinstance(enabled_endpoints_answer(off, BEYOND), NotApplicable)


def test_wrong_requests_have_documented_answers() -> None:
    assert errors_follow_the_contract(facts(errors=(error(holds=True),))).holds
    found = errors_follow_the_contract(facts(errors=(error(holds=True), error(holds=False))))
    assert not found.holds
    assert "expected HTTP 400" in found.summary
    with pytest.raises(NotKnownError):
        errors_follow_the_contract(facts(errors=(error(holds=None),)))


def test_doors_that_let_others_do_more_are_named() -> None:
    assert no_doors_for_others(facts(seen=exposure()), HERE).holds
    found = no_doors_for_others(facts(seen=exposure("works", props_change=True)), BEYOND)
    assert not found.holds
    assert "beyond this machine without a key" in found.summary
    assert "POST /props" in found.summary


def test_a_server_for_others_needs_care() -> None:
    assert isinstance(exposed_with_care(facts(seen=exposure()), HERE), NotApplicable)
    found = exposed_with_care(facts(seen=exposure()), BEYOND)
    assert not holds(found)
    assert isinstance(found, Verdict)
    assert "no key is used" in found.summary
    assert "CORS" in found.summary


def owner(*listeners: ListeningSocket, open_children: tuple[str, ...] = ()) -> OwnerFacts:
    return OwnerFacts(
        host="127.0.0.1", port=8080, addresses=Known(value=("127.0.0.1",), source=SOURCE),
        pids=Known(value=(7,), source=SOURCE), programs=Known(value=("llama-server",), source=SOURCE),
        listeners=Known(value=listeners, source=SOURCE),
        open_children=Known(value=open_children, source=SOURCE),
    )  # fmt: skip


def socket(address: str = "127.0.0.1", port: int = 8080, *, of_child: bool = False) -> ListeningSocket:
    return ListeningSocket(address=address, port=port, pid=8 if of_child else 7, of_child=of_child)


def test_a_server_that_already_ran_listens_where_asked() -> None:
    here = AskedFacts(via="attached", host="127.0.0.1")
    good = listens_where_asked(owner(socket(), socket(port=40000, of_child=True)), here)
    assert good.holds
    assert "llama-server (pid 7)" in good.summary
    wide = listens_where_asked(owner(socket("0.0.0.0")), here)
    assert not wide.holds
    assert "other machines reach it on 0.0.0.0:8080, and no key is used" in wide.summary
    assert (
        "and a key is used"
        in listens_where_asked(
            owner(socket("::")), AskedFacts(via="attached", host="127.0.0.1", api_key=True)
        ).summary
    )
    assert not listens_where_asked(owner(socket(), socket(port=9999)), here).holds
    assert not listens_where_asked(owner(socket(), open_children=("127.0.0.1:40000",)), here).holds
    away = not_attempted("another machine")
    with pytest.raises(NotKnownError):
        listens_where_asked(
            OwnerFacts(
                host="a", port=1, addresses=away, pids=away, programs=away, listeners=away, open_children=away
            ),
            here,
        )


def test_pages_of_other_sites_are_kept_out_by_cors_or_by_a_key() -> None:
    here = AskedFacts(via="attached", host="127.0.0.1")
    assert not holds(pages_are_kept_out(facts(seen=exposure()), here))
    assert holds(pages_are_kept_out(facts(seen=exposure(other_sites=False)), here))
    with_key = AskedFacts(via="attached", host="127.0.0.1", api_key=True)
    assert holds(pages_are_kept_out(facts(seen=exposure()), with_key))
    for other in (AskedFacts(via="attached", host="10.0.0.1"), AskedFacts(host="127.0.0.1")):
        assert isinstance(pages_are_kept_out(facts(seen=exposure()), other), NotApplicable)
    with pytest.raises(NotKnownError):
        pages_are_kept_out(facts(), here)


def test_what_a_server_beyond_this_machine_lets_anybody_do_is_told() -> None:
    seen = msgspec.structs.replace(exposure(other_sites=False), slot_files="refuses", loads_models=True)
    found = exposed_with_care(facts(seen=seen), BEYOND)
    assert isinstance(found, Verdict)
    assert "files of slots" in found.summary
    assert "load and unload models" in found.summary
    off = msgspec.structs.replace(seen, slot_files="switched_off", loads_models=False)
    closed = exposed_with_care(facts(seen=off), BEYOND)
    assert isinstance(closed, Verdict)
    assert "files of slots" not in closed.summary
