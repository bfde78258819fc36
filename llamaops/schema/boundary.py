"""Boundaries, the rungs of the ladder, and gaps, what a record does not show."""

from __future__ import annotations

from typing import Literal, get_args

from llamaops.schema.shape import Shape

BoundaryName = Literal[
    "host",
    "binary",
    "model_file",
    "model_load",
    "generated_output",
    "api_response",
    "concurrency",
    "benchmark",
]
LADDER: tuple[BoundaryName, ...] = get_args(BoundaryName)

MEANING: dict[BoundaryName, str] = {
    "host": "memory, processor, accelerator and limits were read",
    "binary": "the binary ran, named its build, and its own --help has every flag that we pass",
    "model_file": "every shard is there, whole and readable, and holds a model",
    "model_load": "the load log says loaded, and the buffers lie on the devices asked for",
    "generated_output": "a bounded prompt gave usable text through the path the workload uses",
    "api_response": "our own server, on the address asked for, answered a representative request",
    "concurrency": "requests at once were all answered, side by side on every slot and queued beyond them",
    "benchmark": "two measurements that differ in one variable were compared with their spread",
}

BoundaryState = Literal["reached", "failed", "unknown", "not_tested"]


class Boundary(Shape, frozen=True, kw_only=True):
    """One rung of the ladder, its state derived from the findings about it."""

    name: BoundaryName
    """Which rung."""
    state: BoundaryState
    """`reached` needs at least one required check, and every required check passed."""
    claim: str
    """What the record shows at this rung, in one sentence."""
    findings: tuple[str, ...] = ()
    """Ids of the checks the state was derived from."""
    evidence: tuple[str, ...] = ()
    """Ids of the evidence those checks rest on."""
    elapsed_s: float | None = None
    """Seconds from the start of the run until this rung was known."""


class Gap(Shape, frozen=True, kw_only=True):
    """One thing that the record does not show, and what would show it."""

    subject: str
    """Id of the fact, check, step or evidence."""
    limit: Literal["not_observed", "not_judged", "cut_short", "redacted", "out_of_scope"]
    """What kind of limit."""
    detail: str
    """The limit in one sentence."""
    lifted_by: str
    """What an operator would have to provide or run."""
