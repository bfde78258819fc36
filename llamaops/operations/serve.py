"""Serve: start a managed llama-server, verify that it really serves, keep serving, and stop all of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec

from llamaops.checks.server_plan import reported, reported_text
from llamaops.errors import Interrupted, UsageError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.facts.sockets import SocketFacts, collect_sockets
from llamaops.launch.argv import server_argv, slots_shown
from llamaops.operations.choose import NO_PROGRAM_HINT, Choice
from llamaops.operations.knowledge import add_build_names, executed
from llamaops.operations.launching import add_launch, capabilities_of, engine_settings, pick_port, plan_of
from llamaops.operations.look import look
from llamaops.operations.managed import Launch, Managed
from llamaops.operations.session import Finished, Session
from llamaops.operations.settings import Settings
from llamaops.operations.verification import AREAS, ask_everything, not_covered
from llamaops.probes.drain import Draining
from llamaops.probes.selection import Selection
from llamaops.probes.server import ServerFacts
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine

EMBEDDING_FLAGS = frozenset({"--embeddings", "--embedding"})
RERANK_FLAGS = frozenset({"--reranking", "--rerank"})
SLEEP_FLAG = "--sleep-idle-seconds"
FALLS_ASLEEP, WAKES_UP = "entering sleeping state", "exiting sleeping state"
"""Lines of builds b10068 and b10434."""
LOADED: tuple[BoundaryName, ...] = ("host", "binary", "model_file", "model_load")


class ServeRequest(msgspec.Struct, frozen=True):
    """What to serve and how far to go."""

    settings: Settings
    program: Choice | None
    model: Choice
    verify: Selection | None
    """What to ask before it is believed; none when it is not to be verified."""
    once: bool
    api_key: str | None
    extra: tuple[str, ...]
    exposed: bool


def serve(
    session: Session,
    machine: Machine,
    request: ServeRequest,
    *,
    on_verified: Callable[[Finished, str], None],
) -> str:
    """Start, verify where asked, keep serving until stopped, and return how it ended.

    Args:
        session: The run.
        machine: The machine.
        request: What to serve.
        on_verified: Called with the record so far and the URL once the server keeps serving.

    Raises: UsageError before anything starts; Interrupted when asked to stop, after stopping the server.
    """
    settings = request.settings
    promised = LOADED if request.verify is None else (*LOADED, *request.verify.promises())
    session.begin(promised, () if request.verify is None else not_covered(request.verify))
    if request.program is None:
        raise UsageError("llama-server was not found", hint=NO_PROGRAM_HINT)
    port = settings.port or pick_port(settings.host)
    alias = f"llamaops-{secrets.token_hex(6)}"
    asked = AskedFacts(
        via="server",
        model_path=request.model.path,
        binary_path=request.program.path,
        alias=alias,
        host=settings.host,
        port=port,
        ctx_size=settings.ctx_size,
        parallel=settings.parallel,
        kv_unified=settings.kv_unified,
        n_gpu_layers=settings.n_gpu_layers,
        threads=settings.threads,
        expect_device=settings.expect_device,
        max_tokens=settings.max_tokens,
        api_key=request.api_key is not None,
        slots=True,
        embeddings=not EMBEDDING_FLAGS.isdisjoint(request.extra),
        reranking=not RERANK_FLAGS.isdisjoint(request.extra),
    )
    binary = look(session, machine, asked, {"llama-server": request.program.path})["llama-server"]
    session.add("binary", binary)
    add_build_names(session, machine, executed(binary))
    session.judge("host", "accelerator", "model", "identity", "binary", "knowledge")
    if session.failed("binary", "model_file"):
        return "nothing was started: the program or the model file failed its checks"
    capabilities = capabilities_of(binary)
    wanted = msgspec.structs.replace(
        engine_settings(settings, request.model.path, port, request.extra),
        alias=alias,
        exposed=request.exposed,
    )
    command = server_argv(request.program.path, wanted, capabilities)
    made = command.settings
    session.add(
        "asked",
        msgspec.structs.replace(
            asked,
            ctx_size=made.ctx_size,
            parallel=made.parallel,
            kv_unified=made.kv_unified,
            n_gpu_layers=made.n_gpu_layers,
            metrics=made.metrics is True,
            slots=slots_shown(made, capabilities),
            alias=None if any(item.flag == "--alias" for item in command.left_out) else alias,
            embeddings=made.embeddings,
            sleep_idle_s=_sleep_idle_s(command.argv),
        ),
    )
    plan = plan_of(command, capabilities, _trained_context(session))
    add_launch(session, command, capabilities, machine, plan)
    session.note(f"plan: {plan.text}")
    if session.failed("binary"):
        return "nothing was started: this build lacks what the command line needs"
    environment = machine.child_environment()
    if request.api_key is not None and settings.api_key_file is None:
        # By the child's own environment, where only our user and root can read it; never by argv.
        environment["LLAMA_API_KEY"] = request.api_key
    launch = Launch(
        argv=command.argv,
        env=environment,
        host=settings.host,
        port=port,
        ready_timeout_s=settings.ready_timeout,
    )
    with Managed(machine, launch, request.api_key) as server:
        return _Serving(session, machine, request, server).run(on_verified)


class _Serving:
    """One server from its start to its end."""

    def __init__(self, session: Session, machine: Machine, request: ServeRequest, server: Managed) -> None:
        self._session = session
        self._machine = machine
        self._request = request
        self._server = server

    def run(self, on_verified: Callable[[Finished, str], None]) -> str:
        """Start, verify, serve, stop; whatever way it ends, the record says how."""
        try:
            if not self._start():
                return self._stopped("the server did not come up")
            if self._request.verify is not None:
                self._verify(self._request.verify)
            good = not self._session.failed(*self._session.promised)
            if self._request.once or not good:
                return self._stopped(
                    "verified once, as asked" if good else "stopped: it failed its verification"
                )
            self._session.note(f"serving on {self._server.origin.url}; stop with Ctrl-C")
            on_verified(self._session.finish("still serving"), self._server.origin.url)
            while self._server.process.poll() is None:
                self._server.process.wait_change(1.0)
            return self._stopped("the server ended by itself while serving")
        except Interrupted:
            self._stopped("interrupted")
            raise

    def _start(self) -> bool:
        with self._session.step("start-server", " ".join(self._server.launch.argv)) as step:
            ready = self._server.start() and self._server.wait_ready()
            if not ready:
                timed_out = self._server.gave_up
                step.end = "stopped_at_bound" if timed_out else "failed"
        self._session.add("lifecycle", self._server.facts())
        self._session.add("load", self._server.load_facts())
        if ready:
            self._session.judge("lifecycle", "load")
        return ready

    def _verify(self, selection: Selection) -> None:
        asked = self._session.group(AskedFacts)
        with self._session.step("verify", f"ask {self._server.origin.url} representative requests"):
            self._session.add("sockets", self._sockets())
            ask_everything(
                self._session,
                self._server.client,
                asked or AskedFacts(),
                selection,
                max_tokens=self._request.settings.max_tokens,
                log_says_asleep=self._log_says_asleep,
            )
        self._session.add("lifecycle", self._server.facts())
        self._session.add("load", self._server.load_facts())
        self._note_what_runs()
        self._session.judge("lifecycle", "load", *AREAS)

    def _log_says_asleep(self) -> bool:
        """Whether the last word about sleep in the server's log is that it went to sleep."""
        log = self._server.process.log()
        return log.rfind(FALLS_ASLEEP) > log.rfind(WAKES_UP)

    def _note_what_runs(self) -> None:
        """Say in one line what the server reports, beside the plan of before the start."""
        server, load = self._session.group(ServerFacts), self._session.group(LoadFacts)
        if server is not None and load is not None:
            self._session.note(f"runs: {reported_text(reported(server, load))}")

    def _draining(self) -> Draining | None:
        """Begin a request that runs while the server is stopped, where that is asked for."""
        selection, server = self._request.verify, self._session.group(ServerFacts)
        wanted = selection is not None and "drain" in selection and self._request.once
        if not wanted or server is None or self._server.process.poll() is not None:
            return None
        if not isinstance(server.chat, Known) or not isinstance(server.health_after, Known):
            return None
        name = server.request_model
        draining = Draining(self._server.client, name.value if isinstance(name, Known) else None)
        with self._session.step("drain", "begin a request that runs while the server is stopped"):
            self._server.client_at_stop = draining.begin()
        return draining

    def _sockets(self) -> SocketFacts:
        launch = self._server.launch
        return collect_sockets(self._server.process.pid or 0, host=launch.host, port=launch.port)

    def _stopped(self, ended: str) -> str:
        draining = self._draining()
        with self._session.step("stop-server", "stop the server and whatever descends from it"):
            report = self._server.stop()
        if draining is not None:
            seen = draining.finish(stop=report.how, stop_s=round(report.elapsed_s, 3), left=report.left)
            self._session.add("drain", seen)
            self._session.judge("drain")
        self._session.add("lifecycle", self._server.facts())
        self._session.add("load", self._server.load_facts())
        self._session.judge("lifecycle", "load")
        left = f", {len(report.left)} descendants killed" if report.left else ", nothing left"
        return f"{ended}; server stopped ({report.how.replace('_', ' ')}{left})"


def _sleep_idle_s(argv: tuple[str, ...]) -> int | None:
    """Return the seconds after which a command line tells the server to sleep; none where it does not."""
    at = len(argv) - 1 - argv[::-1].index(SLEEP_FLAG) if SLEEP_FLAG in argv else len(argv)
    value = argv[at + 1] if at + 1 < len(argv) else ""
    return int(value) if value.isdigit() else None


def _trained_context(session: Session) -> int | None:
    model = session.group(GgufFacts)
    if model is None or not isinstance(model.context_length_tokens, Known):
        return None
    return model.context_length_tokens.value
