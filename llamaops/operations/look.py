"""Look at host, accelerators, model and programs side by side, and judge what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from llamaops.facts.accelerator import collect_accelerators
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinaryFacts, collect_binary
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.host import collect_host
from llamaops.facts.model_look import collect_model
from llamaops.operations.session import Session
from llamaops.operations.side_by_side import side_by_side
from llamaops.schema.fact import Fact, Known, known, not_attempted
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
    tasks: dict[str, Callable[[], Any]] = {
        "host": lambda: collect_host(machine, model_path=asked.model_path),
        "accelerators": lambda: collect_accelerators(machine),
    }
    if asked.model_path is not None:
        tasks["model"] = partial(collect_model, machine, asked.model_path)
    for role, program in programs.items():
        tasks[role] = partial(collect_binary, machine, program, role)
    with session.step("look", "look at host, accelerators, model and programs"):
        seen = side_by_side(tasks)
    session.add("host", seen["host"])
    session.add("accelerators", seen["accelerators"])
    if "model" in seen:
        model, identity = seen["model"]
        session.add("model", model)
        session.add("identity", identity)
    session.add("asked", asked)
    return {role: seen[role] for role in programs}


def template_fact(model: GgufFacts | None) -> Fact[bool]:
    """Say whether the model's header has a chat template."""
    if model is None:
        return not_attempted("the model was not inspected")
    template = model.chat_template
    if isinstance(template, Known):
        return known(True, template.source)  # noqa: FBT003 - a fact's value
    return known(False, template.source) if template.why == "absent" else template  # noqa: FBT003
