"""Run a runbook for real: its steps are children, bounded; servers are kept for later steps and stopped."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from llamaops.errors import InputFileError, UsageError
from llamaops.facts.runbook_run import RunbookFacts, RunbookInput, RunbookStep
from llamaops.operations.session import Session
from llamaops.record.store import find, read
from llamaops.runbook import run as runner
from llamaops.runbook.document import Step
from llamaops.runbook.fill import resolve_inputs
from llamaops.runbook.load import Loaded
from llamaops.runbook.plan import DEFAULT_BOUNDS, PlannedStep, typed
from llamaops.runbook.run import Ask, Came
from llamaops.schema.bounds import MIB, Bounds
from llamaops.system import paths, process
from llamaops.system.environment import engine_variables
from llamaops.system.machine import Machine
from llamaops.system.process import Completed, End, Exited, StoppedAtBound, describe
from llamaops.system.server_process import ServerProcess, StopPolicy

SERVING = "serving on "
RECORD = "record: "
GRACE_S = 15.0
"""A llamaops command that is stopped first stops its own server, then writes its record."""
LLAMAOPS = (sys.executable, "-m", "llamaops")


class Before(msgspec.Struct, frozen=True):
    """An earlier run that this one goes on from."""

    record: str
    facts: RunbookFacts


class RunbookRequest(msgspec.Struct, frozen=True):
    """Which runbook to run, and how."""

    loaded: Loaded
    given: Mapping[str, str]
    yes: bool
    ask: Ask | None
    before: Before | None = None
    by_hand_done: frozenset[str] = frozenset()


def run_runbook(session: Session, machine: Machine, records: str, request: RunbookRequest) -> str:
    """Run a runbook and return how it ended.

    Args:
        session: The run.
        machine: The machine.
        records: The folder of records; each llamaops command of a step writes its own there.
        request: What to run.

    Raises: UsageError before anything is run.
    """
    runbook = request.loaded.runbook
    before = request.before
    given = request.given
    inputs = resolve_inputs(runbook, given)
    promised = tuple(dict.fromkeys(s.expect.boundary for s in runbook.steps if s.expect.boundary is not None))
    session.begin(promised, runbook.not_covered)
    facts = RunbookFacts(
        id=runbook.id,
        title=runbook.title,
        sha256=request.loaded.sha256,
        inputs=tuple(RunbookInput(name=n, value=v, given=n in given) for n, v in inputs.items()),
        steps=(),
        resumed=None if before is None else before.record,
    )
    done = (
        frozenset()
        if before is None
        else frozenset(s.id for s in before.facts.steps if s.end in {"done", "earlier"})
    )
    steps = runner.run(
        runbook,
        inputs,
        _Performer(session, machine, records),
        ask=request.ask,
        yes=request.yes,
        done=done,
        by_hand_done=request.by_hand_done,
        outputs=_outputs_of(records, before),
    )
    with contextlib.closing(steps):  # whatever was started is stopped, also on an interrupt
        for results in steps:
            facts = msgspec.structs.replace(facts, steps=results)
            session.add("runbook", facts)
    session.judge("runbook")
    return _ended(facts)


def _outputs_of(records: str, before: Before | None) -> dict[str, str]:
    steps = () if before is None else before.facts.steps
    return {f"{s.id}.record": paths.joined(records, s.record) for s in steps if s.record is not None}


def _ended(facts: RunbookFacts) -> str:
    stopped = next((s for s in facts.steps if s.end not in {"done", "earlier"}), None)
    if stopped is None:
        return "every step was run; whatever was started is stopped"
    back = next((s for s in facts.steps if s.fell_back_from is not None), None)
    then = f"; went back to {back.id}, which is {back.end.replace('_', ' ')}" if back else ""
    return f"the step {stopped.id} is {stopped.end.replace('_', ' ')}{then}; whatever was started is stopped"


def resumed(records: str, name: str, loaded: Loaded, given: Mapping[str, str]) -> Before:
    """Return the earlier run that a record holds.

    Raises: UsageError where it is another runbook's, or the runbook was changed since, or an input is needed.
    """
    folder = _latest(records) if name == "latest" else find(records, name)
    record = read(folder)
    facts = record.facts.runbook
    if facts is None or facts.id != loaded.runbook.id:
        raise UsageError(
            f"{name} is no record of the runbook {loaded.runbook.id}",
            hint="`llamaops record list` shows the records",
        )
    if facts.sha256 != loaded.sha256:
        raise UsageError(
            f"the runbook {facts.id} was changed since {name}",
            hint="run it anew, so that each step is the one that was read",
        )
    removed = {item.place for item in record.removed}
    hidden = [
        item.name
        for index, item in enumerate(facts.inputs)
        if f"/facts/runbook/inputs/{index}/value" in removed and item.name not in given
    ]
    if hidden:
        raise UsageError(
            f"the record does not hold the whole value of {', '.join(hidden)}",
            hint="give it again with " + " ".join(f"--input {name}=…" for name in hidden),
        )
    return Before(record.id, facts)


def _latest(records: str) -> str:
    """Return the folder of the latest record of a runbook; the records of its steps lie beside it."""
    try:
        names = [name for name in paths.folders_in(records) if "-runbook-" in paths.name(name)]
    except OSError:
        names = []
    if not names:
        raise UsageError(f"there is no record of a runbook in {records}")
    return str(names[-1])


def inputs_of(before: Before) -> dict[str, str]:
    """Return the inputs that were given to an earlier run."""
    return {item.name: item.value for item in before.facts.inputs if item.value is not None and item.given}


class _Performer:
    """Runs steps as children."""

    def __init__(self, session: Session, machine: Machine, records: str) -> None:
        self._session = session
        self._machine = machine
        self._records = records
        self._serving: list[tuple[str, _Server]] = []
        # Engine variables would change what is measured; llamaops' own settings stay.
        removed = set(engine_variables(machine.environ))
        self._env = {name: value for name, value in machine.environ.items() if name not in removed}

    @contextlib.contextmanager
    def step(self, step: PlannedStep) -> Iterator[Callable[[RunbookStep], None]]:
        """Journal a step."""
        detail = typed(step.command) if step.command else step.says or step.title
        with self._session.step(step.id, detail) as handle:

            def note(result: RunbookStep) -> None:
                handle.evidence = result.evidence
                ends = {"failed": "failed", "stopped_at_bound": "stopped_at_bound", "done": "done"}
                handle.end = ends.get(result.end, "skipped")  # type: ignore[assignment]  # values of ends
                if result.end not in {"done", "failed"}:
                    handle.detail = f"{result.end.replace('_', ' ')}: {detail}"

            yield note

    def command(self, step: Step, words: tuple[str, ...]) -> Came:
        """Run a program, or a command of llamaops, to its end."""
        own = step.do != "command"
        argv = (*LLAMAOPS, *self._own(step, words, "json")) if own else words
        bounds = step.bounds or DEFAULT_BOUNDS
        done = process.run(
            argv,
            bounds=Bounds(
                wall_s=bounds.wall_s,
                grace_s=GRACE_S if own else 5.0,
                keep_bytes=(64 * MIB if own else MIB),
                total_bytes=bounds.output_mib * MIB,
            ),
            env=self._env,
            cwd=None if step.cwd is None else paths.expanded(step.cwd),
        )
        return self._own_came(done) if own else self._came(done)

    def background(self, step: Step, words: tuple[str, ...]) -> Came:
        """Start a server that keeps serving, and return once it is verified or has failed."""
        server = _Server((*LLAMAOPS, *self._own(step, words, "text")), self._env)
        self._serving.append((step.id, server))
        bounds = step.bounds or DEFAULT_BOUNDS
        began = time.monotonic()
        url = server.start_and_wait(bounds.wall_s)
        elapsed = time.monotonic() - began
        end = server.process.poll()
        if url is not None:
            came = Came(status=None, ended=f"serving on {url}", url=url, elapsed_s=elapsed)
        elif end is None:
            came = Came(status=None, ended="was not ready in time", stopped_at_bound=True, elapsed_s=elapsed)
        else:
            status = end.code if isinstance(end, Exited) else None
            came = Came(
                status=status, ended=_with_last_line(end, server.process.stderr.text), elapsed_s=elapsed
            )
        return self._with_record(came, server.record, server.process.log())

    def stop_all(self) -> list[tuple[str, Came]]:
        """Stop what still serves, the last one first."""
        stopped = []
        for name, server in reversed(self._serving):
            report = server.process.stop()
            kept = (msgspec.structs.replace(item, label=server.label) for item in server.process.evidence())
            evidence = tuple(self._machine.keep(item) for item in kept)
            came = Came(
                status=None,
                ended=f"stopped at the end of the run ({describe(report.end)})",
                evidence=evidence,
            )
            stopped.append((name, self._with_record(came, server.record, "")))
        self._serving.clear()
        return stopped

    def _own(self, step: Step, words: tuple[str, ...], form: str) -> tuple[str, ...]:
        """Return a command line of llamaops with the record and the form that are needed here."""
        has_record = _has_record(step.do)
        more = ("--quiet", "--records", self._records) if has_record else ()
        form_words = ("--format", form) if has_record else ()
        verbs = len(step.do.split())
        return (*words[:verbs], *more, *form_words, *words[verbs:])

    def _came(self, done: Completed) -> Came:
        own = done.argv[: len(LLAMAOPS)] == LLAMAOPS
        label = typed(("llamaops", *done.argv[len(LLAMAOPS) :]) if own else done.argv)
        kept = [done.stdout.evidence("stdout", label), done.stderr.evidence("stderr", label)]
        evidence = [self._machine.keep(item) for item in kept if item.total_bytes]
        return Came(
            status=done.end.code if isinstance(done.end, Exited) else None,
            ended=_with_last_line(done.end, done.stderr.text),
            stopped_at_bound=isinstance(done.end, StoppedAtBound),
            output=done.stdout.text + done.stderr.text,
            evidence=tuple(evidence),
            elapsed_s=done.elapsed_s,
        )

    def _own_came(self, done: Completed) -> Came:
        """Read the document that a llamaops command printed; its record is the evidence."""
        try:
            document = msgspec.json.decode(done.stdout.data)
            record = document["record"]
            identity = record["id"] if record else None
        except (msgspec.DecodeError, KeyError, TypeError):
            return self._came(done)
        if identity is None:
            return self._came(done)
        came = Came(
            status=done.end.code if isinstance(done.end, Exited) else None,
            ended=_with_last_line(done.end, done.stderr.text),
            stopped_at_bound=isinstance(done.end, StoppedAtBound),
            elapsed_s=done.elapsed_s,
        )
        return self._with_record(came, identity, done.stdout.text + done.stderr.text)

    def _with_record(self, came: Came, identity: str | None, output: str) -> Came:
        if identity is None:
            return msgspec.structs.replace(came, output=output)
        folder = paths.joined(self._records, identity)
        try:
            record = read(folder)
        except InputFileError:
            return msgspec.structs.replace(came, output=output)
        states: dict[str, list[Any]] = {"reached": [], "failed": []}
        for boundary in record.boundaries:
            states.setdefault(boundary.state, []).append(boundary.name)
        return msgspec.structs.replace(
            came,
            output=output,
            record=identity,
            record_path=folder,
            reached=tuple(states["reached"]),
            not_reached=tuple(states["failed"]),
            findings={finding.check: finding.status for finding in record.findings},
        )


def _with_last_line(end: End, stderr: str) -> str:
    """Say how a program ended; where it failed, with the last line that it said."""
    lines = stderr.strip().splitlines()
    return describe(end) if end == Exited(0) or not lines else f"{describe(end)}: {lines[-1][:300]}"


def _has_record(do: str) -> bool:
    from llamaops.runbook.lint import WITH_RECORD

    return do in WITH_RECORD


class _Server:
    """`llamaops serve` in the background: a managed server that verifies itself and keeps serving."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        self.url: str | None = None
        self.record: str | None = None
        self.label = typed(("llamaops", *argv[len(LLAMAOPS) :]))
        # It stops its own server first, with its own patience.
        self.process = ServerProcess(
            argv, env=env, on_line=self._line, policy=StopPolicy(first_s=20.0, second_s=5.0)
        )

    def start_and_wait(self, wall_s: float) -> str | None:
        """Start it and return its URL; None when it ended, or was not ready in time."""
        end = time.monotonic() + wall_s
        self.process.start()
        while self.url is None and self.process.poll() is None and time.monotonic() < end:
            self.process.wait_change(0.25)
        if self.url is not None:
            self.process.mark_ready()
        return self.url

    def _line(self, line: str) -> None:
        if line.startswith(RECORD):
            self.record = os.path.basename(line.removeprefix(RECORD).strip())  # noqa: PTH119
        elif line.startswith(SERVING):
            self.url = line.removeprefix(SERVING).strip()
            self.process.changed.set()
