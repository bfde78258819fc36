"""Runs no step: gives what a test says came of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from llamaops.facts.runbook_run import RunbookStep
from llamaops.runbook.document import Step
from llamaops.runbook.plan import PlannedStep
from llamaops.runbook.run import Came

GOOD = Came(status=0, ended="exit status 0", reached=("host",), record="r1", record_path="/records/r1")


class FakePerformer:
    """Gives each step the next of its results, and remembers what was asked of it."""

    def __init__(self, results: Mapping[str, Sequence[Came]] | None = None) -> None:
        self.results = {name: list(items) for name, items in (results or {}).items()}
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.serving: list[str] = []
        self.stopped: list[str] = []

    def command(self, step: Step, words: tuple[str, ...]) -> Came:
        self.calls.append((step.id, words))
        left = self.results.get(step.id)
        return left.pop(0) if left else GOOD

    def background(self, step: Step, words: tuple[str, ...]) -> Came:
        self.serving.append(step.id)
        return self.command(step, words)

    def stop_all(self) -> list[tuple[str, Came]]:
        self.stopped += reversed(self.serving)
        self.serving.clear()
        return [(name, Came(status=None, ended="stopped", evidence=("ev-log",))) for name in self.stopped]

    @contextlib.contextmanager
    def step(self, step: PlannedStep) -> Iterator[Callable[[RunbookStep], None]]:
        yield lambda result: None
