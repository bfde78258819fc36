from __future__ import annotations

import pytest

from llamaops.errors import UsageError
from llamaops.launch.unit_file import renamed, used_command

UNIT = """[Service]
Environment=LLAMA_API_KEY=sk-secret
ExecStart=-/opt/llama/llama-server \\
  --model "/srv/a model.gguf" --host 0.0.0.0 --port 8080 \\
  --ctx-size 8192 -fa on --api-key sk-other --api-key-file %d/key --alias x --chat-template "a %% b"
Restart=always
"""


def test_the_flags_in_use_without_what_a_canary_sets_itself() -> None:
    used = used_command(UNIT)
    assert (used.program, used.model) == ("/opt/llama/llama-server", "/srv/a model.gguf")
    assert used.flags == ("--ctx-size", "8192", "-fa", "on", "--chat-template", "a % b")
    assert "sk-" not in repr(used)


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("[Service]\n", "0 ExecStart lines"),
        ("ExecStart=/a\nExecStart=/b\n", "2 ExecStart lines"),
        ('ExecStart=/a "b\n', "cannot be read"),
        ("ExecStart=/bin/sh -c 'llama-server'\n", "through a shell"),
    ],
)
def test_a_unit_that_does_not_say_it_plainly_is_refused(unit: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        used_command(unit)


def test_flags_under_another_name() -> None:
    assert renamed(("--old", "1"), {"--old": "--new"}) == ("--new", "1")
