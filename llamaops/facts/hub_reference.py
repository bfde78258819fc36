"""A file on a hub, as it is written: hf:OWNER/NAME/FILE@REVISION."""

from __future__ import annotations

import re

from llamaops.errors import UsageError
from llamaops.schema.shape import Shape

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_FILE = r"[^@\s\x00-\x1f\\?#%]{1,512}"
_REVISION = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}"
HINT = "write it as hf:OWNER/NAME/FILE.gguf@REVISION"


class HubReference(Shape, frozen=True, kw_only=True):
    """A file on a hub."""

    repository: str
    """OWNER/NAME."""
    file: str
    """Path in the repository."""
    revision: str
    """Branch, tag or commit; `main` where none was given."""

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which nobody can change."""
        return re.fullmatch(r"[0-9a-f]{40}", self.revision) is not None

    def url(self, endpoint: str) -> str:
        """Return the address of the file."""
        return f"{endpoint}/{self.repository}/resolve/{self.revision}/{self.file}"


def parse_reference(text: str) -> HubReference:
    """Read a reference.

    Raises: UsageError.
    """
    found = re.fullmatch(rf"hf:(?://)?({_PART})/({_PART})/({_FILE})(?:@({_REVISION}))?", text)
    bad = found is None or ".." in found[3].split("/") or ".." in (found[4] or "")
    if found is None or bad or found[3].startswith("/"):
        raise UsageError(f"{text[:200]!r} is no file on a hub", hint=HINT)
    return HubReference(repository=f"{found[1]}/{found[2]}", file=found[3], revision=found[4] or "main")
