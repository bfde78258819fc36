"""One run of a command: what it did, saw and judged, journalled as it goes, written once at its end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

import msgspec

from llamaops import __version__
from llamaops.checks.registry import all_checks, run_check
from llamaops.errors import ExitStatus
from llamaops.record import boundaries, store
from llamaops.record.journal import Journal
from llamaops.record.record import Record, Tool
from llamaops.record.redact import Redacted, Redactor, redact
from llamaops.schema.boundary import Boundary, BoundaryName
from llamaops.schema.finding import Finding
from llamaops.schema.shape import Shape
from llamaops.schema.step import StepResult
from llamaops.system import guard
from llamaops.system.clock import iso
from llamaops.system.machine import Machine
from llamaops.system.paths import AnyPath, name


class Event(msgspec.Struct, frozen=True):
    """Something that a reader of the screen may want to know while the run goes on."""

    kind: Literal["step", "finding", "boundary", "note"]
    text: str
    state: str = ""


Observer = Callable[[Event], None]
G = TypeVar("G")


class StepHandle:
    """What a step may say about itself while it runs."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        self.end: Literal["done", "failed", "stopped_at_bound", "interrupted", "skipped"] = "done"
        self.evidence: tuple[str, ...] = ()


class Finished(msgspec.Struct, frozen=True):
    """A run that has ended and was written."""

    redacted: Redacted
    folder: str
    status: ExitStatus


class Session:
    """The run of one command."""

    def __init__(
        self,
        command: str,
        argv: Sequence[str],
        machine: Machine,
        redactor: Redactor,
        records: AnyPath,
        *,
        observer: Observer | None = None,
    ) -> None:
        """Begin a record; its folder and journal exist when this returns.

        Raises: RecordWriteError.
        """
        guard.begin_run()
        self.machine = machine
        self.redactor = redactor
        self.promised: tuple[BoundaryName, ...] = ()
        self.not_covered: list[str] = []
        self.accepted: dict[str, str] = {}
        self.groups: dict[type, object] = {}
        self._command = command
        self._argv = tuple(argv)
        self._observer = observer
        self._facts: dict[str, Shape] = {}
        self._findings: dict[str, Finding] = {}
        self._steps: list[StepResult] = []
        self._boundaries: dict[str, Boundary] = {}
        self._elapsed: dict[str, float] = {}
        self._began = machine.clock.monotonic()
        self._started_at = iso(machine.clock.now_utc())
        self.folder = store.new_folder(records, command, machine.clock.now_utc())
        self._journal = Journal(self.folder, redactor, machine.clock)

    def begin(self, promised: Sequence[BoundaryName], not_covered: Sequence[str] = ()) -> None:
        """State what this run has to reach, and what it does not cover."""
        self.promised = tuple(promised)
        self.not_covered += not_covered
        self._journal.append(
            "begin",
            {
                "command": self._command,
                "argv": self._argv,
                "started_at": self._started_at,
                "tool": _tool(),
                "promised": self.promised,
            },
        )

    def note(self, text: str) -> None:
        """Tell the observer something; the record says it elsewhere."""
        self._tell(Event("note", text))

    @contextlib.contextmanager
    def step(self, name: str, detail: str = "") -> Iterator[StepHandle]:
        """Run a step; whatever way it ends, it is in the journal."""
        handle = StepHandle(detail)
        started_at, began = iso(self.machine.clock.now_utc()), self.machine.clock.monotonic()
        self._tell(Event("step", detail or name))
        try:
            yield handle
        except BaseException:
            handle.end = "interrupted"
            raise
        finally:
            result = StepResult(
                id=name,
                end=handle.end,
                started_at=started_at,
                elapsed_s=round(self.machine.clock.monotonic() - began, 4),
                detail=handle.detail,
                evidence=handle.evidence,
            )
            self._steps.append(result)
            self._journal.append("step", result)

    def add(self, name: str, group: Shape) -> None:
        """Add a fact group under its name in the record; a later one replaces it."""
        self._facts[name] = group
        self.groups[type(group)] = group
        self._journal.append("facts", group, name=name)

    def search_evidence(self) -> None:
        """Search what was kept so far for secrets, while others are at work: the end has less to do then."""
        self.redactor.clean([msgspec.to_builtins(evidence) for evidence in self.machine.evidence])

    def group(self, kind: type[G]) -> G | None:
        """Return a collected fact group by its type."""
        found = self.groups.get(kind)
        return found if isinstance(found, kind) else None

    def judge(self, *areas: str) -> None:
        """Run the checks of some areas whose inputs were collected, and derive the boundaries anew."""
        new = []
        for check in all_checks(areas):
            if any(group not in self.groups for group in check.inputs().values()):
                continue
            finding = run_check(check, self.groups)
            if finding is None:
                continue
            if finding.status == "failed" and finding.check in self.accepted:
                finding = msgspec.structs.replace(finding, accepted=self.accepted[finding.check])
            if self._findings.get(finding.check) == finding:
                continue
            self._findings[finding.check] = finding
            new.append(finding)
        self._journal.append_all("finding", new)
        for finding in new:
            self._tell(Event("finding", f"{finding.check}: {finding.summary}", finding.status))
        self._derive()

    def failed(self, *names: BoundaryName) -> bool:
        """Say whether one of these boundaries has failed and what failed was not accepted."""
        return any(finding.boundary in names for finding in self.failures())

    def failures(self) -> tuple[Finding, ...]:
        """Return what failed that was required and was not accepted."""
        return tuple(
            f
            for f in self._findings.values()
            if f.status == "failed" and f.severity == "required" and not f.accepted
        )

    def finish(self, ended: str, *, interrupted: bool = False, status: ExitStatus | None = None) -> Finished:
        """Assemble, redact and write the record; may be called again.

        Args:
            ended: How the run ended, in a sentence.
            interrupted: Whether it was asked to stop.
            status: The exit status of an error that ended it; otherwise the findings decide.

        Raises: RecordWriteError.
        """
        from llamaops.render.markdown_text import render_markdown

        self._explain()
        ladder = self._derive()
        findings = self._ordered()
        outcome, judged = boundaries.judge_outcome(
            findings, ladder, self.promised, self._steps, interrupted=interrupted
        )
        if status is None:
            status = judged
        else:
            outcome = "stopped"
        evidence = self.machine.evidence
        record: Record[dict[str, Shape]] = Record(
            id=name(self.folder),
            command=self._command,
            argv=self._argv,
            started_at=self._started_at,
            finished_at=iso(self.machine.clock.now_utc()),
            tool=_tool(),
            outcome=outcome,
            exit_status=int(status),
            ended=ended,
            promised=self.promised,
            strongest=boundaries.strongest(ladder),
            boundaries=ladder,
            gaps=boundaries.gaps(findings, evidence, self._steps, self.not_covered),
            findings=findings,
            steps=tuple(self._steps),
            facts=self._facts,
            evidence=evidence,
        )
        redacted = redact(msgspec.to_builtins(record), self.redactor)
        encoded = msgspec.json.format(msgspec.json.encode(redacted.record), indent=1)
        store.write(self.folder, encoded, render_markdown(redacted))
        self._journal.append("end", {"outcome": outcome, "exit_status": int(status), "ended": ended})
        return Finished(redacted, self.folder, status)

    def _explain(self) -> None:
        """Add what the logs, the answers and the checks of a failed run mean."""
        if self._command not in {"smoke", "serve", "verify", "fit"} or not self.failures():
            return
        from llamaops.operations.diagnose import diagnosis_of_run

        found = diagnosis_of_run(self, self.machine.evidence)
        if found is not None:
            self.add("diagnosis", found)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def _derive(self) -> tuple[Boundary, ...]:
        now = self.machine.clock.monotonic() - self._began
        for boundary in boundaries.derive(self._findings.values(), self._elapsed):
            before = self._boundaries.get(boundary.name)
            if boundary.state != "not_tested" and (before is None or before.state != boundary.state):
                self._elapsed[boundary.name] = now
        ladder = boundaries.derive(self._findings.values(), self._elapsed)
        new = [
            boundary
            for boundary in ladder
            if boundary.state != "not_tested"
            and ((before := self._boundaries.get(boundary.name)) is None or before.state != boundary.state)
        ]
        self._journal.append_all("boundary", new)
        for boundary in new:
            self._tell(Event("boundary", f"{boundary.name}: {boundary.claim}", boundary.state))
        self._boundaries = {boundary.name: boundary for boundary in ladder}
        return ladder

    def _ordered(self) -> tuple[Finding, ...]:
        from llamaops.schema.boundary import LADDER

        def place(finding: Finding) -> tuple[int, str]:
            rung = len(LADDER) if finding.boundary is None else LADDER.index(finding.boundary)
            return rung, finding.check

        return tuple(sorted(self._findings.values(), key=place))

    def _tell(self, event: Event) -> None:
        if self._observer is not None:
            clean = self.redactor.text(event.text)
            self._observer(msgspec.structs.replace(event, text=clean))


def _tool() -> Tool:
    # What platform.python_version() finds in it with seven patterns.
    return Tool(name="llamaops", version=__version__, python=sys.version.split(maxsplit=1)[0])
