"""Sources: what llamaops claims about llama.cpp, where it was seen, when, and on which build.

python -m llamaops.operations.sources FILE writes the page.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from typing import Literal

from llamaops.errors import InputFileError
from llamaops.runbook.load import shown
from llamaops.runbook.yaml_shape import parse, read_file
from llamaops.schema.shape import Shape

WORDS = {
    "ran": "seen in a run",
    "help": "the program's help",
    "source": "read in the sources",
    "manual": "manual",
}


class Claim(Shape, frozen=True, kw_only=True):
    """One claim and where it comes from."""

    claim: str
    """What is claimed."""
    source: str
    """The command, file or page."""
    how: Literal["ran", "help", "source", "manual"]
    """How it was seen."""
    checked: str
    """The day it was last seen, YYYY-MM-DD."""
    builds: tuple[str, ...]
    """The builds it was seen on."""
    used_by: tuple[str, ...]
    """Modules and runbooks that rely on it."""


class Sources(Shape, frozen=True, kw_only=True):
    """The file of claims."""

    sources: Literal[1]
    """Version of this form."""
    claims: tuple[Claim, ...]
    """The claims."""


def load_claims() -> tuple[Claim, ...]:
    """Return the claims.

    Raises: InputFileError.
    """
    path = os.path.join(os.path.dirname(__file__), "sources.yaml")  # noqa: PTH118, PTH120 - one name beside this file
    read = parse(read_file(path), Sources)
    if isinstance(read, list):
        raise InputFileError(shown(path, read))
    return read.value.claims


def age_days(claim: Claim, today: dt.date) -> int:
    """Return how long ago a claim was last seen. Units: days."""
    return (today - dt.date.fromisoformat(claim.checked)).days


def page(claims: tuple[Claim, ...]) -> str:
    """Return the claims as a page."""
    return "\n".join(_page(claims)) + "\n"


def _page(claims: tuple[Claim, ...]) -> Iterator[str]:
    yield "<!-- Made from llamaops/operations/sources.yaml by `make generate`; edit that. -->"
    yield ""
    yield "# Sources"
    yield ""
    yield (
        "What llamaops and its runbooks claim about llama.cpp and the programs around it, where seen, when, "
        "and on which build. `llamaops sources --stale DAYS` lists what has not been looked at for longer."
    )
    yield ""
    yield "| claim | where | how | day | builds | used by |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for claim in claims:
        used = ", ".join(f"`{name}`" for name in claim.used_by)
        cells = [claim.claim, claim.source, WORDS[claim.how], claim.checked, ", ".join(claim.builds), used]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:  # noqa: PTH123 - strings throughout
        file.write(page(load_claims()))
