"""Collect what must never leave the process: told secrets, and who and where we are."""

# ruff: noqa: SIM905 - words read better one after the other

# ruff: noqa: PLR2004 - lengths of the forms that are looked for

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from llamaops.record import names

SHORTEST = 3
_MOST_BYTES_OF_A_FILE = 1 << 20
_TEST_PREFIX = "LLAMAOPS_TEST_SECRET_"
_NO_SECRETS = frozenset(
    "true false yes no on off none null auto default enabled disabled basic bearer".split()
)


class Secrets(NamedTuple):
    """Values to look for everywhere."""

    values: tuple[str, ...] = ()
    """Secrets that the operator gave us, longest first."""
    home: str = ""
    """Our home folder, or nothing."""
    users: tuple[str, ...] = ()
    """Our user name."""
    hosts: tuple[str, ...] = ()
    """The names of this host, the longest first."""
    too_short: int = 0
    """How many given values were too short to look for."""

    def __repr__(self) -> str:
        """Return how many there are; a traceback with variables must not print them."""
        return f"Secrets({len(self.values)} values)"


def collect_secrets(
    environ: Mapping[str, str],
    argv: Sequence[str] = (),
    files: Sequence[str] = (),
    *,
    host: str | None = None,
) -> Secrets:
    """Return the secret values of the environment, the arguments and the key files, and our identity.

    Args:
        environ: Our environment.
        argv: Our arguments.
        files: Key files, one key a line; a line that starts with `#` is a comment.
        host: The name of this host; asked from the system when not given.

    Raises: InputFileError for a file that cannot be read.
    """
    found: dict[str, None] = {}
    for name, value in environ.items():
        found.update(dict.fromkeys(_of_variable(name, value)))
    found.update(dict.fromkeys(_of_arguments(argv)))
    for path in files:
        found.update(dict.fromkeys(_of_file(path)))
    values = sorted((value for value in found if len(value) >= SHORTEST), key=lambda item: (-len(item), item))
    home = environ.get("HOME", "").rstrip("/")
    return Secrets(
        values=tuple(values),
        home=home if home.count("/") >= 2 or "\\" in home else "",
        users=tuple(dict.fromkeys(filter(None, (environ.get("USER"), environ.get("LOGNAME"), _last(home))))),
        hosts=_hosts(environ, host),
        too_short=sum(1 for value in found if 0 < len(value) < SHORTEST),
    )


def values_of(text: str) -> list[str]:
    """Return what is to be looked for of one given value: itself, its lines, and the members of a list."""
    whole = text.strip("\r\n") if text.strip() else ""
    result = [whole, whole.strip()]
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        result += [line for line in lines if not line.startswith("-----") and any(c.isalnum() for c in line)]
    parts = [part.strip() for part in whole.split(",")]
    if len(parts) > 1 and all(len(part) >= 8 for part in parts):
        result += parts
    return [value for value in dict.fromkeys(result) if value]


def _of_variable(name: str, value: str) -> list[str]:
    if name.startswith(_TEST_PREFIX):
        return values_of(value)
    if names.meaning(name) == names.STRONG and not _is_ordinary(value):
        return values_of(value)
    return _of_url(value)


def _is_ordinary(value: str) -> bool:
    bare = value.strip()
    if bare.lower() in _NO_SECRETS or (bare.isdigit() and len(bare) < 6):
        return True
    return (
        bare.startswith(("/", "~/", "./")) and "\n" not in bare and not bare.endswith("=") and _is_file(bare)
    )


def _is_file(path: str) -> bool:
    from pathlib import Path

    return Path(path).expanduser().exists() or path.startswith(
        ("/run/", "/etc/", "/var/", "/home/", "/root/")
    )


def _of_url(value: str) -> list[str]:
    """Return the password of a URL, as it is and decoded."""
    _scheme, sign, rest = value.partition("://")
    login, at, _host = rest.split("/")[0].rpartition("@")
    _user, colon, password = login.partition(":")
    if not (sign and at and colon) or len(password) < 6:
        return []
    from urllib.parse import unquote

    return [password, unquote(password)]


def _of_arguments(argv: Sequence[str]) -> list[str]:
    found: list[str] = []
    for index, word in enumerate(argv):
        name, sign, value = word.partition("=")
        if name.startswith("-") and names.meaning(name) == names.STRONG:
            if not sign:
                value = argv[index + 1] if index + 1 < len(argv) else ""
            if value and not _is_ordinary(value) and not value.startswith("--"):
                found += values_of(value)
        elif sign and names.meaning(name) == names.STRONG:
            found += values_of(value)
        found += _of_url(word)
    return found


def _of_file(path: str) -> list[str]:
    from llamaops.errors import InputFileError
    from llamaops.system.files import read_limited

    try:
        data = read_limited(path, limit_bytes=_MOST_BYTES_OF_A_FILE + 1)
    except OSError as error:
        raise InputFileError(
            f"cannot read the secret file {path}: {error.strerror}", hint="check its path and permissions"
        ) from error
    if len(data) > _MOST_BYTES_OF_A_FILE:
        raise InputFileError(
            f"the secret file {path} is larger than 1 MiB", hint="name a file with keys, one a line"
        )
    text = data.decode("utf-8", "surrogateescape")
    lines = [line.strip() for line in text.splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    private = "PRIVATE KEY" in text
    return [value for line in keys for value in values_of(line) if not (private and line.startswith("-----"))]


def _hosts(environ: Mapping[str, str], host: str | None) -> tuple[str, ...]:
    if host is None:
        import os

        host = os.uname().nodename if hasattr(os, "uname") else environ.get("COMPUTERNAME", "")
    known = [name for name in (host, environ.get("HOSTNAME", "")) if name]
    return tuple(sorted({*known, *(name.split(".")[0] for name in known)}, key=len, reverse=True))


def _last(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
