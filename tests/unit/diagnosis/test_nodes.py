"""Groups of device nodes that a process is not in."""

from __future__ import annotations

import pytest

from llamaops.diagnosis.nodes import missing_groups

NODE = "crw-rw---- 1 root render 226, 128 Jan  5 09:00 /dev/dri/renderD128"
BY_NUMBER = "crw-rw---- 1 root 148 510,   0 Jan  5 09:00 /dev/kfd"
APP = "uid=1000(app) gid=1000(app) groups=1000(app)"


@pytest.mark.parametrize(
    ("user", "node", "groups"),
    [
        (APP, NODE, ["render"]),
        (APP, BY_NUMBER, ["148"]),
        (f"{APP},109(render)", NODE, []),
        (f"{APP},148(148)", BY_NUMBER, []),
        ("uid=0(root) gid=0(root) groups=0(root)", NODE, []),
        (APP, NODE.replace("rw----", "rw-rw-"), []),
        (APP, NODE.replace("root render", "app render"), []),
        (APP, "crw-rw---- 1 root video  226,   0 Jan  5 09:00 card0", []),
        (APP, "-rw-r----- 1 root render 100 Jan  5 09:00 renderD128", []),
        ("no user is told", NODE, []),
    ],
)
def test_missing_groups(user: str, node: str, groups: list[str]) -> None:
    for text in (f"{user}\n{node}\n", f"{node}\n{user}\n"):
        assert [group for group, _number, _line in missing_groups(text)] == groups
