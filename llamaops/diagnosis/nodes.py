"""Whether a process is in the groups that own a GPU's device nodes, where parts show both."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NODE = re.compile(
    r"^\s*c(?:rw.)(?:rw.)(?P<others>...)\S*\s+\d+\s+(?P<owner>\S+)\s+(?P<group>\S+)\s+\d+,\s*\d+\s.*?"
    r"(?P<node>kfd|renderD\d+|nvidia\d+|nvidiactl)\b"
)
_TOLD = re.compile(
    r"/dev/(?:dri/)?(?P<node>kfd|renderD\d+|nvidia\d+|nvidiactl)\b.{0,12}?\bc(?:rw.)(?:rw.)(?P<others>[r-][w-].)"
    r"\W+(?:owner\W+)?(?P<owner>[A-Za-z_][\w-]*)\W+(?:group\W+)?(?P<group>[A-Za-z_][\w-]*)"
)
"""A node as facts about a host tell it: its path, then mode, owner and group."""
_ID = re.compile(r"\buid=(?P<uid>\d+)\((?P<user>[^)]*)\).*?\bgroups=(?P<groups>\S+)")


def missing_groups(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield each group that owns a node and that the user of the text is not in, with its line.

    Read from what `ls -l /dev/...` and `id` print, or a list of facts; the order of the two does not matter.
    Root may open all.
    """
    user = _ID.search(text)
    if user is None or user["uid"] == "0":
        return
    member = set(re.split(r"[(),]+", user["groups"])) - {""}
    for number, line in enumerate(text.splitlines(), 1):
        node = _NODE.match(line) or _TOLD.search(line)
        if node and "rw" not in node["others"] and node["owner"] != user["user"]:
            group = node["group"]
            if group not in member:
                yield group, number, line
