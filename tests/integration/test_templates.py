"""The child that compiles templates, as a real process with real bounds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from llamaops.facts import templates
from llamaops.facts.gguf_probe import look
from llamaops.facts.templates import TemplateFacts, collect_templates
from llamaops.schema.fact import Known, Unknown
from llamaops.system.machine import Machine
from tests.fakes import gguf_files as g
from tests.unit.system.test_template_child import CHATML


def study(folder: Path, source: str) -> TemplateFacts:
    path = folder / "m.gguf"
    path.write_bytes(g.FakeGguf().with_key("tokenizer.chat_template", source).to_bytes())
    with Machine() as machine:
        return collect_templates(machine, look(machine, str(path))).templates.need()[0]


def test_a_template_is_read_where_it_lies_in_the_model(tmp_path: Path) -> None:
    found = study(tmp_path, CHATML)
    assert found.compiles.need() is True
    assert found.supports.need().system is True
    assert found.bytes.need() == len(CHATML)


@pytest.mark.parametrize("source", ["{{ 'a' * 9000000000 }}", "{{ (9 ** 9) ** (9 ** 9) }}"])
def test_memory_and_time_are_bounded(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "BOUNDS", msgspec.structs.replace(templates.BOUNDS, wall_s=3.0))
    found = study(tmp_path, source)
    outcome = {one.name: one.outcome for one in found.conversations}.get("user")
    # The compiler folds constants: a power may take all the time before there is any conversation.
    assert outcome in {"failed", "too_slow", "not_ended"} or isinstance(found.compiles, Unknown)
    assert not (isinstance(found.supports, Known) and found.supports.value.multi_turn)
