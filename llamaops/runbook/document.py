"""The shape of a runbook."""

from __future__ import annotations

from typing import Literal

import msgspec

from llamaops.schema.boundary import BoundaryName
from llamaops.schema.finding import Status
from llamaops.schema.shape import Shape

InputKind = Literal["path", "text", "number", "choice", "url", "words"]
Area = Literal["install", "models", "serving", "performance", "troubleshooting"]
Do = Literal[
    "command", "manual",
    "preflight", "inspect", "fit", "diagnose", "explain", "smoke", "serve", "verify", "canary", "fetch",
    "expose check", "expose render", "expose show", "record show", "record list", "record validate",
    "runbook plan", "runbook lint", "settings", "sources",
]  # fmt: skip
"""What a step can be: one program, something done by hand, or a command of llamaops."""
Value = str | int | float | bool | tuple[str, ...]

MAX_WALL_S = 4 * 3600


class Input(Shape, frozen=True, kw_only=True):
    """Something that the operator gives; without a default it has to be given."""

    kind: InputKind
    """What it is; `choice` names its `choices`; `words` are several arguments with spaces between."""
    about: str
    """What to give, in one sentence."""
    default: str | int | None = None
    """Taken where nothing is given."""
    choices: tuple[str, ...] = ()
    """The values allowed for a choice."""
    pattern: str | None = None
    """A regular expression (RE2) that the whole value has to match."""
    optional: bool = False
    """Whether it may be left out; an option or argument that is nothing but it is then left out too."""


class Changes(Shape, frozen=True, kw_only=True):
    """What a step changes; shown before the operator is asked."""

    target: str
    """What is changed: a file, a service, a package."""
    scope: str
    """How far the change reaches."""
    rollback: str
    """How to go back."""


class Expect(Shape, frozen=True, kw_only=True):
    """What a step has to give; everything that is said has to hold."""

    status: tuple[int, ...] = (0,)
    """Exit statuses that are right."""
    boundary: BoundaryName | None = None
    """A rung of the ladder that the step's own record has to reach."""
    output: tuple[str, ...] = ()
    """Fixed texts that the output has to hold, each of them."""
    absent: tuple[str, ...] = ()
    """Fixed texts that the output must not hold."""
    findings: dict[str, Status] = msgspec.field(default_factory=dict)
    """Checks of the step's own record and the status that each has to have."""


class StepBounds(Shape, frozen=True, kw_only=True):
    """Limits of one step."""

    wall_s: float
    """Seconds until it is stopped."""
    output_mib: int = 64
    """MiB of output after which it is stopped."""


class Step(Shape, frozen=True, kw_only=True):
    """One step: a command of llamaops, one program (`command`), or something done by hand (`manual`)."""

    id: str
    """Short name, unique in the runbook: lower case, digits and hyphens."""
    title: str = ""
    """What it does, as an imperative sentence; without one its id is shown."""
    do: Do
    """A command of llamaops such as `smoke`, or `command`, or `manual`."""
    args: tuple[str, ...] = ()
    """Positional arguments of a llamaops command."""
    options: dict[str, Value] = msgspec.field(default_factory=dict)
    """Options of a llamaops command by their long name; false or an input left out leaves one out."""
    flags: tuple[str, ...] = ()
    """Flags for llama-server, which follow `--`."""
    argv: tuple[str, ...] = ()
    """The program and its arguments, for `command`; no shell reads them."""
    cwd: str | None = None
    """The folder the program runs in, for `command`."""
    says: str | None = None
    """What has to be done, for `manual`."""
    background: bool = False
    """For `serve`: verify, keep serving for the steps that follow, and stop at the end of the run."""
    reads_only: bool = False
    """For `command`: whether it changes nothing. A command says either this or `changes`."""
    changes: Changes | None = None
    """What the step changes; the operator is asked first."""
    expect: Expect = Expect()
    """What it has to give."""
    bounds: StepBounds | None = None
    """Limits; a `command` has to have them."""
    on_failure: Literal["stop", "continue"] = "stop"
    """Whether the steps that follow are run all the same."""
    fall_back_to: str | None = None
    """An earlier step that is run once more when this one fails, to return to what last worked."""


class Runbook(Shape, frozen=True, kw_only=True):
    """A runbook."""

    runbook: Literal[1]
    """Version of this form."""
    id: str
    """Its name, the same as its file's without the ending."""
    title: str
    """What it is for, as an imperative sentence."""
    area: Area = "serving"
    """The chapter of the documentation it belongs to."""
    about: str = ""
    """When to use it and what to know before, in a few sentences."""
    inputs: dict[str, Input] = msgspec.field(default_factory=dict)
    """What the operator gives, by name."""
    steps: tuple[Step, ...]
    """What is done, in order."""
    not_covered: tuple[str, ...]
    """What a run that passes does not show."""
