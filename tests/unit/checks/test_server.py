"""Is the server that answers ours, and is it what was asked for? Each check: holds, does not, not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from llamaops.checks.registry import all_checks, run_check
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.sockets import ListeningSocket, SocketFacts
from llamaops.probes.models import ModelsAnswer
from llamaops.probes.server import ServerFacts
from llamaops.schema.finding import Finding
from tests.fakes.fact_groups import binary_facts, gguf_facts
from tests.fakes.server_facts import MODEL, PROPS, answer, changed, known, server, unknown

ASKED = AskedFacts(
    alias="ours", model_path="/models/tiny.gguf", host="127.0.0.1", port=8080, ctx_size=1024, parallel=2,
    kv_unified=False,
)  # fmt: skip
CHECKS = {check.id: check for check in all_checks(("server",))}


def run(
    name: str, facts: ServerFacts, asked: AskedFacts = ASKED, more: Mapping[type, Any] | None = None
) -> Finding | None:
    groups: dict[type, object] = {ServerFacts: facts, AskedFacts: asked, **(more or {})}
    return run_check(CHECKS[f"server.{name}"], groups)


def status(
    name: str, facts: ServerFacts, asked: AskedFacts = ASKED, more: Mapping[type, Any] | None = None
) -> str:
    finding = run(name, facts, asked, more)
    assert finding is not None
    assert finding.summary
    if finding.status == "failed":
        assert finding.remedy
        assert finding.expected
        assert finding.observed
    return finding.status


OURS = ListeningSocket(address="127.0.0.1", port=8080, pid=7, of_child=False)


def sockets(
    *listeners: ListeningSocket, holder: Any = None, addresses: Any = None, found: Any = None
) -> dict[type, Any]:
    return {
        SocketFacts: SocketFacts(
            host="127.0.0.1",
            port=8080,
            pid=7,
            addresses=addresses or known(("127.0.0.1",)),
            listeners=found or known(tuple(listeners)),
            holders=holder or known((7,)),
        )
    }


def one(address: str, port: int = 8080, pid: int = 7, *, child: bool = False) -> ListeningSocket:
    return ListeningSocket(address=address, port=port, pid=pid, of_child=child)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (sockets(OURS), "passed"),
        (sockets(one("127.0.0.1", pid=8, child=True), holder=known((8,))), "passed"),
        (sockets(OURS, one("127.0.0.1", 40000, 9, child=True)), "passed"),  # a router's child
        (sockets(OURS, holder=unknown("refused")), "passed"),
        (sockets(), "failed"),
        (sockets(holder=known((99,))), "failed"),
        (sockets(OURS, holder=known((99,))), "failed"),
        (sockets(OURS, holder=known((7, 99))), "failed"),  # two processes share the port
        (sockets(one("0.0.0.0")), "failed"),
        (sockets(one("127.0.0.2")), "failed"),
        (sockets(one("127.0.0.1", 8081)), "failed"),
        (sockets(OURS, one("0.0.0.0", 9999)), "failed"),
        (sockets(OURS, one("127.0.0.1", 9999)), "failed"),
        (sockets(OURS, one("0.0.0.0", 40000, 9, child=True)), "failed"),
        (sockets(found=unknown("refused")), "unknown"),
        (sockets(OURS, addresses=unknown("failed")), "unknown"),
    ],
)
def test_socket_is_ours(more: dict[type, Any], expected: str) -> None:
    assert status("socket-is-ours", server(), more=more) == expected


def test_answer_is_ours() -> None:
    assert status("answer-is-ours", server()) == "passed"
    assert status("answer-is-ours", server(props=changed(PROPS, model_alias="another"))) == "failed"
    assert status("answer-is-ours", server(props=changed(PROPS, model_path="/models/other.gguf"))) == "failed"
    assert status("answer-is-ours", server(models=known(ModelsAnswer(models=())))) == "failed"
    assert status("answer-is-ours", server(props=unknown(), models=unknown())) == "unknown"
    bare = changed(PROPS, model_alias=None, model_path=None)
    assert status("answer-is-ours", server(props=bare)) == "passed"  # the list has the alias
    assert status("answer-is-ours", server(props=bare, models=unknown("refused"))) == "unknown"
    assert run("answer-is-ours", server(), AskedFacts(via="attached")) is None


def test_is_healthy() -> None:
    assert status("is-healthy", server()) == "passed"
    for state in ("broken", "refuses", "unreachable"):
        assert status("is-healthy", server(answers=(answer("health", state),))) == "failed"
    loading = server(answers=(answer("health", "loading", 503),), health=unknown("failed", "still loading"))
    assert status("is-healthy", loading) == "unknown"
    assert status("is-healthy", server(without=("health",))) == "unknown"


def test_lists_the_model() -> None:
    assert status("lists-the-model", server()) == "passed"
    assert status("lists-the-model", server(), AskedFacts()) == "passed"
    assert status("lists-the-model", server(models=known(ModelsAnswer(models=()))), AskedFacts()) == "failed"
    assert status("lists-the-model", server(), AskedFacts(alias="other")) == "failed"
    assert status("lists-the-model", server(answers=(answer("models", "broken"),))) == "failed"
    needs_key = server(answers=(answer("models", "needs_key", 401),), models=unknown("refused"))
    assert status("lists-the-model", needs_key) == "unknown"


FILE = {
    "vocabulary_size": 49152, "embedding_length": 576, "context_length_tokens": 8192,
    "parameter_count": 134515008, "tensor_bytes": 96576768,
}  # fmt: skip


def test_model_agrees_with_header() -> None:
    assert status("model-agrees-with-header", server(), more=gguf_facts(**FILE)) == "passed"
    for name, value in FILE.items():
        wrong = gguf_facts(**{**FILE, name: value + 1})
        assert status("model-agrees-with-header", server(), more=wrong) == "failed", name
    assert status("model-agrees-with-header", server(), more=gguf_facts()) == "unknown"
    bare = server(models=known(ModelsAnswer(models=(msgspec.structs.replace(
        MODEL, vocabulary_size=None, trained_context_tokens=None, embedding_length=None, parameter_count=None,
        tensor_bytes=None),))))  # fmt: skip
    assert status("model-agrees-with-header", bare, more=gguf_facts(**FILE)) == "unknown"
    assert status("model-agrees-with-header", server(models=unknown()), more=gguf_facts(**FILE)) == "unknown"


@pytest.mark.parametrize(
    ("info", "build", "commit", "expected"),
    [
        ("b10434-7e4c0a9", 10434, "7e4c0a9", "passed"),
        ("b11669-Debian", 11669, "Debian", "passed"),
        ("b1-7e4c0a9f00", 1, "7e4c0a9", "passed"),
        ("b0-unknown", 0, "unknown", "passed"),
        ("b10434-7e4c0a9", 10435, "7e4c0a9", "failed"),
        ("b10434-7e4c0a9", 10434, "deadbee", "failed"),
        ("b1-7e4", 1, "7e4c0a9", "failed"),
        (None, 1, "7e4c0a9", "unknown"),
    ],
)
def test_build_agrees_with_binary(info: str | None, build: int, commit: str, expected: str) -> None:
    facts = server(props=changed(PROPS, build_info=info))
    assert (
        status("build-agrees-with-binary", facts, more=binary_facts(build=build, commit=commit)) == expected
    )


def test_build_is_not_known_without_either_side() -> None:
    binary = binary_facts(build=1, commit="x")
    assert status("build-agrees-with-binary", server(props=unknown()), more=binary) == "unknown"
    (facts,) = binary.values()
    assert isinstance(facts, BinaryFacts)
    bare = msgspec.structs.replace(facts.version, build=unknown(), commit=unknown())
    silent: dict[type, Any] = {BinaryFacts: msgspec.structs.replace(facts, version=bare)}
    assert status("build-agrees-with-binary", server(), more=silent) == "unknown"


def test_slots_as_asked() -> None:
    assert status("slots-as-asked", server()) == "passed"
    assert status("slots-as-asked", server(slots=unknown("unsupported"))) == "passed"
    assert status("slots-as-asked", server(props=changed(PROPS, total_slots=1))) == "failed"
    assert status("slots-as-asked", server(), AskedFacts(parallel=4)) == "failed"
    assert status("slots-as-asked", server(props=unknown(), slots=unknown())) == "unknown"
    assert run("slots-as-asked", server(), AskedFacts()) is None


@pytest.mark.parametrize(
    ("size", "slots", "unified", "seen", "expected"),
    [
        (1024, 2, False, 512, "passed"),
        (1024, 2, True, 1024, "passed"),
        (1000, 1, None, 1024, "passed"),
        (1000, 2, False, 512, "passed"),
        (1024, 2, None, 512, "passed"),
        (1024, 2, None, 1024, "passed"),
        (65536, 1, None, 8192, "passed"),
        (1024, 2, False, 1024, "failed"),
        (1024, 2, True, 512, "failed"),
        (4096, 1, None, 8, "failed"),
    ],
)
def test_context_as_asked(size: int, slots: int, unified: bool | None, seen: int, expected: str) -> None:
    asked = AskedFacts(ctx_size=size, parallel=slots, kv_unified=unified)
    facts = server(props=changed(PROPS, slot_context_tokens=seen, total_slots=slots), slots=unknown())
    assert status("context-as-asked", facts, asked) == expected
    other = server(props=changed(PROPS, slot_context_tokens=seen + 1))
    assert status("context-as-asked", other, AskedFacts()) == "failed"


def test_context_is_not_known_without_an_answer() -> None:
    assert status("context-as-asked", server(props=unknown())) == "unknown"
    assert run("context-as-asked", server(), AskedFacts()) is None


def guarded(**states: Any) -> Any:
    answers = {
        "chat none": answer(
            "auth", states.get("chat_none", "needs_key"), 401, request="POST /v1/chat/completions"
        ),
        "chat wrong": answer(
            "auth",
            states.get("chat_wrong", "needs_key"),
            401,
            request="POST /v1/chat/completions",
            key="wrong",
        ),
        "props": answer("auth", states.get("props", "needs_key"), 401, request="GET /props"),
        "slots": answer("auth", states.get("slots", "needs_key"), 401, request="GET /slots"),
        "health": answer("auth", "works", 200, request="GET /health"),
        "models": answer("auth", states.get("models", "works"), 200, request="GET /v1/models"),
    }
    return known(tuple(answers.values()))


WITH_KEY = AskedFacts(api_key=True)


def test_key_is_required() -> None:
    assert status("key-is-required", server(without_key=guarded()), WITH_KEY) == "passed"
    assert status("key-is-required", server(without_key=guarded(models="needs_key")), WITH_KEY) == "passed"
    assert status("key-is-required", server(without_key=guarded(slots="absent")), WITH_KEY) == "passed"
    for place in ("chat_none", "chat_wrong", "props", "slots"):
        for state in ("works", "refuses", "broken"):
            opened = server(without_key=guarded(**{place: state}))
            assert status("key-is-required", opened, WITH_KEY) == "failed", (place, state)
    assert status("key-is-required", server(without_key=guarded(props="no_answer")), WITH_KEY) == "unknown"
    assert status("key-is-required", server(), WITH_KEY) == "unknown"
    assert run("key-is-required", server(), AskedFacts()) is None


def test_still_alive_after_requests() -> None:
    assert status("still-alive-after-requests", server()) == "passed"
    for state in ("unreachable", "broken", "loading"):
        gone = server(answers=(answer("health-after", state, None),))
        assert status("still-alive-after-requests", gone) == "failed", state
    hangs = server(answers=(answer("health-after", "no_answer", None),), health_after=unknown())
    assert status("still-alive-after-requests", hangs) == "unknown"
    assert run("still-alive-after-requests", server(answers=(answer("health", "unreachable"),))) is None


def test_every_check_of_the_area_is_found_and_none_breaks_on_nothing_known() -> None:
    assert len(CHECKS) == 25
    names = [field.name for field in msgspec.structs.fields(ServerFacts)]
    gaps: Any = {name: unknown() for name in names if name not in {"origin", "endpoints", "without_key"}}
    nothing = server(without=tuple(item.probe for item in server().endpoints), **gaps)
    more = {
        **sockets(found=unknown()), **gguf_facts(), **binary_facts(build=1, commit="x"), AskedFacts: ASKED,
        ServerFacts: nothing,
    }  # fmt: skip
    assert GgufFacts in more
    for check in CHECKS.values():
        finding = run_check(check, more)
        assert finding is None or finding.status in {"unknown", "not_run"}, finding
