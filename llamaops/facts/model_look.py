"""One look at a model file, for every fact group that its header gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamaops.facts import gguf_probe
from llamaops.facts.gguf_file import GgufFacts, facts_of
from llamaops.facts.identity_derive import identity_of
from llamaops.facts.model_identity import IdentityFacts

if TYPE_CHECKING:  # see gguf_walk
    from llamaops.system.ports import System


def collect_model(system: System, path: str) -> tuple[GgufFacts, IdentityFacts]:
    """Observe a model file once: what its header says, and what the file is for."""
    probe = gguf_probe.look(system, path)
    return facts_of(probe), identity_of(system, probe)
