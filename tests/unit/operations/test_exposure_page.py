from __future__ import annotations

import re
from pathlib import Path

from llamaops.facts.exposure import Decisions
from llamaops.launch.exposure_files import nginx_site
from llamaops.runbook.yaml_shape import Document, parse

PAGE = Path(__file__).parents[3] / "docs" / "exposure.md"


def test_the_example_of_the_page_is_complete_and_renders() -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    read = parse(example[1].encode(), Decisions)
    assert isinstance(read, Document), read
    assert None not in [getattr(read.value, name) for name in Decisions.__struct_fields__]
    assert "server_name llama.example;" in nginx_site(read.value)
