"""Bring up our own llama-server, know when it is ready, and know how it ended."""

from __future__ import annotations

import itertools
import threading
from typing import Self, TypeVar

import msgspec

from llamaops.facts.lifecycle import HealthPoll, LifecycleFacts
from llamaops.facts.load_log import LoadFacts, LoadLogReader
from llamaops.facts.process_memory import ProcessMemory, collect_process_memory
from llamaops.schema.fact import Fact, Known, Source, Unknown, known, not_attempted
from llamaops.system.http import Exchange, HttpClient, HttpFailure
from llamaops.system.machine import Machine
from llamaops.system.origin import Origin
from llamaops.system.process import NotStarted, describe
from llamaops.system.server_process import ServerProcess, StopReport
from llamaops.system.sockets import holder_of, listeners

T = TypeVar("T")

FIRST_PAUSE_S = 0.01
WRONG_ADDRESS_S = 2.0
"""How long a server that says it is ready may go on refusing the address it was told."""
LONGEST_PAUSE_S = 0.25
LOG_END_LINES = 20
HOLDS_BACK = frozenset({"2023", "2024"})
"""Ages of builds whose server does not flush its log."""


class Launch(msgspec.Struct, frozen=True):
    """What is to be started."""

    argv: tuple[str, ...]
    env: dict[str, str]
    host: str
    port: int
    ready_timeout_s: float


class Managed:
    """One managed server; a context manager that always stops it."""

    def __init__(self, machine: Machine, launch: Launch, api_key: str | None = None) -> None:
        self.launch = launch
        self._source = Source(kind="command", name=" ".join(launch.argv))
        self.reader = LoadLogReader(self._source)
        self.process = ServerProcess(launch.argv, env=launch.env, on_line=self._line)
        self.origin = Origin.parse(f"http://{_in_url(launch.host)}:{launch.port}")
        self.client = HttpClient(self.origin, api_key=api_key, keep=machine.keep, clock=machine.clock)
        self._machine = machine
        self._health: list[HealthPoll] = []
        self._started = 0.0
        self._listening_at: float | None = None
        self._ready_at: float | None = None
        self._memory: Fact[ProcessMemory] = not_attempted("it did not become ready")
        self._holder: Fact[str] = not_attempted("the server was not started")
        self._ended_after_ready = False
        self._elsewhere: tuple[str, ...] = ()
        self._stop: StopReport | None = None
        self.client_at_stop = False
        """Set by whoever lets a request run while the server is stopped."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop the server."""
        self.stop()

    @property
    def is_ready(self) -> bool:
        """Whether it has become ready."""
        return self._ready_at is not None

    @property
    def gave_up(self) -> bool:
        """Whether it was still on its way when the bound on becoming ready was reached."""
        return (
            not self.is_ready
            and not self._elsewhere
            and self.process.poll() is None
            and bool(self.process.pid)
        )

    def start(self) -> bool:
        """Start the server unless the port is taken; say whether there is something to wait for."""
        source = Source(kind="library", name=f"listeners of port {self.launch.port}")
        self._holder = known(self._port_holder(), source)
        if self._holder.value:
            return False
        self._started = self._machine.clock.monotonic()
        return not isinstance(self.process.start(), NotStarted)

    def wait_ready(self) -> bool:
        """Ask /health with growing pauses until it is ready, has ended, or the bound is reached.

        The log's listening line cuts a pause short, so that nobody waits for a server that is ready.
        """
        clock = self._machine.clock
        pause = FIRST_PAUSE_S
        while clock.monotonic() - self._started < self.launch.ready_timeout_s:
            if self.process.poll() is not None:
                return False
            answer = self.client.fast_get("/health")
            self._note_health(answer.kind if isinstance(answer, HttpFailure) else str(answer.status))
            ready = not isinstance(answer, HttpFailure) and answer.status == 200  # noqa: PLR2004
            # The answer may be another server's: ours has to be alive after it.
            if ready and self.process.poll() is None:
                self._ready_at = clock.monotonic()
                self.process.mark_ready()
                self._memory = collect_process_memory(self._machine, self.process.pid or 0)
                return True
            if not ready and self._listens_elsewhere(answer):
                return False
            self.process.wait_change(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        return False

    def _listens_elsewhere(self, answer: Exchange | HttpFailure) -> bool:
        """Whether its log says ready, and nobody listens where it was told to."""
        refused = isinstance(answer, HttpFailure) and answer.kind == "refused"
        if not refused or self._listening_at is None:
            return False
        if self._machine.clock.monotonic() - self._listening_at < WRONG_ADDRESS_S:
            return False
        pid = self.process.pid or 0
        self._elsewhere = tuple(f"{item.address}:{item.port}" for item in listeners(pid))
        return True

    def stop(self) -> StopReport:
        """Stop the server and everything that descends from it."""
        if self._stop is None:
            self._ended_after_ready = self.is_ready and self.process.poll() is not None
            self._stop = self.process.stop()
            for evidence in self.process.evidence():
                self._machine.keep(evidence)
        return self._stop

    def load_facts(self) -> LoadFacts:
        """Return what the log shows so far; its raw text is kept as evidence when the server stops."""
        with self._lock:
            return self._with_health(self.reader.facts())

    def _with_health(self, load: LoadFacts) -> LoadFacts:
        """Add that the model is loaded where the server says so and its log holds the line back.

        Builds of 2024 print their own lines to standard output, which a pipe gets in blocks of 4 KiB; the
        library's lines, with the buffers and the context, come at once. Their /health is 503 until then.
        """
        buffers = isinstance(load.weight_buffers, Known) and isinstance(load.n_ctx, Known)
        of_2024 = isinstance(load.era, Known) and load.era.value in HOLDS_BACK
        said = isinstance(load.model_loaded, Known) and load.model_loaded.value
        if self._ready_at is None or said or not (buffers and of_2024):
            return load
        source = Source(kind="http", name=f"GET {self.origin.url}/health")
        return msgspec.structs.replace(load, model_loaded=Known(value=True, source=source))

    def facts(self) -> LifecycleFacts:
        """Return the server's life so far."""
        source = Source(kind="library", name="the managed server process")
        return LifecycleFacts(
            address=f"{self.launch.host}:{self.launch.port}",
            port_holder=self._holder,
            pid=_known_or(self.process.pid, source, "no process was started"),
            health=tuple(self._health),
            ready_s=self._ready_s(source),
            ready_lag_s=self._ready_lag(source),
            memory_when_ready=self._memory,
            first_error=self._first_error(source),
            log_end=() if self.is_ready and not self._died() else self._log_end(),
            end=self._end(source),
            stop=self._stop.how if self._stop is not None else "still_serving",
            stop_s=_known_or(
                round(self._stop.elapsed_s, 3) if self._stop is not None else None, source, "not stopped yet"
            ),
            client_at_stop=self.client_at_stop,
            elsewhere=self._elsewhere,
            left=self._stop.left if self._stop is not None else (),
            died_while_serving=self._died(),
        )

    def _died(self) -> bool:
        if self._stop is not None:
            return self._ended_after_ready
        return self.is_ready and self.process.poll() is not None

    def _line(self, line: str) -> None:
        with self._lock:
            self.reader.feed(line)
            ready = self._listening_at is None and self.reader.ready_url is not None
        if ready:
            self._listening_at = self._machine.clock.monotonic()
            self.process.changed.set()

    def _port_holder(self) -> str:
        pid = holder_of(self.launch.port)
        if pid is not None:
            return f"the process {pid}"
        answer = self.client.fast_get("/health", wall_s=0.5)
        if isinstance(answer, HttpFailure) and answer.kind == "refused":
            return ""
        return "another program that accepts connections"

    def _note_health(self, answer: str) -> None:
        now = round(self._machine.clock.monotonic() - self._started, 3)
        if self._health and self._health[-1].answer == answer:
            last = self._health[-1]
            self._health[-1] = msgspec.structs.replace(last, count=last.count + 1, last_s=now)
        else:
            self._health.append(HealthPoll(answer=answer, count=1, first_s=now, last_s=now))

    def _ready_s(self, source: Source) -> Fact[float]:
        if self._ready_at is not None:
            return known(round(self._ready_at - self._started, 4), source)
        if self._holder.need() if isinstance(self._holder, Known) else True:
            return not_attempted("the server was not started")
        why = "failed" if self.process.poll() is not None else "timed_out"
        return Unknown(why=why, detail="the server did not become ready", source=source)  # type: ignore[arg-type]

    def _ready_lag(self, source: Source) -> Fact[float]:
        if self._ready_at is None or self._listening_at is None:
            return Unknown(why="absent", detail="no listening line was seen in the log", source=source)
        return known(round(max(0.0, self._ready_at - self._listening_at), 4), source)

    def _first_error(self, source: Source) -> Fact[str]:
        failed = self.load_facts().first_error
        if isinstance(failed, Known):
            return failed
        if isinstance(self.process.report, StopReport) and isinstance(self.process.report.end, NotStarted):
            return known(self.process.report.end.why, source)
        return Unknown(why="absent", detail="no error line in the log", source=source)

    def _log_end(self) -> tuple[str, ...]:
        lines = self.process.log().splitlines()
        return tuple(itertools.islice(lines, max(0, len(lines) - LOG_END_LINES), None))

    def _end(self, source: Source) -> Fact[str]:
        end = self._stop.end if self._stop is not None else self.process.poll()
        return not_attempted("it is still serving") if end is None else known(describe(end), source)


def _known_or(value: T | None, source: Source, why_not: str) -> Fact[T]:
    return not_attempted(why_not) if value is None else known(value, source)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
