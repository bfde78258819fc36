"""Look at host, accelerators, model and programs side by side, and judge what was seen."""

from __future__ import annotations

from collections.abc import Mapping

from llamaops.facts.accelerator import collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts, collect_binary
from llamaops.facts.gguf_file import GgufFacts, collect_gguf
from llamaops.facts.host import collect_host
from llamaops.operations.session import Session
from llamaops.operations.side_by_side import side_by_side
from llamaops.system.machine import Machine


def look(
    session: Session,
    machine: Machine,
    asked: AskedFacts,
    programs: Mapping[str, str],
) -> dict[str, BinaryFacts]:
    """Collect host, accelerators, the model and some programs at the same time, and judge them.

    Args:
        session: The run.
        machine: The machine.
        asked: The run as asked for; its model is inspected.
        programs: Role to path of the programs that will be run.

    Returns the facts of each program by role; the run's own program is added by the caller.
    """
    tasks = {
        "host": lambda: collect_host(machine, model_path=asked.model_path),
        "accelerators": lambda: collect_accelerators(machine),
    }
    if asked.model_path is not None:
        path = asked.model_path
        tasks["model"] = lambda: collect_gguf(machine, path)
    for role, program in programs.items():
        tasks[role] = lambda program=program, role=role: collect_binary(machine, program, role)
    with session.step("look", "look at host, accelerators, model and programs"):
        seen = side_by_side(tasks)
    session.add("host", seen["host"])
    session.add("accelerators", seen["accelerators"])
    if "model" in seen:
        session.add("model", seen["model"])
    session.add("asked", asked)
    return {role: seen[role] for role in programs}


def has_template(model: GgufFacts | None) -> bool | None:
    """Say whether the model's header has a chat template; None when the header could not be read."""
    from llamaops.schema.fact import Known

    if model is None or not isinstance(model.chat_template, Known):
        return None
    return model.chat_template.value.present
