"""What is known, what is not, and where either came from."""

from __future__ import annotations

from typing import Generic, Literal, NoReturn, TypeVar, Union

from llamaops.errors import NotKnownError
from llamaops.schema.shape import Shape

T = TypeVar("T")

Why = Literal[
    "absent",  # looked for in the right place, and it is not there
    "refused",  # permission, authentication or policy said no
    "timed_out",  # the bound on time was reached first
    "failed",  # the operation ran and failed
    "unparsed",  # there was an answer, in a form that we do not know
    "unsupported",  # this build, platform or device does not offer it
    "not_attempted",  # nobody looked; never to be read as absent
    "not_selected",  # nobody looked, because the operator left it out; no check is judged by it
]


class Source(Shape, frozen=True, kw_only=True):
    """The operation that a fact came from, as it was really run."""

    kind: Literal["file", "command", "library", "http", "computed", "operator"]
    """What sort of operation: `operator` is what the operator asked for."""
    name: str
    """Path, command line, function, request line or formula."""
    evidence: str | None = None
    """Id of the evidence that holds the raw output, where it was kept."""


class Known(Shape, Generic[T], frozen=True, kw_only=True, tag_field="state", tag="known"):
    """A recorded value and where it came from."""

    value: T
    """The value, in the unit that its field name ends with."""
    source: Source
    """The operation that produced it."""

    def need(self) -> T:
        """Return the value."""
        return self.value


class Unknown(Shape, frozen=True, kw_only=True, tag_field="state", tag="unknown"):
    """A value that was looked for and not found, and why."""

    why: Why
    """The reason, for a script."""
    detail: str
    """The reason in one sentence that an operator can act on."""
    source: Source
    """The operation that was tried."""

    def need(self) -> NoReturn:
        """Raise NotKnownError, which `run_check` turns into the status `unknown`."""
        raise NotKnownError(self.why, self.detail)


# typing.Union, not `|`: the alias must be subscriptable at run time.
Fact = Union[Known[T], Unknown]  # noqa: UP007


def known(value: T, source: Source) -> Known[T]:
    """Record a value that was just observed."""
    return Known(value=value, source=source)


def not_attempted(detail: str) -> Unknown:
    """Return the fact that nobody looked, with the reason why not."""
    return Unknown(why="not_attempted", detail=detail, source=Source(kind="computed", name="not attempted"))


def not_selected(detail: str) -> Unknown:
    """Return the fact that nobody looked because the operator did not ask for it."""
    return Unknown(
        why="not_selected", detail=detail, source=Source(kind="operator", name="--level, --only, --skip")
    )
