"""Canary: two builds, one after the other, with the same model, flags and requests; switch or hold."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from llamaops.checks.registry import all_checks, run_check
from llamaops.errors import ParseError, UsageError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts, collect_binary
from llamaops.facts.canary import CanaryFacts, CanarySide, FlagComparison, Memory
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.host import HostFacts, collect_host
from llamaops.facts.load_log import LoadFacts
from llamaops.facts.model_look import collect_model
from llamaops.facts.sockets import collect_sockets
from llamaops.launch.argv import server_argv, slots_shown
from llamaops.launch.flag_changes import compare_flags
from llamaops.launch.settings import LaunchSettings
from llamaops.launch.unit_file import renamed
from llamaops.operations.launching import capabilities_of, pick_port
from llamaops.operations.managed import Launch, Managed
from llamaops.operations.session import Session
from llamaops.operations.side_by_side import side_by_side
from llamaops.probes.endpoint import ask, parsed
from llamaops.probes.reading import as_list, as_object, text
from llamaops.probes.selection import select
from llamaops.probes.server import collect_server
from llamaops.probes.surface import SurfaceFacts, collect_surface
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.bounds import Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, known, not_attempted
from llamaops.schema.finding import Finding
from llamaops.system.http import HttpClient
from llamaops.system.http_answer import decode_json
from llamaops.system.machine import Machine

PROMISED: tuple[BoundaryName, ...] = (
    "binary",
    "model_file",
    "model_load",
    "generated_output",
    "api_response",
)
NOT_COVERED = (
    "speed was not tested: which build is faster is not known from this",
    "more than one request at a time, and requests as long as yours",
    "each build ran for seconds: leaks and faults after days do not show",
)
CONVERSATIONS: tuple[list[dict[str, str]], ...] = (
    [{"role": "user", "content": "Name a river."}],
    [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Name a river."}],
    [
        {"role": "user", "content": "Name a river."},
        {"role": "assistant", "content": "The Elbe."},
        {"role": "user", "content": "And its source?"},
    ],
)
TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "Größe, naïve, 東京, и ещё немного — ½ of it.",
    "def f(x):\n\treturn {'a': [1, 22, 333], \"b\": x ** 2}\n",
    "1234567890 3.14159 0x1F600  two  spaces\r\n\r\n",
)
PROMPTS = ("One, two, three, four,", "The capital of France is")
GREEDY_TOKENS = 32
VERIFIED = ("lifecycle", "load", "server", "surface")
ASK = Bounds(wall_s=120.0)


class CanaryRequest(msgspec.Struct, frozen=True):
    """Which builds to compare, and with what."""

    current: str
    candidate: str
    model: str
    flags: tuple[str, ...]
    renames: dict[str, str]
    ready_timeout_s: float
    max_tokens: int


def canary(session: Session, machine: Machine, request: CanaryRequest) -> str:
    """Compare two builds and return how it ended, the verdict first."""
    session.begin(PROMISED, NOT_COVERED)
    with session.step("look", "look at host, model and both programs"):
        seen = side_by_side(
            {
                "current": lambda: collect_binary(machine, request.current, "llama-server"),
                "candidate": lambda: collect_binary(machine, request.candidate, "llama-server"),
                "host": lambda: collect_host(machine, model_path=request.model),
                "model": lambda: collect_model(machine, request.model),
            }
        )
    model, identity = seen["model"]
    for name, group in (("host", seen["host"]), ("model", model), ("identity", identity)):
        session.add(name, group)
    session.add("binary", seen["candidate"])
    sides = {
        name: _Side(session, machine, request, name, seen[name], model, seen["host"]).run()
        for name in ("current", "candidate")
    }
    facts = CanaryFacts(current=sides["current"], candidate=sides["candidate"], flags=_flags(request, seen))
    session.add("canary", facts)
    for name in sides["current"].failed:  # what is no worse than now is no reason to hold
        session.accepted.setdefault(name, "the build in use does not pass it either")
    session.judge("host", "model", "binary", *VERIFIED, "upgrade")
    facts = _judged(facts, request)
    session.add("canary", facts)
    reasons = f" ({'; '.join(facts.reasons)})" if facts.reasons else ""
    return f"verdict: {facts.verdict}{reasons}; to go back: {facts.go_back}"


def _flags(request: CanaryRequest, seen: dict[str, BinaryFacts]) -> Fact[FlagComparison]:
    now, then = capabilities_of(seen["current"]), capabilities_of(seen["candidate"])
    if now is None or then is None:
        return not_attempted("the help of a program could not be read")
    source = Source(kind="computed", name="the --help of both programs")
    own = ("--model", "--host", "--port")
    return known(compare_flags((*request.flags, *own), now, then), source)


def _judged(facts: CanaryFacts, request: CanaryRequest) -> CanaryFacts:
    """Come to a verdict: anything required that failed or is unknown is a reason to hold."""
    groups: dict[type, object] = {CanaryFacts: facts}
    found = [item for check in all_checks(["upgrade"]) if (item := run_check(check, groups)) is not None]
    open_findings = [item for item in found if item.status != "passed"]
    open_findings.sort(key=lambda item: item.status != "failed")
    hold = [item for item in open_findings if item.severity == "required"]
    reasons = tuple(f"{item.check}: {item.summary}" for item in hold or open_findings)
    return msgspec.structs.replace(
        facts,
        verdict="hold" if hold else "switch",
        reasons=reasons,
        go_back=f"start {request.current} again with the flags in use; nothing else was changed, "
        "and the model and its files stay as they are",
    )


class _Side:
    """One build from its start to its end."""

    def __init__(
        self,
        session: Session,
        machine: Machine,
        request: CanaryRequest,
        name: str,
        binary: BinaryFacts,
        model: GgufFacts,
        host: HostFacts,
    ) -> None:
        self._session = session
        self._machine = machine
        self._request = request
        self._name = name
        self._binary = binary
        self._groups: dict[type, object] = {type(group): group for group in (binary, model, host)}

    def run(self) -> CanarySide:
        """Start the build, ask it, stop it."""
        version = self._binary.version.text
        side = CanarySide(
            program=self._binary.path,
            build=version.value if isinstance(version, Known) else "unknown",
            argv=(),
            ready=False,
        )
        port, alias = pick_port("127.0.0.1"), f"llamaops-{secrets.token_hex(6)}"
        names = self._request.renames if self._name == "candidate" else {}
        wanted = LaunchSettings(
            model_path=self._request.model,
            port=port,
            alias=alias,
            extra=renamed(self._request.flags, names),
        )
        try:
            command = server_argv(self._binary.path, wanted, capabilities_of(self._binary))
        except UsageError as error:
            return msgspec.structs.replace(side, why_not=str(error))
        made = command.settings
        asked = AskedFacts(
            via="server",
            model_path=self._request.model,
            binary_path=self._binary.path,
            alias=alias,
            host="127.0.0.1",
            port=port,
            ctx_size=made.ctx_size,
            parallel=made.parallel,
            kv_unified=made.kv_unified,
            n_gpu_layers=made.n_gpu_layers,
            max_tokens=self._request.max_tokens,
            metrics=made.metrics is True,
            slots=slots_shown(made, capabilities_of(self._binary)),
            embeddings=made.embeddings,
        )
        self._add("asked", asked)
        side = msgspec.structs.replace(side, argv=command.argv)
        launch = Launch(
            argv=command.argv,
            env=self._machine.child_environment(),
            host="127.0.0.1",
            port=port,
            ready_timeout_s=self._request.ready_timeout_s,
        )
        with Managed(self._machine, launch) as server:
            side = self._serve(server, side, asked)
            server.stop()
            self._add("lifecycle", server.facts())
            self._add("load", server.load_facts())
        return self._judge(side)

    def _serve(self, server: Managed, side: CanarySide, asked: AskedFacts) -> CanarySide:
        with self._session.step(f"start-{self._name}", " ".join(server.launch.argv)) as step:
            if not (server.start() and server.wait_ready()):
                step.end = "stopped_at_bound" if server.gave_up else "failed"
                error = server.facts().first_error
                why = error.value if isinstance(error, Known) else "it was not ready in time"
                return msgspec.structs.replace(side, why_not=why)
        client = server.client
        with self._session.step(f"ask-{self._name}", f"ask {server.origin.url} the same as the other"):
            self._add(
                "sockets", collect_sockets(server.process.pid or 0, host="127.0.0.1", port=server.launch.port)
            )
            selection = select("standard", skip=("concurrency", "late-request"))
            answers = collect_server(client, asked, max_tokens=self._request.max_tokens, selection=selection)
            surface = collect_surface(client, answers, selection)
            self._add("server", answers)
            self._add("surface", surface)
            return msgspec.structs.replace(
                side,
                ready=True,
                templates=tuple(_rendered(client, messages) for messages in CONVERSATIONS),
                tokens=tuple(_tokens(client, content) for content in TEXTS),
                greedy=tuple(_continued(client, prompt) for prompt in PROMPTS),
                endpoints=_endpoints(surface),
                errors=_errors(surface),
            )

    def _add(self, name: str, group: Any) -> None:  # noqa: ANN401 - a fact group
        self._groups[type(group)] = group
        if self._name == "candidate":  # the ladder of the record is the candidate's
            self._session.add(name, group)

    def _judge(self, side: CanarySide) -> CanarySide:
        """Run the verification's checks on this build alone."""
        found = [
            item
            for check in all_checks(VERIFIED)
            if all(kind in self._groups for kind in check.inputs().values())
            and (item := run_check(check, self._groups)) is not None
        ]
        required: list[Finding] = [f for f in found if f.severity == "required" and f.status != "not_run"]
        load = self._groups.get(LoadFacts)
        return msgspec.structs.replace(
            side,
            failed=tuple(f.check for f in required if f.status == "failed"),
            not_shown=tuple(f.check for f in required if f.status in {"unknown", "error"}),
            judged=len(required),
            memory=_memory(load) if isinstance(load, LoadFacts) else None,
        )


def _text(body: bytes, name: str) -> str:
    found = text(as_object(decode_json(body), "the body"), name)
    if found is None:
        raise ParseError(f"there is no {name}")
    return found


def _rendered(client: HttpClient, messages: list[dict[str, str]]) -> Fact[str]:
    asked = ask(client, "template", "POST", "/apply-template", bounds=ASK, body={"messages": messages})
    return parsed(asked, lambda body: _text(body, "prompt"))[1]


def _tokens(client: HttpClient, content: str) -> Fact[tuple[int, ...]]:
    body = {"content": content, "add_special": True, "parse_special": False}
    asked = ask(client, "tokenize", "POST", "/tokenize", bounds=ASK, body=body)

    def numbers(answer: bytes) -> tuple[int, ...]:
        found = as_list(as_object(decode_json(answer), "the body").get("tokens"), "tokens")
        ids = [item.get("id") if isinstance(item, dict) else item for item in found]
        if not all(isinstance(item, int) for item in ids):
            raise ParseError("a token is not a number")
        return tuple(item for item in ids if isinstance(item, int))

    return parsed(asked, numbers)[1]


def _continued(client: HttpClient, prompt: str) -> Fact[str]:
    body = {
        "prompt": prompt,
        "n_predict": GREEDY_TOKENS,
        "temperature": 0,
        "seed": 1,
        "cache_prompt": False,
    }
    asked = ask(client, "completion", "POST", "/completion", bounds=ASK, body=body)
    return parsed(asked, lambda answer: _text(answer, "content"))[1]


def _endpoints(surface: SurfaceFacts) -> dict[str, str]:
    rows = surface.rows
    return {row.request: row.meaning for row in rows.value} if isinstance(rows, Known) else {}


def _errors(surface: SurfaceFacts) -> dict[str, str]:
    rows = surface.errors
    if not isinstance(rows, Known):
        return {}
    words = {True: "documented", False: "not documented", None: "no answer"}
    return {row.name: f"{row.status} ({words[row.holds]})" for row in rows.value}


def _memory(load: LoadFacts) -> Memory:
    def total(fact: Fact[Any]) -> Fact[int]:
        if isinstance(fact, Unknown):
            return fact
        return known(sum(item.size_bytes for item in fact.value if item.size_bytes), fact.source)

    return Memory(
        weights_bytes=total(load.weight_buffers),
        kv_bytes=total(load.kv_buffers),
        compute_bytes=total(load.compute_buffers),
    )
