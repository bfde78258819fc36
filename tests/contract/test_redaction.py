"""Only the redaction stage makes what renderers take."""

from __future__ import annotations

import re
from pathlib import Path

import llamaops


def test_only_the_redaction_stage_makes_a_redacted_record() -> None:
    root = Path(llamaops.__path__[0])
    makers = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if re.search(r"(?<!class )\bRedacted\(", file.read_text(encoding="utf-8"))
    }
    assert makers == {"record/redact.py"}
