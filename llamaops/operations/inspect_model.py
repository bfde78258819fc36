"""Inspect a model file: its header, its shards, and whether its tensor data is all there."""

from __future__ import annotations

from llamaops.facts.asked import AskedFacts
from llamaops.facts.gguf_file import collect_gguf
from llamaops.operations.session import Session
from llamaops.system.machine import Machine

NOT_COVERED = ("the tensor data itself: its length is checked, its values are not read",)


def inspect_model(session: Session, machine: Machine, path: str) -> None:
    """Read the header of a model, add it to the record and judge it."""
    session.begin(("model_file",), NOT_COVERED)
    with session.step("inspect", f"read the header of {path}"):
        model = collect_gguf(machine, path)
    session.add("asked", AskedFacts(via="inspect", model_path=path))
    session.add("model", model)
    session.judge("model")
