"""NVML, asked in a child process of its own.

A call into a driver that hangs sits in the kernel: a thread around it could never be ended and would
hold llamaops open, a child can be killed and takes the library, its crashes and its 30 ms of import
with it. The child prints each answer as it comes, so a call that hangs costs only itself and what
comes after it. Nobody else in llamaops imports pynvml.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, TypeVar

import msgspec

from llamaops.schema.bounds import MIB, Bounds
from llamaops.schema.fact import Fact, Known, Source, Unknown, Why
from llamaops.system.ports import System
from llamaops.system.process import Completed, NotStarted, StoppedAtBound, describe

T = TypeVar("T")

# Without persistence mode the driver starts each card at the first call: seconds for each.
BOUNDS = Bounds(wall_s=20.0, grace_s=1.0, keep_bytes=2 * MIB, total_bytes=8 * MIB)

_WHY_OF_CODE: dict[int, Why] = {
    3: "unsupported",  # not supported by this device
    4: "refused",  # no permission
    6: "absent",  # not found
    10: "timed_out",
    12: "absent",  # library not found
    13: "unsupported",  # the library is older than the question
    17: "refused",  # the operating system or a control group blocks the device
    25: "unsupported",  # the library knows another version of the structure
    26: "unsupported",  # deprecated
}
# Everything else, such as an uninitialized driver, a lost GPU or a version mismatch, has failed.

Place = tuple[int | None, int | None, str]
"""Device, MIG device, question."""


class _Line(msgspec.Struct, frozen=True):
    query: str
    device: int | None = None
    mig: int | None = None
    value: msgspec.Raw = msgspec.Raw()  # empty: the call did not return
    code: int | None = None
    text: str = ""


class NvmlSnapshot(NamedTuple):
    """What NVML said, question by question."""

    answers: dict[Place, _Line]
    """The last line about each question: an answer, or only the question."""
    end: Completed
    source: Source

    def fact(self, type_: type[T], query: str, device: int | None = None, mig: int | None = None) -> Fact[T]:
        """Return the answer to one question as a fact.

        Source: the query's name behind the library's, so that a reader knows which call it was.
        """
        source = msgspec.structs.replace(self.source, name=f"NVML {query}")
        line = self.answers.get((device, mig, query))
        if line is None:
            return Unknown(why="not_attempted", detail=self._why_not_asked(query), source=source)
        if line.code is not None:
            why = _WHY_OF_CODE.get(line.code, "failed")
            return Unknown(why=why, detail=f"NVML {query}: {line.text}", source=source)
        if not bytes(line.value):
            why = "timed_out" if isinstance(self.end.end, StoppedAtBound) else "failed"
            detail = f"NVML {query} did not return: {describe(self.end.end)}"
            return Unknown(why=why, detail=detail, source=source)
        try:
            return Known(value=msgspec.json.decode(line.value, type=type_), source=source)
        except msgspec.MsgspecError as error:
            return Unknown(why="unparsed", detail=f"NVML {query}: {error}", source=source)

    def _why_not_asked(self, query: str) -> str:
        stuck = [line.query for line in self.answers.values() if not bytes(line.value) and line.code is None]
        if stuck:
            return f"NVML {query} was not asked: {stuck[0]} before it did not return"
        failed = [line for line in self.answers.values() if line.code is not None and line.device is None]
        return f"NVML {query} was not asked: {failed[0].query}: {failed[0].text}" if failed else (
            f"NVML {query} was not asked"
        )  # fmt: skip

    def migs(self, device: int) -> list[int]:
        """Return the numbers of the MIG devices of a device that exist."""
        return sorted(
            mig
            for (at, mig, query), line in self.answers.items()
            if at == device and mig is not None and query == "handle" and bytes(line.value)
        )


def argv() -> list[str] | None:
    """Return the child's command line; None when the binding is not installed."""
    from importlib.util import find_spec

    found = find_spec("pynvml")
    if found is None or found.origin is None:
        return None
    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvml_child.py")
    return [sys.executable, "-I", "-S", child, os.path.dirname(found.origin)]


def collect_nvml(system: System) -> NvmlSnapshot | Unknown:
    """Ask NVML for everything it knows about every device, within `BOUNDS`."""
    source = Source(kind="library", name="NVML (nvidia-ml-py)")
    command = argv()
    if command is None:
        return Unknown(why="not_attempted", detail="nvidia-ml-py is not installed", source=source)
    done = system.run(command, bounds=BOUNDS)
    if isinstance(done.end, NotStarted):
        return Unknown(why="failed", detail=f"NVML could not be asked: {done.end.why}", source=source)
    kept = system.keep(done.stdout.evidence("library", source.name)) if done.stdout.total_bytes else None
    source = Source(kind="library", name=source.name, evidence=kept)
    answers = parse_answers(done.stdout.data)
    if not answers:
        said = done.stderr.text.strip()[-200:]
        return Unknown(
            why="failed", detail=f"NVML could not be asked: {describe(done.end)} {said}", source=source
        )
    return NvmlSnapshot(answers, done, source)


def parse_answers(data: bytes) -> dict[Place, _Line]:
    """Parse the child's lines; one that was cut or that a library printed between is left out."""
    answers: dict[Place, _Line] = {}
    for raw in data.splitlines():
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except msgspec.MsgspecError:
            continue
        answers[line.device, line.mig, line.query] = line
    return answers
