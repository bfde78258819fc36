"""Smoke: one bounded local generation, and the chat template's path where the model has one."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Literal

import msgspec

from llamaops.errors import UsageError
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts
from llamaops.facts.generation import Generation, GenerationFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.load_log import parse_load_log
from llamaops.launch.argv import Command, can_chat_once, completion_argv, server_argv, writes_log_file
from llamaops.launch.settings import LaunchSettings
from llamaops.operations.choose import NO_MODEL_HINT, NO_PROGRAM_HINT, Choice, choose_model, choose_program
from llamaops.operations.generate import (
    CHAT_PROMPT,
    RAW_PROMPT,
    Ask,
    ask_chat,
    ask_raw,
    lost_its_output,
    masked,
    run_completion,
)
from llamaops.operations.knowledge import add_build_names, executed
from llamaops.operations.launching import add_launch, capabilities_of, engine_settings, pick_port
from llamaops.operations.look import look, template_fact
from llamaops.operations.managed import Launch, Managed
from llamaops.operations.session import Session
from llamaops.operations.settings import Settings
from llamaops.schema.boundary import BoundaryName
from llamaops.schema.fact import Known
from llamaops.system.http import HttpClient
from llamaops.system.machine import Machine
from llamaops.system.process import Completed

PROMISED: tuple[BoundaryName, ...] = ("host", "binary", "model_file", "model_load", "generated_output")
NOT_COVERED = (
    "one prompt of our own says nothing about the quality of answers",
    "one generation at a time; speed is not judged",
)
SMALL_CONTEXT = 1024
TRIES = 3
"""How often a run is made whose output its own quick exit lost."""
Via = Literal["completion", "server"]


class Programs(msgspec.Struct, frozen=True):
    """The programs a smoke runs, and why these."""

    via: Via
    why: str
    paths: dict[str, str]


def choose_via(settings: Settings, machine: Machine) -> Programs:
    """Choose the path: llama-completion where it is installed, else a throw-away llama-server.

    The interactive llama-cli is never taken: it exits 0 when a request failed, and may wait for input.

    Raises: UsageError when the path that was asked for, or every path, is missing.
    """
    completion = choose_program("llama-completion", settings, machine)
    server = choose_program("llama-server", settings, machine)
    found = {
        role: choice.path
        for role, choice in (("llama-completion", completion), ("llama-server", server))
        if choice is not None
    }
    if settings.via == "completion" and completion is None:
        raise UsageError("llama-completion was not found", hint="use --via server, or " + NO_PROGRAM_HINT)
    if settings.via == "server" and server is None:
        raise UsageError("llama-server was not found", hint="use --via completion, or " + NO_PROGRAM_HINT)
    if settings.via in {"auto", "completion"} and completion is not None:
        why = (
            "asked for"
            if settings.via == "completion"
            else f"llama-completion is there ({completion.origin})"
        )
        return Programs("completion", why, found)
    if server is not None:
        why = "asked for" if settings.via == "server" else "llama-completion is not installed beside it"
        return Programs("server", f"{why} ({server.origin})", {"llama-server": server.path})
    raise UsageError("neither llama-completion nor llama-server was found", hint=NO_PROGRAM_HINT)


def smoke(
    session: Session,
    machine: Machine,
    settings: Settings,
    programs: Programs,
    model: Choice,
    prompt: str | None,
) -> str:
    """Run the smoke and return how it ended."""
    session.begin(PROMISED, NOT_COVERED)
    asked = AskedFacts(
        via=programs.via,
        model_path=model.path,
        binary_path=programs.paths[_role(programs.via)],
        host="127.0.0.1" if programs.via == "server" else None,
        ctx_size=settings.ctx_size,
        parallel=settings.parallel,
        n_gpu_layers=settings.n_gpu_layers,
        threads=settings.threads,
        expect_device=settings.expect_device,
        max_tokens=settings.max_tokens,
    )
    seen = look(session, machine, asked, programs.paths)
    binary = seen[_role(programs.via)]
    session.add("binary", binary)
    add_build_names(session, machine, executed(binary))
    session.judge("host", "accelerator", "model", "identity", "binary", "knowledge")
    if session.failed("binary", "model_file"):
        return "nothing was loaded: the program or the model file failed its checks"
    run = _Run(session, machine, settings, programs, asked, seen, prompt)
    run.perform()
    return "ended by itself; everything that was started is stopped"


class _Run:
    """The generations of one smoke."""

    def __init__(
        self,
        session: Session,
        machine: Machine,
        settings: Settings,
        programs: Programs,
        asked: AskedFacts,
        seen: dict[str, BinaryFacts],
        prompt: str | None,
    ) -> None:
        self._session = session
        self._machine = machine
        self._settings = settings
        self._programs = programs
        self._asked = asked
        self._seen = seen
        self._prompt = prompt
        self._raw: Generation | None = None
        self._chat: Generation | None = None
        self._no_chat: str | None = None
        self._template = template_fact(session.group(GgufFacts))

    def perform(self) -> None:
        """Generate by the chosen path, then by the chat path where there is a template."""
        if self._programs.via == "completion":
            self._complete()
            if self._has_template() and self._raw_went_well():
                self._chat_after_completion()
        else:
            self._serve(raw=True)
        self._judge()

    def _raw_went_well(self) -> bool:
        if self._raw is None or self._raw.stopped_at_bound or self._session.failed("model_load"):
            self._no_chat = "the raw completion before it failed"
            return False
        return True

    def _has_template(self) -> bool:
        return isinstance(self._template, Known) and self._template.value

    def _may_have_template(self) -> bool:
        return not isinstance(self._template, Known) or self._template.value

    def _ask(self, ours: str) -> Ask:
        return Ask(
            prompt=self._prompt or ours,
            is_ours=self._prompt is None,
            max_tokens=self._settings.max_tokens,
            seed=self._settings.seed,
            temperature=self._settings.temperature,
            timeout_s=self._settings.timeout,
        )

    def _complete(self) -> None:
        binary = self._seen["llama-completion"]
        capabilities = capabilities_of(binary)
        ask = self._ask(RAW_PROMPT)
        command = completion_argv(
            self._programs.paths["llama-completion"],
            self._launch_settings(0),
            capabilities,
            prompt=ask.prompt,
            max_tokens=ask.max_tokens,
            temperature=ask.temperature,
        )
        shown = masked(command.argv, ask)
        add_launch(self._session, msgspec.structs.replace(command, argv=shown), capabilities, self._machine)
        if self._session.failed("binary"):
            return
        self._raw, done = self._run(command, ask, "raw")
        self._session.add("load", parse_load_log(done.stderr.text, self._raw.end.source))
        self._session.judge("load")

    def _chat_after_completion(self) -> None:
        if "llama-server" in self._programs.paths:
            self._serve(raw=False)
        elif can_chat_once(capabilities_of(self._seen["llama-completion"])):
            self._chat_once()
        else:
            self._no_chat = "llama-server is not installed, and this llama-completion has no single chat turn"

    def _chat_once(self) -> None:
        """Take one chat turn with the completion program: the template's path, but not a server's."""
        ask = self._ask(CHAT_PROMPT)
        command = completion_argv(
            self._programs.paths["llama-completion"],
            self._launch_settings(0),
            capabilities_of(self._seen["llama-completion"]),
            prompt=ask.prompt,
            max_tokens=ask.max_tokens,
            temperature=ask.temperature,
            chat=True,
        )
        self._chat, _done = self._run(command, ask, "chat")

    def _run(self, command: Command, ask: Ask, path: Literal["raw", "chat"]) -> tuple[Generation, Completed]:
        """Run the completion program; once more where its quick exit lost what it had printed."""
        tries_left = TRIES
        while True:
            tries_left -= 1
            with self._session.step(f"generate-{path}", " ".join(masked(command.argv, ask))) as step:
                generation, done = run_completion(
                    self._machine, command.argv, ask, path, apart=self._writes_log_file()
                )
                if generation.stopped_at_bound:
                    step.end = "stopped_at_bound"
                if not lost_its_output(generation, done):
                    return generation, done
                step.end = "failed"
                step.detail = f"the program counted tokens and printed nothing: {step.detail}"
            if not tries_left:
                return generation, done

    def _writes_log_file(self) -> bool:
        return writes_log_file(capabilities_of(self._seen["llama-completion"]))

    def _serve(self, *, raw: bool) -> None:
        """Start a throw-away server on loopback, ask it, and stop it."""
        binary = self._seen["llama-server"]
        capabilities = capabilities_of(binary)
        settings = self._launch_settings(pick_port("127.0.0.1"))
        command = server_argv(self._programs.paths["llama-server"], settings, capabilities)
        if raw:
            add_launch(self._session, command, capabilities, self._machine)
            if self._session.failed("binary"):
                return
        launch = Launch(
            argv=command.argv,
            env=self._machine.child_environment(),
            host=settings.host,
            port=settings.port,
            ready_timeout_s=self._settings.ready_timeout,
        )
        with Managed(self._machine, launch) as server:
            self._use(server, command, raw=raw)
            with self._session.step("stop-server", "stop the throw-away server"):
                server.stop()
            self._session.add("lifecycle", server.facts())
            if raw:
                self._session.add("load", server.load_facts())
                self._session.judge("load")
            if not server.is_ready:
                self._no_chat = "the server did not become ready"
                self._session.judge("lifecycle")

    def _use(self, server: Managed, command: Command, *, raw: bool) -> None:
        with self._session.step("start-server", " ".join(command.argv)) as step:
            if not (server.start() and server.wait_ready()):
                step.end = "failed"
                return
        if raw:
            self._raw = self._request("generate-raw", server, ask_raw, RAW_PROMPT)
        if self._may_have_template():
            self._chat = self._request("generate-chat", server, ask_chat, CHAT_PROMPT)

    def _request(
        self, name: str, server: Managed, send: Callable[[HttpClient, Ask], Generation], prompt: str
    ) -> Generation:
        with self._session.step(name, f"{name.replace('-', ' ')} through {server.origin.url}") as step:
            generation = send(server.client, self._ask(prompt))
            if generation.stopped_at_bound:
                step.end = "stopped_at_bound"
        return generation

    def _launch_settings(self, port: int) -> LaunchSettings:
        settings = engine_settings(self._settings, self._asked.model_path or "", port)
        return msgspec.structs.replace(
            settings,
            ctx_size=settings.ctx_size or SMALL_CONTEXT,
            parallel=settings.parallel or (1 if port else None),
            seed=None if port else self._settings.seed,  # a server gets it with each request
            alias=f"llamaops-{secrets.token_hex(6)}" if port else None,
            warmup=False,
        )

    def _judge(self) -> None:
        self._session.add(
            "generation",
            GenerationFacts(
                max_tokens=self._settings.max_tokens,
                seed=self._settings.seed,
                temperature=self._settings.temperature,
                chosen_via=f"{self._programs.via}: {self._programs.why}",
                has_chat_template=self._template,
                raw=self._raw,
                chat=self._chat,
                chat_not_attempted=self._no_chat,
            ),
        )
        self._session.judge("generation")


def _role(via: Via) -> str:
    return "llama-completion" if via == "completion" else "llama-server"


def model_or_refuse(settings: Settings, machine: Machine) -> Choice:
    """Return the model.

    Raises: UsageError when there is none.
    """
    choice = choose_model(settings, machine)
    if choice is None:
        raise UsageError("no model was named, and the embedded one was not fetched", hint=NO_MODEL_HINT)
    return choice
