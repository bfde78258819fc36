"""Where a log says that a start begins and that the server is ready, and what the parts prove."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from llamaops.diagnosis.expression import Value
from llamaops.diagnosis.scanned import LOG_KINDS, Scanned
from llamaops.schema.diagnosis import Place

Mark = tuple[int, int, str]
_SERVICE = re.compile(r"([\w.-]{1,60}?)\s+\| ")


def service_of(line: str) -> str:
    """Return the container that a line of a Compose log is from, or nothing."""
    found = _SERVICE.match(line)
    return found[1] if found else ""


class Landmarks(msgspec.Struct):
    """The landmarks of all parts."""

    ready: list[Mark]
    starts: list[Mark]
    generated: list[Mark]
    answered: list[Mark]
    router: bool = False
    """Whether the program is a router, which listens without a model."""

    @property
    def parts(self) -> set[int]:
        """Indexes of parts with any landmark."""
        return {mark[0] for mark in (*self.ready, *self.starts, *self.generated, *self.answered)}

    def ready_after(self, place: tuple[int, int], text: str = "") -> bool:
        """Say whether the same log says ready, or generated, after a place.

        In a log of several containers a line speaks for its own container only.
        """
        part, number = place
        service = service_of(text)
        return any(
            p == part and n > number and service in {"", service_of(line)}
            for p, n, line in (*self.ready, *self.generated)
        )

    def before_last_start(self, place: tuple[int, int]) -> bool:
        """Say whether a later start follows a place in the same log."""
        part, number = place
        return part >= 0 and any(p == part and n > number for p, n, _ in self.starts)

    def proven(self) -> tuple[Place | None, list[Mark]]:
        """Return the strongest boundary that the parts prove, with the lines."""
        if self.answered:
            return "api_response", self.answered[-1:]
        if self.generated:
            return "generated_output", self.generated[-1:]
        if self.router and not any("model loaded" in text for _, _, text in self.ready):
            return ("binary", self.ready[-1:]) if self.ready else (None, [])
        if self.ready:
            return "model_load", self.ready[-2:]
        return None, []


def landmarks_of(scans: Sequence[Scanned], facts: Mapping[str, Value]) -> Landmarks:
    """Return the landmarks of the parts."""
    marks = Landmarks([], [], [], [], router=facts.get("router_mode") is True)
    for index, scan in enumerate(scans):
        if scan.part.kind in LOG_KINDS:
            marks.ready += [(index, n, t) for n, t in scan.ready]
            marks.starts += [(index, n, t) for n, t in scan.starts]
            marks.generated += [(index, n, t) for n, t in scan.generated]
        answered = facts.get("http_status") == 200 and facts.get("answer_chars")  # noqa: PLR2004 - HTTP
        if scan.part.kind == "http-response" and answered and not facts.get("answer_empty"):
            marks.answered.append((index, 1, scan.part.text.split("\n", 1)[0][:200]))
    return marks
