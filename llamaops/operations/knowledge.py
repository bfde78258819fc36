"""Add what a build knows of the model, where both are there."""

from __future__ import annotations

from collections.abc import Iterable

from llamaops.facts.binary_types import BinaryFacts
from llamaops.facts.build_names import collect_build_names
from llamaops.facts.gguf_file import GgufFacts
from llamaops.operations.session import Session
from llamaops.schema.fact import Known
from llamaops.system.machine import Machine

PREFERRED = ("llama-server", "llama-completion", "llama-cli")
NOT_READ = "what the build knows of the model before it is loaded: the texts in its files cannot be read"


def add_build_names(session: Session, machine: Machine, program: str | None, *, always: bool = False) -> None:
    """Look for the model's names in a program's files and add what was found to the record.

    Args:
        session: The run, with the model's facts.
        machine: The machine.
        program: The program; None adds nothing.
        always: Whether to add what could not be read too; else the record says that it is not covered,
            for a load shows it.
    """
    model = session.group(GgufFacts)
    if program is None or model is None or not isinstance(model.architecture, Known):
        return
    facts = collect_build_names(machine, program, model)
    if always or any(isinstance(one.found, Known) for one in facts.names):
        session.add("build_names", facts)
    else:
        session.not_covered.append(NOT_READ)


def executed(binary: BinaryFacts | None) -> str | None:
    """Return the file that really runs, of a program that was looked at."""
    if binary is None:
        return None
    return binary.executes.value if isinstance(binary.executes, Known) else binary.real_path


def preferred(binaries: Iterable[BinaryFacts]) -> BinaryFacts | None:
    """Return the program that loads models, of several: the server first."""
    by_role: dict[str, BinaryFacts] = {}
    for binary in binaries:
        by_role.setdefault(binary.role, binary)
    return next((by_role[role] for role in PREFERRED if role in by_role), None)
