"""Where requests go, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llamaops.errors import UsageError


@dataclass(frozen=True, slots=True)
class Origin:
    """Where requests go: scheme, host, port, and a path that every request starts with."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Origin:
        """Read a URL such as http://127.0.0.1:8080/prefix; user information in it is refused.

        Raises: UsageError, without the URL's user information.
        """
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise UsageError("the URL cannot be read", hint="write it as http://HOST:PORT") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError("the URL must be http://HOST:PORT or https://HOST:PORT")
        if parts.username is not None or parts.password is not None:
            raise UsageError("the URL holds a user name or password", hint="give a key by file or variable")
        if parts.query or parts.fragment:
            raise UsageError("the URL must end with the path; it has a query or a fragment")
        prefix = checked_target(parts.path.rstrip("/"), "path of the URL")
        scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
        return cls(scheme, parts.hostname, port or (443 if scheme == "https" else 80), prefix)

    @property
    def netloc(self) -> str:
        """Return host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the URL, without anything secret."""
        return f"{self.scheme}://{self.netloc}{self.prefix}"


def checked_target(text: str, what: str) -> str:
    """Return text that may stand in a request line.

    Raises: UsageError for a space, a control character or anything else that would break the line.
    """
    if any(not "!" <= character <= "~" for character in text):
        raise UsageError(f"the {what} holds a space, a line break or a character that is not ASCII")
    return text
