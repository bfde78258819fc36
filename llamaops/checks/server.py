"""Is the server that answers ours, and is it what was asked for?"""

from __future__ import annotations

from typing import Any

from llamaops.checks.registry import NotApplicable, Verdict, check
from llamaops.errors import NotKnownError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.sockets import ListeningSocket, SocketFacts
from llamaops.probes.age import is_early, is_of_2024
from llamaops.probes.endpoint import EndpointAnswer
from llamaops.probes.models import ListedModel
from llamaops.probes.server import ServerFacts
from llamaops.schema.fact import Fact, Known, Unknown

CONTEXT_STEP = 256
"""Engines round a slot's context up to a multiple of this."""
GUARDS_TEXT_ONLY = (
    "the key of a build of early 2024 guards what generates and nothing else: switch /slots off, which shows "
    "prompts (--slots-endpoint-disable), let nobody else reach the address, or install a newer build"
)
SIZES = ("parameters", "tensor bytes")
"""Figures that count every tensor which was loaded."""


def evidence_of(*facts: Known[Any] | Unknown | EndpointAnswer) -> tuple[str, ...]:
    """Return the ids of the raw output behind facts and answers, each once."""
    found: list[str] = []
    for item in facts:
        if isinstance(item, EndpointAnswer):
            found += item.evidence
        elif item.source.evidence is not None:
            found.append(item.source.evidence)
    return tuple(dict.fromkeys(found))


def fault_of(answer: EndpointAnswer, expected: str) -> Verdict | None:
    """Return the failed verdict of an answer that contradicts its endpoint; None where it does not.

    An answer that did not come in time, or that wants a key, is no evidence either way: the fact says so.
    """
    if answer.state not in {"broken", "unreachable", "refuses"}:
        return None
    said = answer.detail if answer.detail.startswith(answer.request) else f"{answer.request}: {answer.detail}"
    return Verdict(
        holds=False, summary=said, expected=expected, observed=answer.detail, evidence=answer.evidence
    )


@check(
    "server.socket-is-ours",
    title="Our own process listens, on the address asked for and on no other",
    boundary="api_response",
    remedy="stop the program that holds the port, or choose another with --port; give --host explicitly",
)
def socket_is_ours(sockets: SocketFacts) -> Verdict:
    """Compare the kernel's listening sockets of our process and its children with what was asked for."""
    listeners, addresses = sockets.listeners.need(), sockets.addresses.need()
    right = [item for item in listeners if item.port == sockets.port and item.address in addresses]
    # A router's children listen on loopback, on ports of their own.
    other = [
        item
        for item in listeners
        if item not in right and not (item.of_child and item.address in {"127.0.0.1", "::1"})
    ]
    foreign = _foreign(sockets, listeners)
    seen = ", ".join(f"{item.address}:{item.port} (pid {item.pid})" for item in listeners) or "nothing"
    wanted = f"process {sockets.pid} or its children on {sockets.host}:{sockets.port} only"
    held = f"; the port is held by {', '.join(f'pid {pid}' for pid in foreign)}" if foreign else ""
    return Verdict(
        holds=bool(right) and not other and not foreign,
        summary=f"listening: {seen}{held}; asked for: {sockets.host}:{sockets.port}",
        expected=wanted,
        observed=f"{seen}{held}",
    )


def _foreign(sockets: SocketFacts, listeners: tuple[ListeningSocket, ...]) -> list[int]:
    """Return other processes that answer on our address, where they can be seen."""
    if not isinstance(sockets.holders, Known):
        return []
    return [pid for pid in sockets.holders.value if pid not in {item.pid for item in listeners}]


@check(
    "server.answer-is-ours",
    title="The server that answers is the one that we started",
    boundary="api_response",
    remedy="another server answers on this address: stop it, or choose another --port",
)
def answer_is_ours(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Look for the one-time alias in /props and /v1/models, and for our model's file name in /props."""
    if asked.alias is None or asked.via == "attached":
        return NotApplicable("the server was not started by llamaops")
    seen: dict[str, bool] = {}
    if isinstance(server.models, Known):
        seen["/v1/models"] = server.models.value.named(asked.alias) is not None
    if isinstance(server.props, Known) and server.props.value.model_alias is not None:
        seen["/props"] = server.props.value.model_alias == asked.alias
    if isinstance(server.props, Known) and server.props.value.model_path and asked.model_path:
        path = server.props.value.model_path
        seen["/props model_path"] = _file_name(path) == _file_name(asked.model_path)
    if not seen:
        server.models.need()
        server.props.need()
        raise NotKnownError("absent", "neither /props nor /v1/models names a model")
    strange = [place for place, ours in seen.items() if not ours]
    observed = f"not ours in {', '.join(strange)}" if strange else f"ours in {', '.join(seen)}"
    return Verdict(
        holds=not strange,
        summary=f"the one-time alias {asked.alias} and the model file: {observed}",
        expected=f"alias {asked.alias}, model file {_file_name(asked.model_path or '') or 'as given'}",
        observed=observed,
        evidence=evidence_of(server.models, server.props),
    )


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


@check(
    "server.is-healthy",
    title="/health says that the server is ready",
    boundary="api_response",
    remedy="read the answer in the evidence; if something else listens there, give the right URL",
)
def is_healthy(server: ServerFacts) -> Verdict:
    """Ask for the documented ready answer; 503 while loading is not known yet."""
    answer = server.outcome("health").need()
    fault = fault_of(answer, "HTTP 200 with status ok")
    if fault is not None:
        return fault
    status = server.health.need().status
    return Verdict(
        holds=status in {"ok", "no slot available"},  # loaded, and every slot at work: builds of 2024
        summary=f"/health: {answer.detail}, status {status}",
        expected="HTTP 200 with status ok",
        observed=f"{answer.detail}, status {status}",
        evidence=answer.evidence,
    )


@check(
    "server.lists-the-model",
    title="/v1/models lists the model to use",
    boundary="api_response",
    remedy="see the list in the evidence; requests have to use a name that is in it",
)
def lists_the_model(server: ServerFacts, asked: AskedFacts) -> Verdict:
    """Ask for a list that is not empty, and for our alias in it where we gave one."""
    answer = server.outcome("models").need()
    fault = fault_of(answer, "a list of models")
    if fault is not None:
        return fault
    models = server.models.need()
    names = ", ".join(model.id for model in models.models[:5]) or "none"
    wanted = ([] if asked.alias is None else [asked.alias]) + list(asked.models)
    lacking = [name for name in wanted if models.named(name) is None]
    return Verdict(
        holds=bool(models.models) and not lacking,
        summary=f"{len(models.models)} listed: {names}",
        expected=f"a model named {', '.join(wanted)}" if wanted else "at least one model",
        observed=names,
        evidence=answer.evidence,
    )


@check(
    "server.model-agrees-with-header",
    title="The loaded model's figures agree with the file's header",
    boundary="api_response",
    remedy="the server has loaded another file than the one inspected: compare model_path in /props",
)
def model_agrees_with_header(server: ServerFacts, model: GgufFacts) -> Verdict:
    """Compare vocabulary, width, trained context, parameters and tensor bytes, where both sides give them."""
    listed = _loaded_model(server)
    pairs: list[tuple[str, int | None, Fact[int]]] = [
        ("vocabulary", listed.vocabulary_size, model.vocabulary_size),
        ("embedding length", listed.embedding_length, model.embedding_length),
        ("trained context tokens", listed.trained_context_tokens, model.context_length_tokens),
        ("parameters", listed.parameter_count, model.parameter_count),
        ("tensor bytes", listed.tensor_bytes, model.tensor_bytes),
    ]
    both = [(n, there, here.value) for n, there, here in pairs if there and isinstance(here, Known)]
    if not both:
        model.embedding_length.need()
        raise NotKnownError("absent", "this build's /v1/models gives no figures of the model")
    twice = _counts_embedding_twice(listed, model) and is_of_2024(server)
    wrong = [(n, there, here) for n, there, here in both if there != here and not (twice and n in SIZES)]
    shown = wrong or both
    note = f"; of {' and '.join(SIZES)} this build counts the embedding twice" if twice else ""
    return Verdict(
        holds=not wrong,
        summary=f"{len(both) - len(wrong)} of {len(both)} figures agree{note}"
        + "".join(f"; {name}: header {here}, server {there}" for name, there, here in wrong),
        expected=", ".join(f"{name} {here}" for name, _there, here in shown),
        observed=", ".join(f"{name} {there}" for name, there, _here in shown),
        evidence=evidence_of(server.models),
    )


def _counts_embedding_twice(listed: ListedModel, model: GgufFacts) -> bool:
    """Whether a model without an output matrix is counted with its embedding in that place as well.

    Builds of early 2024 load it a second time and count both. Source: llm_load_tensors in llama.cpp.
    """
    figures = (listed.parameter_count, listed.vocabulary_size, listed.embedding_length)
    parameters, vocabulary, width = figures
    if parameters is None or vocabulary is None or width is None:
        return False
    header = model.parameter_count
    return isinstance(header, Known) and parameters == header.value + vocabulary * width


def _loaded_model(server: ServerFacts) -> ListedModel:
    """Return the model that our requests used. Raises: NotKnownError."""
    models = server.models.need()
    found = models.named(server.request_model.need())
    if found is None:
        raise NotKnownError("absent", "the model that was asked is not in the list")
    return found


@check(
    "server.build-agrees-with-binary",
    title="The server that answers is the build that was inspected",
    boundary="api_response",
    remedy="another llama-server answers, or a wrapper starts another program: see `executes` in the record",
)
def build_agrees_with_binary(server: ServerFacts, binary: BinaryFacts) -> Verdict | NotApplicable:
    """Compare build_info in /props with build number and commit that --version printed."""
    info = server.props.need().build_info
    nameless = isinstance(binary.version.text, Unknown) and binary.version.text.why == "unsupported"
    if not info and (nameless or is_of_2024(server)):
        return NotApplicable("absent in this build: its /props does not say which one it is")
    if not info:
        raise NotKnownError("absent", "this build's /props does not say which build it is")
    number, _, commit = info.removeprefix("b").partition("-")
    pairs: list[tuple[str, str, str]] = []
    if isinstance(binary.version.build, Known):
        pairs.append(("build", number, str(binary.version.build.value)))
    if isinstance(binary.version.commit, Known) and commit:
        pairs.append(("commit", commit, binary.version.commit.value))
    if not pairs:
        binary.version.build.need()
    wrong = [name for name, there, here in pairs if not _same_build(there, here)]
    printed = ", ".join(f"{name} {here}" for name, _there, here in pairs)
    return Verdict(
        holds=not wrong,
        summary=f"/props says {info}; --version says {printed}",
        expected=printed,
        observed=info,
        evidence=evidence_of(server.props),
    )


def _same_build(one: str, other: str) -> bool:
    """Compare numbers or commits, of which one may be cut shorter."""
    short, long = sorted((one.strip().lower(), other.strip().lower()), key=len)
    return short == long or (len(short) >= 7 and long.startswith(short))  # noqa: PLR2004 - git's shortest


@check(
    "server.slots-as-asked",
    title="The server has as many slots as were asked for",
    boundary="api_response",
    remedy="compare the command line with n_slots in the load log; a configuration file may have changed it",
)
def slots_as_asked(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Compare --parallel with /props and /slots, where either answers."""
    counts: dict[str, int] = {}
    if isinstance(server.props, Known) and server.props.value.total_slots is not None:
        counts["/props"] = server.props.value.total_slots
    if isinstance(server.slots, Known):
        counts["/slots"] = len(server.slots.value.slots)
    if not counts and asked.parallel is None:
        return NotApplicable("no number of slots was asked for")
    if not counts:
        server.props.need()
        server.slots.need()
    observed = ", ".join(f"{count} in {place}" for place, count in counts.items())
    if asked.parallel is None and len(set(counts.values())) == 1:
        return NotApplicable("no number of slots was asked for")
    return Verdict(
        holds=all(count == asked.parallel for count in counts.values()),
        summary=f"asked for {asked.parallel or 'no number of'} slots; {observed}",
        expected=f"{asked.parallel or 'one number of'} slots",
        observed=observed,
        evidence=evidence_of(server.props, server.slots),
    )


@check(
    "server.context-as-asked",
    title="Each slot has the context that was asked for",
    boundary="api_response",
    remedy="with --kv-unified a slot has the whole context, without it a part: see the plan in the record",
)
def context_as_asked(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Compare the slot's context with --ctx-size: whole, or shared out; capped by the trained context."""
    agree = _contexts_agree(server)
    if not asked.ctx_size or isinstance(agree, Verdict):
        return agree
    seen = server.props.need().slot_context_tokens
    if seen is None:
        seen = next((slot.context_tokens for slot in server.slots.need().slots), None)
    if seen is None:
        raise NotKnownError("absent", "neither /props nor /slots of this build gives a slot's context")
    slots = asked.parallel or server.props.need().total_slots or 1
    trained = _loaded_model(server).trained_context_tokens if isinstance(server.models, Known) else None
    wanted = _contexts(asked.ctx_size, slots, unified=asked.kv_unified, trained=trained)
    expected = " or ".join(str(size) for size in sorted(wanted))
    return Verdict(
        holds=seen in wanted,
        summary=f"asked for {asked.ctx_size} tokens and {slots} slots; a slot has {seen} tokens",
        expected=f"{expected} tokens for each slot",
        observed=f"{seen} tokens",
        evidence=evidence_of(server.props, server.slots),
    )


def _contexts_agree(server: ServerFacts) -> Verdict | NotApplicable:
    """Compare what /props and /slots say a slot has, where nothing was asked for."""
    props = server.props_of_model
    seen = {props.value.slot_context_tokens} if isinstance(props, Known) else set()
    if isinstance(server.slots, Known):
        seen |= {slot.context_tokens for slot in server.slots.value.slots}
    sizes = sorted(size for size in seen if size)
    if len(sizes) < 2:  # noqa: PLR2004 - two figures that differ
        return NotApplicable("no context size was asked for")
    observed = f"a slot has {' or '.join(map(str, sizes))} tokens by /props and /slots"
    return Verdict(
        holds=False,
        summary=observed,
        expected="one size of a slot's context",
        observed=observed,
        evidence=evidence_of(server.props, server.slots),
    )


def _contexts(size: int, slots: int, *, unified: bool | None, trained: int | None) -> set[int]:
    """Return the sizes that a slot may have: as asked and rounded up, whole or shared out, capped."""
    whole = {size, _up(size)}
    part = {size // slots, _up(size // slots), _up(size) // slots}
    found = whole if unified or slots == 1 else part if unified is False else whole | part
    return {min(value, trained) if trained else value for value in found}


def _up(size: int) -> int:
    return -(-size // CONTEXT_STEP) * CONTEXT_STEP


@check(
    "server.key-is-required",
    title="Without the API key, or with a wrong one, nothing is generated or shown",
    boundary="api_response",
    remedy="start the server with --api-key-file or LLAMA_API_KEY, and ask it directly, not through a proxy",
)
def key_is_required(server: ServerFacts, asked: AskedFacts) -> Verdict | NotApplicable:
    """Ask that chat, /props and /slots answer 401; /health is open, and /v1/models is in some builds."""
    if not asked.api_key:
        return NotApplicable("no API key is used")
    answers = server.without_key.need()
    guarded = [answer for answer in answers if answer.request not in {"GET /health", "GET /v1/models"}]
    silent = [answer for answer in guarded if answer.state in {"no_answer", "unreachable", "loading"}]
    opened = [answer for answer in guarded if answer.state in {"works", "refuses", "broken"}]
    if silent and not opened:
        raise NotKnownError("timed_out", f"{silent[0].request} without the key: {silent[0].detail}")
    models_open = any(a.request == "GET /v1/models" and a.state == "works" for a in answers)
    note = "; /v1/models is open, as in builds before about 10600" if models_open else ""
    observed = ", ".join(f"{a.request} with {a.key} key: {a.detail}" for a in opened) or "401 everywhere"
    return Verdict(
        holds=not opened,
        summary=f"{observed}{note}",
        expected="401 from chat, /props and /slots without the key and with a wrong one",
        observed=observed,
        remedy=GUARDS_TEXT_ONLY if is_early(server) else None,
        evidence=evidence_of(*opened),
    )


@check(
    "server.still-alive-after-requests",
    title="The server is still ready after our requests",
    boundary="api_response",
    remedy="read the end of the server's log: a request broke it",
)
def still_alive_after_requests(server: ServerFacts) -> Verdict | NotApplicable:
    """Ask /health again at the end."""
    before = server.outcome("health").need()
    if before.state != "works":
        return NotApplicable("it was not ready before our requests")
    after = server.outcome("health-after").need()
    if after.state in {"no_answer", "needs_key"}:
        server.health_after.need()
    return Verdict(
        holds=after.state == "works",
        summary=f"/health after all requests: {after.detail}",
        expected="HTTP 200 before and after",
        observed=after.detail,
        evidence=after.evidence,
    )
